//! The tables of Windrow's own: how far a spool has been applied, what was refused, and which
//! requests were executed.

use std::time::Duration;

use async_trait::async_trait;
use mysql_async::{Opts, Row};
use windrow_core::bookkeeping::{DeadLetter, IDEMPOTENCY, KeptLetter, REJECTED};
use windrow_core::{Bookkeeping, Fault};
use windrow_database::Options;

use super::fault::Trouble;
use super::own_tables::{DEAD_LETTERS, KEYS, POSITIONS, columns, make};
use super::session::Session;
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

    async fn connect(&self) -> Result<Session, Fault> {
        Session::connect(&self.opts, None, &self.options).await
    }
}

#[async_trait]
impl Bookkeeping for MysqlBookkeeping {
    async fn prepare(&self) -> Result<(), Fault> {
        let mut session = self.connect().await?;
        let made = prepare(&mut session).await;
        session.close().await;
        made.map_err(Trouble::into_fault)
    }

    async fn letters(&self, after: u64, most: usize) -> Result<Vec<KeptLetter>, Fault> {
        let mut session = self.connect().await?;
        let letters = letters(&mut session, after, most).await;
        session.close().await;
        letters.map_err(Trouble::into_fault)
    }

    async fn prepare_keys(&self) -> Result<(), Fault> {
        let mut session = self.connect().await?;
        let made = make(&mut session, KEYS).await;
        session.close().await;
        made.map_err(Trouble::into_fault)
    }

    async fn forget_keys(&self, age: Duration, most: usize) -> Result<u64, Fault> {
        let mut session = self.connect().await?;
        let forgotten = forget(&mut session, age, most).await;
        session.close().await;
        forgotten.map_err(Trouble::into_fault)
    }
}

async fn forget(session: &mut Session, age: Duration, most: usize) -> Result<u64, Trouble> {
    if columns(session, IDEMPOTENCY).await?.is_empty() {
        return Ok(0);
    }
    let sql = format!(
        "DELETE FROM {IDEMPOTENCY} WHERE made_at < UTC_TIMESTAMP(6) - INTERVAL {} SECOND ORDER BY made_at LIMIT {most}",
        age.as_secs()
    );
    session.say(&sql).await
}

async fn prepare(session: &mut Session) -> Result<(), Trouble> {
    make(session, POSITIONS).await?;
    make(session, DEAD_LETTERS).await?;
    make(session, KEYS).await
}

async fn letters(
    session: &mut Session,
    after: u64,
    most: usize,
) -> Result<Vec<KeptLetter>, Trouble> {
    if columns(session, REJECTED).await?.is_empty() {
        return Ok(Vec::new());
    }
    // One of an older program has other columns.
    make(session, DEAD_LETTERS).await?;
    let sql = format!(
        "SELECT id, CAST(rejected_at AS CHAR), source, destination, `key`, `row`, code, message, `constraint`, entry \
         FROM {REJECTED} WHERE id > {after} ORDER BY id LIMIT {most}"
    );
    let rows = session.rows(&sql).await?;
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
