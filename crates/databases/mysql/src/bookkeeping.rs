//! The tables of Windrow's own that a spool needs: how far it has been applied, and what was
//! refused.

use async_trait::async_trait;
use mysql_async::{Opts, Row};
use windrow_core::bookkeeping::{DeadLetter, KeptLetter, REJECTED};
use windrow_core::{Bookkeeping, Fault};
use windrow_database::Options;

use super::fault::Trouble;
use super::line::Line;
use super::own_tables::{DEAD_LETTERS, POSITIONS, columns, make};
use super::values::cell::get;

/// What a spool needs of MySQL and MariaDB.
pub(super) struct MysqlBookkeeping {
    opts: Opts,
    options: Options,
}

impl MysqlBookkeeping {
    pub(super) fn new(opts: &Opts, options: &Options) -> Self {
        Self {
            opts: opts.clone(),
            options: options.clone(),
        }
    }

    async fn connect(&self) -> Result<Line, Fault> {
        Line::connect(&self.opts, None, &self.options).await
    }
}

#[async_trait]
impl Bookkeeping for MysqlBookkeeping {
    async fn prepare(&self) -> Result<(), Fault> {
        let mut line = self.connect().await?;
        let made = prepare(&mut line).await;
        line.close().await;
        made.map_err(Trouble::into_fault)
    }

    async fn letters(&self, after: u64, most: usize) -> Result<Vec<KeptLetter>, Fault> {
        let mut line = self.connect().await?;
        let letters = letters(&mut line, after, most).await;
        line.close().await;
        letters.map_err(Trouble::into_fault)
    }
}

async fn prepare(line: &mut Line) -> Result<(), Trouble> {
    make(line, POSITIONS).await?;
    make(line, DEAD_LETTERS).await
}

async fn letters(line: &mut Line, after: u64, most: usize) -> Result<Vec<KeptLetter>, Trouble> {
    if columns(line, REJECTED).await?.is_empty() {
        return Ok(Vec::new());
    }
    // One of an older program has other columns.
    make(line, DEAD_LETTERS).await?;
    let sql = format!(
        "SELECT id, CAST(rejected_at AS CHAR), source, destination, `key`, `row`, code, message, `constraint`, entry \
         FROM {REJECTED} WHERE id > {after} ORDER BY id LIMIT {most}"
    );
    let rows = line.rows(&sql).await?;
    Ok(rows.iter().map(letter).collect())
}

fn letter(row: &Row) -> KeptLetter {
    let maybe = |place| get::<String>(row, place).map(String::into_boxed_str);
    let word = |place| maybe(place).unwrap_or_default();
    KeptLetter {
        id: get(row, 0).unwrap_or_default(),
        rejected_at: word(1),
        letter: DeadLetter {
            source: word(2),
            destination: word(3),
            key: word(4),
            row: word(5),
            code: word(6),
            message: word(7),
            constraint: maybe(8),
            entry: get::<Vec<u8>>(row, 9).map(Vec::into_boxed_slice),
        },
    }
}
