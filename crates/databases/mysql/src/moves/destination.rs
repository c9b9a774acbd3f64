//! Looks up final tables, and creates them like the source.

use windrow_core::moves::Destination;
use windrow_core::{Fault, TableName};
use windrow_database::moved;
use windrow_database::quote::backtick::push_table;

use super::source::{Source, no_transactions};
use super::survey;
use crate::fault::Trouble;
use crate::session::Session;
use crate::values::cell::get;

/// Looks up a table, on a connection without a transaction, which creating a table would commit.
pub(super) async fn open(
    session: &mut Session,
    source: &Source,
    table: &TableName,
    create: bool,
) -> Result<Destination, Fault> {
    if is_same(session, &source.name, table).await? {
        return Err(moved::into_source(table));
    }
    let mut facts = survey::facts(session, table).await?;
    if facts.is_none() && create {
        make(session, source, table).await?;
        facts = survey::facts(session, table).await?;
    }
    let Some(facts) = facts else {
        return Err(moved::no_destination(table));
    };
    if !facts.transactional {
        return Err(no_transactions(table));
    }
    let mut outside = survey::outside(&facts);
    outside.required = survey::required(session, table, &facts).await?;
    // The server ignores case in names of columns.
    let names = outside.columns.iter_mut().chain(&mut outside.generated);
    for name in names.chain(&mut outside.required) {
        let lower = name.to_lowercase();
        if let Some(column) = source.columns.iter().find(|c| c.to_lowercase() == lower) {
            *name = column.clone();
        }
    }
    Destination::new(table, &outside, &source.columns)
}

async fn is_same(session: &mut Session, a: &TableName, b: &TableName) -> Result<bool, Trouble> {
    let rows = session
        .rows("SELECT DATABASE(), @@lower_case_table_names")
        .await?;
    let row = rows.first();
    let here = row
        .and_then(|row| get::<String>(row, 0))
        .unwrap_or_default();
    let folds = row.and_then(|row| get::<u64>(row, 1)).unwrap_or_default() > 0;
    let full = |name: &TableName| {
        let schema = name.schema.as_deref().unwrap_or(&here);
        let full = (schema.to_owned(), name.table.to_string());
        if folds {
            (full.0.to_lowercase(), full.1.to_lowercase())
        } else {
            full
        }
    };
    Ok(full(a) == full(b))
}

/// Creates a table like the source, with its columns, defaults, checks and indexes, but without its
/// foreign keys and triggers. Each table generates numbers for itself, and moved rows keep theirs.
async fn make(session: &mut Session, source: &Source, table: &TableName) -> Result<(), Trouble> {
    let mut sql = "CREATE TABLE IF NOT EXISTS ".to_owned();
    push_table(&mut sql, table);
    sql.push_str(" LIKE ");
    push_table(&mut sql, &source.name);
    session.say(&sql).await?;
    tracing::info!(sql, "changed");
    Ok(())
}
