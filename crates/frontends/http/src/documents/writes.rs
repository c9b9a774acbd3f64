//! Documents to writes.

use windrow_core::{Op, Value, Write};

use super::attributes::KEY;
use super::document::Document;
use super::key;
use super::request::DocumentRequest;
use crate::answers::Refusal;
use crate::plan::Plan;

/// The write that inserts a document, and its key: made here where the document has none.
pub(super) fn insert(
    request: &DocumentRequest<'_>,
    plan: &Plan,
    text: &[u8],
) -> Result<(Box<str>, Write), Refusal> {
    let mut document = Document::read(text, plan.guess().as_ref())?;
    document.check_merge(&request.options, Op::Insert)?;
    let key = match document.key.take() {
        Some(key) => {
            key::check(&key)?;
            key
        }
        None => key::generate(),
    };
    // Before the others, where clients write it too: the next document's columns are then those
    // that are guessed.
    document.names.insert(0, KEY.into());
    document.values.insert(0, Value::Text(key.clone()));
    let write = Write::new(plan.shape(document.names), document.values);
    Ok((key, write))
}

/// The write that changes the attributes of a document in the row with a key.
pub(super) fn change(
    request: &DocumentRequest<'_>,
    plan: &Plan,
    document: Document,
    key: &str,
) -> Result<Write, Refusal> {
    document.check_merge(&request.options, Op::Update)?;
    let (mut names, mut values) = (document.names, document.values);
    if names.is_empty() {
        // Nothing is to change: the row is found, counted and given back all the same.
        names.push(KEY.into());
        values.push(Value::text(key));
    }
    values.push(Value::text(key));
    Ok(Write::new(plan.shape(names), values))
}

/// The write that takes nothing but a key: it removes or reads.
pub(super) fn of_key(plan: &Plan, key: &str) -> Write {
    Write::new(plan.without_columns(), [Value::text(key)])
}
