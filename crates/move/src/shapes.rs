//! The shapes of writes to another database.
//!
//! With transactions a row is inserted together with its marker, whatever the key of its table.
//! Without transactions a row that is written again must still be one row: it is written by the
//! source's key, which has to be the key of its table there, and replaces the row with that key.

use windrow_core::shape::ShapeParts;
use windrow_core::{Fault, Key, Name, OnConflict, Op, Returning, Shape, TableName, Value};

use super::markers::fingerprint;
use super::order::{Elsewhere, Order};

/// The longest key of a document that is made from the key of its row.
const MAX_KEY_BYTES: usize = 200;

/// The code of a write that names a key which its table does not have.
const NOT_THE_KEY: &str = "42P10";

/// Returns the shape of the write of a row.
pub(super) fn shape(order: &Order, table: &TableName, elsewhere: &Elsewhere) -> Shape {
    let plan = &order.plan;
    let by_source = Key::Columns(plan.key.clone());
    let mut columns = plan.columns.to_vec();
    columns.extend(made_key(&plan.columns, elsewhere).cloned());
    Shape::new(ShapeParts {
        op: Op::Insert,
        table: table.clone(),
        columns: columns.into(),
        key: match (elsewhere.transactional, &elsewhere.document_key) {
            (true, _) if !order.create => Key::Primary,
            (false, Some(_)) => Key::Primary,
            _ => by_source,
        },
        on_conflict: match elsewhere.transactional {
            true => OnConflict::Error,
            false => OnConflict::Update,
        },
        returning: Returning::Nothing,
    })
}

/// Returns the column that identifies documents, if its values are made from the rows' keys.
fn made_key<'a>(columns: &[Name], elsewhere: &'a Elsewhere) -> Option<&'a Name> {
    let key = elsewhere.document_key.as_ref();
    key.filter(|key| !columns.contains(key))
}

/// Returns the values of a row in the order of its shape. `name` is the row's name.
pub(super) fn values(
    columns: &[Name],
    elsewhere: &Elsewhere,
    name: &str,
    values: Box<[Value]>,
) -> Box<[Value]> {
    match made_key(columns, elsewhere) {
        None => values,
        Some(_) => {
            let mut values = values.into_vec();
            values.push(Value::text(document_key(name)));
            values.into()
        }
    }
}

/// Returns the key of the document that is made from the row with this key, an array of JSON. A
/// single number, or a single text of plain characters, stays as it is; any other key is replaced
/// by its fingerprint. Different rows have different keys.
fn document_key(key: &str) -> Box<str> {
    let inner = key
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or_default();
    let numeric = |text: &str| {
        let mut bytes = text.bytes();
        bytes.all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte))
    };
    // Characters of ArangoDB's keys that JSON does not escape:
    // <https://docs.arangodb.com/stable/concepts/data-structure/documents/#document-keys>.
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-:.@()+=;$!*'%".contains(&byte);
    let is_plain =
        |text: &str| (1..=MAX_KEY_BYTES).contains(&text.len()) && text.bytes().all(plain);
    let text = inner
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    match text {
        None if is_plain(inner) && numeric(inner) => inner.into(),
        // A text that looks like a number or a fingerprint could be confused with one.
        Some(text) if is_plain(text) && !numeric(text) && text.len() != 64 => text.into(),
        _ => fingerprint(key),
    }
}

/// Returns the fault of a batch without rows that can be written, because a column is missing in
/// all.
pub(super) fn unfilled(fault: &Fault) -> Fault {
    let message = format!(
        "{}; every row was refused so, though it has no NULL: the table has a column that the source does not have, that may not be NULL and \
         has no default; give it a default, or the source this column",
        fault.message
    );
    Fault::new(fault.class, fault.code.clone(), message)
}

/// Explains the fault of a database without transactions whose table has another key than the
/// source.
pub(super) fn of_key(fault: Fault, order: &Order) -> Fault {
    if fault.code != NOT_THE_KEY {
        return fault;
    }
    let message = format!(
        "{}; a database without transactions is moved to by the source's key, which is ({}): make it the primary key of the table, or name \
         the table's own by --key",
        fault.message,
        order.plan.key.join(", ")
    );
    Fault::new(fault.class, fault.code.clone(), message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_rows_are_different_documents() {
        let same = |key: &str, document: &str| assert_eq!(&*document_key(key), document);
        same("[17]", "17");
        same("[-2.50]", "-2.50");
        same("[\"sensor-17:a\"]", "sensor-17:a");
        let long = format!("[\"{}\"]", "a".repeat(64));
        for hashed in [
            "[\"17\"]",
            "[17,\"a\"]",
            "[\"a\",\"b\"]",
            "[\"a b\"]",
            "[\"a\\\"\"]",
            "[\"\"]",
            "[\"ä\"]",
            "[null]",
            "[true]",
            &long,
        ] {
            same(hashed, &fingerprint(hashed));
        }
    }
}
