//! Creates tables and columns that the rows of a batch name.

use windrow_core::{Fault, TableName, Tally};
use windrow_database::demand;
use windrow_database::web::{Batch, Loss, Refusal, Scope, Stop};

use super::connection::Connection;
use super::plan::Knowledge;
use crate::catalog::create;
use crate::catalog::create::Demand;
use crate::fault::refusal;

/// Creates and extends tables so that they fit the rows of a batch.
pub(super) async fn grow(
    connection: &mut Connection,
    batch: &mut Batch<'_>,
    knowledge: &mut Knowledge,
) -> Result<(), Stop> {
    let demands = demand::by_table(batch.pending().map(|(_, write)| write), Demand::see);
    for (name, mut demand) in demands {
        demand.new.received_at = connection.received_at.clone();
        let Some(Ok(table)) = knowledge.tables.get(name) else {
            continue;
        };
        let whole = connection.session.whole_name(name);
        let facts = table.as_ref().map(|table| &table.facts);
        let statements = create::statements(&whole, facts, &demand);
        // Tables that Windrow created have no mark.
        if statements.is_empty() || facts.is_some() && !connection.extends {
            continue;
        }
        for sql in statements {
            if let Err(fault) = make(connection, &whole, &sql, &mut batch.tally).await? {
                // Another client may have created it: the description that is read next decides.
                knowledge.not_grown.insert(name.clone(), fault);
            }
        }
        let known = connection.read_table(name, &mut batch.tally).await?;
        knowledge.tables.insert(name.clone(), known);
    }
    Ok(())
}

/// Changes the schema.
///
/// # Errors
/// Outer: the batch cannot continue. Inner: the server's refusal.
async fn make(
    connection: &mut Connection,
    table: &TableName,
    sql: &str,
    tally: &mut Tally,
) -> Result<Result<(), Fault>, Stop> {
    let answered = connection.session.single(sql, b"", tally).await;
    let answered = answered.map_err(Loss::harmless).map_err(Stop)?;
    let Err(failure) = answered else {
        tracing::info!(sql, "created");
        return Ok(Ok(()));
    };
    let Refusal { mut fault, scope } = refusal(&failure, table);
    if scope == Scope::Database {
        return Err(Stop(fault));
    }
    fault.message = format!(
        "the table {table} cannot be fitted to its rows: {}",
        fault.message
    )
    .into();
    Ok(Err(fault))
}
