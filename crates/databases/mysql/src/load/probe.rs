//! A table in which values are tried out before they are written: temporary, without keys and
//! checks.
//!
//! LOAD DATA LOCAL bends a value that a column cannot hold, and to take a row back that was written
//! so costs more than to write all rows twice. Into a table without keys, which no transaction
//! holds, the same values are written in a quarter of the time.

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

/// The table, and what else is found out by such tables. They end with their connection.
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
    /// Not needed yet.
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

    /// Makes the table where that was not tried yet; outside of transactions. Gives back the
    /// statement that fills it.
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

    /// Takes all rows out. A table that was of no use is not tried again.
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

/// Numbers that the server gives are asked for by NULL, which a copy of the column would not take.
fn is_probed(column: &Column) -> bool {
    !column.auto
}

/// Returns true if the server's replicas repeat statements on temporary tables: they would have all
/// the work too, and could not be restarted meanwhile.
async fn is_logged(session: &mut Session) -> Result<bool, Trouble> {
    let sql = "SELECT @@log_bin = 1 AND @@binlog_format <> 'ROW'";
    let rows = session.rows(sql).await?;
    Ok(rows.first().and_then(|row| get::<u8>(row, 0)) != Some(0))
}
