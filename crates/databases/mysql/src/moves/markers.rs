//! The table of markers in a destination.

use windrow_core::TableName;
use windrow_core::moves::Moved;

use crate::catalog::information::about;
use crate::fault::{Scope, Trouble};
use crate::session::Session;
use crate::values::cell::get;
use crate::values::literal::push_text;

/// The unique index by which a row's marker is found.
const BY_KEY: &str = "windrow_moved_key";

/// A name that is there already, or a primary key.
const THERE: [u16; 2] = [1061, 1068];

/// Orders the table by batches. An index beside the primary key would not do: for a batch that is a
/// good part of the table the server reads all markers of the move, those of other batches too, and
/// waits for the sessions that write them.
pub(super) async fn index(session: &mut Session) -> Result<(), Trouble> {
    if is_ordered(session).await? {
        return Ok(());
    }
    let (table, batch) = (Moved::TABLE, Moved::BATCH);
    let (relocation, key, most) = (Moved::MOVE, Moved::KEY, Moved::MOST_BYTES);
    let sql = format!(
        "ALTER TABLE {table} MODIFY `{batch}` VARCHAR({most}) NOT NULL, DROP PRIMARY KEY, \
         ADD PRIMARY KEY (`{batch}`, `{key}`), ADD UNIQUE KEY {BY_KEY} (`{relocation}`, `{key}`)"
    );
    match session.say(&sql).await {
        Ok(_) => {
            tracing::info!(sql, "changed");
            Ok(())
        }
        // Another session was faster.
        Err(Trouble::Refused(refusal)) if THERE.contains(&refusal.number) => Ok(()),
        Err(Trouble::Refused(refusal)) if refusal.scope != Scope::Connection => {
            tracing::warn!(
                why = %refusal.fault,
                "the table {table} keeps the order that it has, so that movers may wait for each other"
            );
            Ok(())
        }
        Err(trouble) => Err(trouble),
    }
}

/// Returns true if there are markers of a move with other tags than this one.
pub(super) async fn has_strange(
    session: &mut Session,
    relocation: &str,
    tag: &str,
) -> Result<bool, Trouble> {
    let (table, of, key) = (Moved::TABLE, Moved::MOVE, Moved::KEY);
    let mut sql = format!("SELECT EXISTS (SELECT 1 FROM {table} WHERE `{of}` = ");
    push_text(&mut sql, relocation);
    sql.push_str(&format!(" AND LEFT(`{key}`, {}) <> ", Moved::TAG_BYTES));
    push_text(&mut sql, tag);
    sql.push(')');
    let rows = session.rows(&sql).await?;
    Ok(rows.first().and_then(|row| get::<u64>(row, 0)) == Some(1))
}

async fn is_ordered(session: &mut Session) -> Result<bool, Trouble> {
    let first = format!(
        " AND INDEX_NAME = 'PRIMARY' AND SEQ_IN_INDEX = 1 AND COLUMN_NAME = '{}'",
        Moved::BATCH
    );
    let table = TableName::bare(Moved::TABLE);
    let sql = about("STATISTICS", "COUNT(*)", "TABLE", &table, &first);
    let rows = session.rows(&sql).await?;
    Ok(rows.first().and_then(|row| get::<u64>(row, 0)) == Some(1))
}
