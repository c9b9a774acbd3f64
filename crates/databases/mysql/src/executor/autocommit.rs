//! Executes units whose writes are one statement without BEGIN and COMMIT: one round trip.

use windrow_core::{Fault, Op, Rung, Tally, UnitFault, Verdict};
use windrow_database::plan;

use super::batch::{Batch, BoundWrite};
use super::connection::Connection;
use super::send;
use super::send::StatementError;
use super::settle::Break;
use crate::catalog::schema;
use crate::fault::{Refusal, Scope, Trouble, unknown};

/// Executes units by one statement that commits by itself. Returns false if that is not possible,
/// or if the statement for several of them failed.
pub(super) async fn run(
    connection: &mut Connection,
    batch: &mut Batch<'_>,
    units: &[u32],
    tally: &mut Tally,
) -> Result<bool, Break> {
    let Some(items) = one_statement(connection, batch, units) else {
        return Ok(false);
    };
    let bound: Vec<&BoundWrite> = items
        .iter()
        .filter_map(|i| batch.bound.get(*i as usize))
        .collect();
    let Some(first) = bound.first() else {
        return Ok(false);
    };
    let (compiled, table) = (first.compiled.clone(), first.compiled.table.clone());
    let reads = first.compiled.shape.op == Op::Get;
    connection.verify(&table).await?;
    let executed = match bound.as_slice() {
        [one] => send::one(&mut connection.session, one)
            .await
            .map(|done| vec![done]),
        many => send::many(&mut connection.session, many).await,
    };
    let answered = match executed {
        Ok(dones) => Ok(dones),
        Err(StatementError::Unassigned) if reads => return Ok(false),
        // A defect: the statement has committed with other rows than it was given.
        Err(StatementError::Unassigned) => Err(Trouble::Lost(
            "the server counted other rows than it was given".into(),
        )),
        Err(StatementError::Trouble(trouble)) => Err(trouble),
    };
    let solo = batch.units.len() == 1;
    match answered {
        Ok(dones) => {
            tally.commits += u32::from(!reads);
            let rung = match items.len() {
                1 if solo => Rung::Solo,
                1 => Rung::Grouped,
                _ => Rung::Fused,
            };
            tally.add(rung, items.len());
            for (item, done) in items.iter().zip(dones) {
                if let Some(slot) = batch.done.get_mut(*item as usize) {
                    *slot = Some(done);
                }
            }
            for unit in units {
                batch.succeed(*unit);
            }
            Ok(true)
        }
        Err(Trouble::Lost(why)) if reads => Err(Break::Lost(why)),
        Err(Trouble::Lost(why)) => {
            let verdict = Verdict::Final(Err(unknown(&why).into()));
            units
                .iter()
                .for_each(|unit| batch.conclude(*unit, verdict.clone()));
            Ok(true)
        }
        // A transaction has to find out if the row with its own key exists.
        Err(Trouble::Refused(refusal)) if send::met_other_row(&compiled, &refusal) => Ok(false),
        Err(Trouble::Refused(refusal)) => {
            tally.add(
                if solo { Rung::Solo } else { Rung::Isolated },
                usize::from(units.len() == 1),
            );
            refused(connection, batch, units, *refusal).await
        }
    }
}

/// Settles units whose statement was refused: nothing was written.
async fn refused(
    connection: &mut Connection,
    batch: &mut Batch<'_>,
    units: &[u32],
    refusal: Refusal,
) -> Result<bool, Break> {
    match (refusal.scope, units) {
        (Scope::Connection, _) => Err(Break::Ended(refusal.fault)),
        (Scope::Transaction, _) => Err(Break::RolledBack(refusal.fault)),
        (Scope::Lock, [unit]) => {
            let mut verdict = connection.waits(refusal.fault.clone());
            // Rows that were not undone would be written twice.
            if batch.is_apart(*unit) && !connection.session.undid_all().await? {
                verdict = Verdict::Final(Err(refusal.fault.into()));
            }
            batch.conclude(*unit, verdict);
            Ok(true)
        }
        (Scope::Statement, [unit]) => {
            batch.conclude(*unit, Verdict::Final(Err(UnitFault::from(refusal.fault))));
            Ok(true)
        }
        _ => undone(connection, batch, units, refusal.fault).await,
    }
}

/// Settles units whose statement for many was refused. If the table has an engine without
/// transactions by now, a part of the rows may have been written.
async fn undone(
    connection: &mut Connection,
    batch: &mut Batch<'_>,
    units: &[u32],
    fault: Fault,
) -> Result<bool, Break> {
    for table in batch.tables_of(units) {
        connection.verified.remove(&table.version);
        match connection.verify(&table).await {
            Err(Break::Stale) => {}
            other => return other.map(|()| false),
        }
        let now = schema::read(&mut connection.session, &table.name).await?;
        if now.is_none_or(|facts| facts.transactional) {
            return Err(Break::Stale);
        }
        let why = format!("the table's engine was changed; {}", fault.message);
        let verdict = Verdict::Final(Err(unknown(&why).into()));
        units
            .iter()
            .for_each(|unit| batch.conclude(*unit, verdict.clone()));
    }
    Ok(true)
}

/// Returns the writes of these units if they are one statement that needs no other.
fn one_statement(connection: &Connection, batch: &Batch<'_>, units: &[u32]) -> Option<Vec<u32>> {
    if !units.iter().all(|unit| batch.is_single(*unit)) {
        return None;
    }
    let mut steps = batch.steps(units);
    let step = steps.pop().filter(|_| steps.is_empty())?;
    let bound: Vec<&BoundWrite> = step
        .items
        .iter()
        .filter_map(|i| batch.bound.get(*i as usize))
        .collect();
    let server = &connection.session.server;
    let fits = match bound.as_slice() {
        [one] => !send::needs_transaction(&one.compiled, server),
        [first, ..] => {
            plan::shape_of(step.group).is_some()
                && first.compiled.table.transactional
                && send::can_set(&first.compiled, server)
                && !send::set_needs_transaction(&first.compiled, server)
                && !bound.iter().any(|p| p.nothing)
                && send::next_size(&bound, server) == bound.len()
        }
        [] => false,
    };
    fits.then_some(step.items)
}
