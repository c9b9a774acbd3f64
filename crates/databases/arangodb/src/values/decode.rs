//! Decodes returned documents.

use std::sync::Arc;

use serde_json::value::RawValue;
use windrow_core::{Name, Returned, Returning, Value};
use windrow_database::members::Members;

/// Returns the attributes of a document that a write asked for. A missing attribute is NULL.
pub(crate) fn returned(returning: &Returning, document: &Members<'_>) -> Returned {
    let of_raw = |raw: Option<&RawValue>| raw.map_or(Value::Null, |raw| value(raw.get()));
    let columns: Arc<[Name]> = match returning {
        Returning::Nothing => Arc::default(),
        Returning::All => document
            .0
            .iter()
            .map(|(name, _)| Name::from(&**name))
            .collect(),
        Returning::Columns(names) => names.iter().cloned().collect(),
    };
    let row = columns.iter().map(|name| of_raw(document.get(name)));
    let row: Box<[Value]> = row.collect();
    Returned {
        columns,
        rows: vec![row],
    }
}

/// Returns the attributes that a write asked for, without a row.
pub(crate) fn nothing(returning: &Returning) -> Returned {
    let columns = match returning {
        Returning::Columns(names) => names.iter().cloned().collect(),
        Returning::Nothing | Returning::All => Arc::default(),
    };
    Returned {
        columns,
        rows: Vec::new(),
    }
}

fn value(raw: &str) -> Value {
    match raw.as_bytes().first() {
        Some(b'n') => Value::Null,
        Some(b't') => Value::Bool(true),
        Some(b'f') => Value::Bool(false),
        Some(b'"') => serde_json::from_str::<String>(raw).map_or(Value::Null, Value::text),
        Some(b'{' | b'[') => Value::Json(raw.into()),
        _ => Value::number(raw),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_comes_back() {
        let text = r#"{"_key":"a","n":1.50,"s":"x\n","o":{"b":[1]},"z":null}"#;
        let document: Members<'_> = serde_json::from_str(text).unwrap();
        let all = returned(&Returning::All, &document);
        let names: Vec<&str> = all.columns.iter().map(|n| &**n).collect();
        assert_eq!(names, ["_key", "n", "s", "o", "z"]);
        let expected = [
            "a".into(),
            Value::Number("1.50".into()),
            "x\n".into(),
            Value::Json("{\"b\":[1]}".into()),
            Value::Null,
        ];
        assert_eq!(*all.rows[0], expected);
        let some = returned(
            &Returning::Columns(["s".into(), "no".into()].into()),
            &document,
        );
        assert_eq!(*some.rows[0], ["x\n".into(), Value::Null]);
    }
}
