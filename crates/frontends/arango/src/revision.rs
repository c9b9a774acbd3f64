//! Computes `_rev` for databases that do not store one.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};
use windrow_core::{Returned, Value};
use windrow_http::extension::json;

use crate::attributes::REV;

/// Returns the revision of a row: its column `_rev` if the table has one, or else 16 characters of
/// a hash over the names and values of all columns. Equal rows have equal revisions in all
/// processes.
pub(crate) fn of(returned: &Returned, row: &[Value]) -> String {
    if let Some(own) = cell(returned, row, REV).filter(|own| !own.is_null()) {
        return text_of(own).into_owned();
    }
    let mut hash = Sha256::new();
    let mut text = Vec::with_capacity(64);
    for (name, value) in returned.columns.iter().zip(row) {
        text.clear();
        json::string(&mut text, name);
        text.push(b':');
        json::value(&mut text, value);
        text.push(b',');
        hash.update(&text);
    }
    let hash = hash.finalize();
    URL_SAFE_NO_PAD.encode(hash.get(..12).unwrap_or_default())
}

/// Returns the value of a column.
pub(crate) fn cell<'r>(returned: &Returned, row: &'r [Value], name: &str) -> Option<&'r Value> {
    let place = returned.columns.iter().position(|column| **column == *name);
    row.get(place?)
}

/// Returns a value as text, the type of ArangoDB's keys and revisions.
pub(crate) fn text_of(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Null => "".into(),
        Value::Bool(b) => b.to_string().into(),
        Value::Int(n) => n.to_string().into(),
        Value::Number(text) | Value::Text(text) | Value::Json(text) => (&**text).into(),
        Value::Bytes(bytes) => STANDARD.encode(bytes).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn returned(columns: &[&str]) -> Returned {
        Returned {
            columns: columns.iter().map(|c| (*c).into()).collect(),
            rows: Vec::new(),
        }
    }

    #[test]
    fn equal_rows_have_equal_revisions() {
        let columns = returned(&["_key", "a"]);
        let of = |a: Value| of(&columns, &[Value::text("k"), a]);
        assert_eq!(of(Value::Int(1)), of(Value::Int(1)));
        assert_ne!(of(Value::Int(1)), of(Value::text("1")));
        assert_ne!(of(Value::Null), of(Value::text("")));
        assert_eq!(of(Value::Int(1)).len(), 16);
    }

    #[test]
    fn a_table_may_keep_its_own() {
        let columns = returned(&["_key", "_rev"]);
        assert_eq!(of(&columns, &[Value::text("k"), Value::Int(7)]), "7");
        assert_eq!(of(&columns, &[Value::text("k"), Value::Null]).len(), 16);
    }
}
