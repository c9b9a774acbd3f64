//! Joins each write with its collection, checks it, and finds the document that it touches.

use std::collections::HashMap;
use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use windrow_core::{Fault, FaultClass, Op, RowDone, RowWrite, Rung, Shape, Value};
use windrow_database::plan::Fence;
use windrow_database::web::{Batch, BoundWrite};

use super::request::DocumentRequest;
use crate::values::encode;

/// Returns a hash that identifies a document of a collection.
pub(crate) fn hash(collection: &str, key: &str) -> u64 {
    FixedState::default().hash_one((collection, key))
}

/// Joins all writes without a verdict with their collections. Invalid writes get their error;
/// writes that cannot find a document get the outcome of no rows.
pub(crate) fn bind(
    batch: &mut Batch<'_>,
    database: &str,
) -> (Vec<DocumentRequest>, Vec<BoundWrite>) {
    let mut requests: Vec<DocumentRequest> = Vec::new();
    let mut bound = Vec::new();
    // Compared by content, not by address: equal shapes of different requests share a group.
    let mut groups: HashMap<&Shape, Result<u32, Fault>> = HashMap::new();
    let pending: Vec<_> = batch.pending().collect();
    for (at, write) in pending {
        let shape = &write.shape;
        let group = groups.entry(&**shape).or_insert_with(|| {
            requests.push(DocumentRequest::new(shape, database)?);
            u32::try_from(requests.len() - 1).map_err(|_| Fault::internal("too many shapes"))
        });
        let group = match group {
            Ok(group) => *group,
            Err(fault) => {
                batch.fail(at, Rung::Solo, fault.clone());
                continue;
            }
        };
        let Some(request) = requests.get(group as usize) else {
            continue;
        };
        let key = match look(request, write) {
            Ok(key) => key,
            Err(Looked::Senseless(fault)) => {
                batch.fail(at, Rung::Solo, fault);
                continue;
            }
            Err(Looked::Nothing) => {
                batch.done(at, Rung::Solo, none(request));
                continue;
            }
        };
        bound.push(BoundWrite {
            at,
            group,
            table: group,
            key: key.map(|key| hash(&request.collection, &key)),
            reads: request.op == Op::Get,
            fence: Fence::None,
        });
    }
    (requests, bound)
}

/// Returns the outcome of a write that finds no document.
pub(crate) fn none(request: &DocumentRequest) -> RowDone {
    let returned = (request.returning != windrow_core::Returning::Nothing)
        .then(|| Box::new(crate::values::decode::nothing(&request.returning)));
    RowDone { rows: 0, returned }
}

enum Looked {
    Senseless(Fault),
    Nothing,
}

/// Returns the key of a write, if it names one.
fn look(request: &DocumentRequest, write: &RowWrite) -> Result<Option<String>, Looked> {
    let (given, columns) = (write.row.len(), write.shape.columns.len());
    if given != request.width {
        let collection = &request.collection;
        let message = match request.op {
            Op::Insert => format!(
                "a row for collection {collection} has {given} values for {columns} columns"
            ),
            _ => format!(
                "the key of collection {collection} is (_key): 1 values are needed, {} given",
                given.saturating_sub(columns)
            ),
        };
        return Err(Looked::Senseless(Fault::invalid(message)));
    }
    let value = request.key.and_then(|place| write.row.get(place));
    let key = value.and_then(encode::key);
    match (value, &key) {
        (Some(Value::Null), _) if request.op != Op::Insert => return Err(Looked::Nothing),
        (Some(Value::Bytes(_) | Value::Json(_)), _) => {
            return Err(Looked::Senseless(unwritable(
                request,
                super::request::KEY,
                "a key is a text or a number",
            )));
        }
        _ => {}
    }
    for (column, value) in write.shape.columns.iter().zip(write.values()) {
        if let Err(why) = encode::check(value) {
            return Err(Looked::Senseless(unwritable(request, column, why.0)));
        }
    }
    Ok(key)
}

fn unwritable(request: &DocumentRequest, column: &str, why: &str) -> Fault {
    let message = format!("the value of column \"{column}\" cannot be sent: {why}");
    Fault::new(FaultClass::Value, "22003", message)
        .with_table(Some(&*request.collection))
        .with_column(Some(column))
}
