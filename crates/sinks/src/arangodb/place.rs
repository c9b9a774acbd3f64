//! Every write in its place: is it sound, which document does it touch.

use std::collections::HashMap;
use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use windrow_core::{Done, Fault, FaultClass, Op, Rung, Shape, Value, Write};

use super::encode;
use super::form::Form;
use crate::sql::plan::Fence;
use crate::web::{Batch, Placed};

/// A hash for the document of a collection.
pub(super) fn hash(collection: &str, key: &str) -> u64 {
    FixedState::default().hash_one((collection, key))
}

/// Places all writes that have no verdict. What is senseless is told so, what finds nothing is told
/// that.
pub(super) fn place(batch: &mut Batch<'_>, database: &str) -> (Vec<Form>, Vec<Placed>) {
    let mut forms: Vec<Form> = Vec::new();
    let mut placed = Vec::new();
    // By what they are, not by address: equal shapes of different requests are one.
    let mut groups: HashMap<&Shape, Result<u32, Fault>> = HashMap::new();
    let pending: Vec<_> = batch.pending().collect();
    for (at, write) in pending {
        let shape = &write.shape;
        let group = groups.entry(&**shape).or_insert_with(|| {
            forms.push(Form::new(shape, database)?);
            u32::try_from(forms.len() - 1).map_err(|_| Fault::internal("too many shapes"))
        });
        let group = match group {
            Ok(group) => *group,
            Err(fault) => {
                batch.fail(at, Rung::Solo, fault.clone());
                continue;
            }
        };
        let Some(form) = forms.get(group as usize) else {
            continue;
        };
        let key = match look(form, write) {
            Ok(key) => key,
            Err(Looked::Senseless(fault)) => {
                batch.fail(at, Rung::Solo, fault);
                continue;
            }
            Err(Looked::Nothing) => {
                batch.done(at, Rung::Solo, none(form));
                continue;
            }
        };
        placed.push(Placed {
            at,
            group,
            table: group,
            key: key.map(|key| hash(&form.collection, &key)),
            reads: form.op == Op::Get,
            fence: Fence::None,
        });
    }
    (forms, placed)
}

/// What a write is told that finds no document.
pub(super) fn none(form: &Form) -> Done {
    let returned = (form.returning != windrow_core::Returning::Nothing)
        .then(|| Box::new(super::decode::nothing(&form.returning)));
    Done {
        rows: 0,
        returned,
        told: None,
    }
}

enum Looked {
    Senseless(Fault),
    Nothing,
}

/// The key of a write, where it names one.
fn look(form: &Form, write: &Write) -> Result<Option<String>, Looked> {
    let (given, columns) = (write.row.len(), write.shape.columns.len());
    if given != form.width {
        let collection = &form.collection;
        let message = match form.op {
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
    let value = form.key.and_then(|place| write.row.get(place));
    let key = value.and_then(encode::key);
    match (value, &key) {
        (Some(Value::Null), _) if form.op != Op::Insert => return Err(Looked::Nothing),
        (Some(Value::Bytes(_) | Value::Json(_)), _) => {
            return Err(Looked::Senseless(unwritable(
                form,
                super::form::KEY,
                "a key is a text or a number",
            )));
        }
        _ => {}
    }
    for (column, value) in write.shape.columns.iter().zip(write.values()) {
        if let Err(why) = encode::check(value) {
            return Err(Looked::Senseless(unwritable(form, column, why.0)));
        }
    }
    Ok(key)
}

fn unwritable(form: &Form, column: &str, why: &str) -> Fault {
    let message = format!("the value of column \"{column}\" cannot be sent: {why}");
    Fault::new(FaultClass::Value, "22003", message)
        .with_table(Some(&*form.collection))
        .with_column(Some(column))
}
