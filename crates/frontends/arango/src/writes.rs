//! Converts documents to writes.

use windrow_core::{Op, Value, Write};
use windrow_http::extension::Plan;

use crate::attributes::KEY;
use crate::document::Document;
use crate::error::Error;
use crate::key;
use crate::request::DocumentRequest;

/// Returns the write that inserts a document, and its key, which is generated if the document has
/// none.
pub(crate) fn insert(
    request: &DocumentRequest<'_>,
    plan: &Plan,
    text: &[u8],
) -> Result<(Box<str>, Write), Error> {
    let mut document = Document::read(text, plan.guess().as_ref())?;
    document.check_merge(&request.options, Op::Insert)?;
    let key = match document.key.take() {
        Some(key) => {
            key::check(&key)?;
            key
        }
        None => key::generate(),
    };
    // At the front, where clients put it too, so that the next document's columns match the guess.
    document.names.insert(0, KEY.into());
    document.values.insert(0, Value::Text(key.clone()));
    let write = Write::new(plan.shape(document.names), document.values);
    Ok((key, write))
}

/// Returns the write that sets a document's attributes in the row with a key.
pub(crate) fn change(
    request: &DocumentRequest<'_>,
    plan: &Plan,
    document: Document,
    key: &str,
) -> Result<Write, Error> {
    document.check_merge(&request.options, Op::Update)?;
    let (mut names, mut values) = (document.names, document.values);
    if names.is_empty() {
        // A document without attributes sets the key to itself, so that the row is counted and
        // returned.
        names.push(KEY.into());
        values.push(Value::text(key));
    }
    values.push(Value::text(key));
    Ok(Write::new(plan.shape(names), values))
}

/// Returns the write that removes or reads the row with a key.
pub(crate) fn of_key(plan: &Plan, key: &str) -> Write {
    Write::new(plan.without_columns(), [Value::text(key)])
}
