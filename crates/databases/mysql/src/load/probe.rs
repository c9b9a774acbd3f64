//! Tests values in a temporary table without keys and checks before they are written.
//!
//! LOAD DATA LOCAL changes a value that its column cannot hold. Undoing a row that was written with
//! such a value costs more than writing all rows twice. Writing the same values to a temporary
//! table without keys takes a quarter of the time.

use windrow_core::{Name, TableName};
use windrow_database::quote::backtick::{push_ident, push_table};

use super::numbering;
use super::numbering::Numbering;
use super::plan::{Load, statement};
use crate::fault::Trouble;
use crate::session::Session;
use crate::values::cell::get;
use crate::values::column::Column;

/// The name of the table.
const TABLE: &str = "windrow_probe";

/// The temporary table, and the numbering that such a table shows. They last as long as their
/// connection.
#[derive(Debug)]
pub(super) struct Probe {
    state: State,
    numbering: Numbering,
}

#[derive(Debug)]
enum State {
    /// The table has not been needed yet.
    Untried,
    /// The table exists and is empty: the statement that fills it and the one that empties it.
    Ready(String, String),
    /// The table cannot be created.
    None,
}

impl Probe {
    /// Makes a probe whose table is not created yet.
    pub(super) fn new() -> Self {
        Self {
            state: State::Untried,
            numbering: Numbering::Unknown,
        }
    }

    /// Returns how the server numbers rows, as far as it is known.
    pub(super) fn numbering(&self) -> Numbering {
        self.numbering
    }

    /// Creates the table if that was not tried yet, outside of transactions. Returns the statement
    /// that fills it.
    ///
    /// # Errors
    /// The connection is lost.
    pub(super) async fn ready(
        &mut self,
        session: &mut Session,
        load: &Load,
    ) -> Result<Option<&str>, Trouble> {
        if matches!(self.state, State::Untried) {
            self.state = State::None;
            match self.make(session, load).await {
                Err(Trouble::Refused(_)) if session.is_usable() => {}
                made => made?,
            }
        }
        Ok(match &self.state {
            State::Ready(fill, _) => Some(fill),
            State::Untried | State::None => None,
        })
    }

    async fn make(&mut self, session: &mut Session, load: &Load) -> Result<(), Trouble> {
        if load.table.table.eq_ignore_ascii_case(TABLE) || is_logged(session).await? {
            return Ok(());
        }
        let table = TableName {
            table: Name::from(TABLE),
            schema: load.table.schema.clone(),
        };
        self.numbering = numbering::find(session, &table).await?;
        let own: Vec<_> = load.columns.iter().filter(|c| is_probed(c)).collect();
        if own.is_empty() {
            return Ok(());
        }
        let mut sql = "CREATE TEMPORARY TABLE ".to_owned();
        push_table(&mut sql, &table);
        sql.push_str(match session.server.mariadb {
            true => " ENGINE = Aria TRANSACTIONAL = 0 SELECT ",
            false => " ENGINE = InnoDB SELECT ",
        });
        for (at, column) in own.into_iter().enumerate() {
            sql.push_str(if at > 0 { ", " } else { "" });
            push_ident(&mut sql, &column.name);
        }
        sql.push_str(" FROM ");
        push_table(&mut sql, &load.table);
        sql.push_str(" LIMIT 0");
        session.say(&sql).await?;
        let mut empty = "TRUNCATE TABLE ".to_owned();
        push_table(&mut empty, &table);
        self.state = State::Ready(statement(&table, &load.columns, is_probed), empty);
        Ok(())
    }

    /// Removes all rows. A table that showed nothing is not used again.
    ///
    /// # Errors
    /// The connection is lost.
    pub(super) async fn empty(
        &mut self,
        session: &mut Session,
        useful: bool,
    ) -> Result<(), Trouble> {
        let State::Ready(_, empty) = &self.state else {
            return Ok(());
        };
        let emptied = match session.say(empty).await {
            Ok(_) => true,
            Err(Trouble::Refused(_)) if session.is_usable() => false,
            Err(trouble) => return Err(trouble),
        };
        if !(useful && emptied) {
            self.state = State::None;
        }
        Ok(())
    }
}

/// Returns true if the table has a copy of the column. NULL asks for a generated number, which a
/// copy of the column would not accept.
fn is_probed(column: &Column) -> bool {
    !column.auto
}

/// Returns true if the server's replicas repeat statements on temporary tables: they would do all
/// of this work too, and could not be restarted during it.
async fn is_logged(session: &mut Session) -> Result<bool, Trouble> {
    let sql = "SELECT @@log_bin = 1 AND @@binlog_format <> 'ROW'";
    let rows = session.rows(sql).await?;
    Ok(rows.first().and_then(|row| get::<u8>(row, 0)) != Some(0))
}
