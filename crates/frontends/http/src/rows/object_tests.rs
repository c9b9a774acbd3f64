use std::sync::Arc;

use proptest::prelude::*;
use windrow_core::shape::ShapeParts;
use windrow_core::{Key, Name, OnConflict, Op, Returning, Shape, TableName, Value};

use super::{Columns, read};

fn shape(columns: &[&str]) -> Arc<Shape> {
    Arc::new(Shape::new(ShapeParts {
        op: Op::Insert,
        table: TableName::bare("t"),
        columns: columns.iter().map(|c| Name::from(*c)).collect(),
        key: Key::Primary,
        on_conflict: OnConflict::Error,
        returning: Returning::Nothing,
    }))
}

fn named(text: &str, guess: &[&str]) -> (Vec<String>, Vec<Value>) {
    let guess = shape(guess);
    let (columns, values) = read(text.as_bytes(), Some(&guess), 0).unwrap();
    let columns = match columns {
        Columns::Guessed => guess.columns.to_vec(),
        Columns::Named(names) => names,
    };
    (columns.iter().map(ToString::to_string).collect(), values)
}

fn message(text: &[u8]) -> (u64, u64, String) {
    let error = read(text, None, 0).unwrap_err();
    (
        error.position.line,
        error.position.column,
        error.fault.message.into(),
    )
}

#[test]
fn every_kind_of_value() {
    let text = r#" {"i":-7,"n":1.50,"big":18446744073709551616,"e":1e400,"s":"a\"\u00e9\ud83d\ude00","p":"plain","t":true,"f":false,"z":null,"a":[1, {"x":"]"}],"o":{}} "#;
    let (columns, values) = named(text, &[]);
    assert_eq!(
        columns,
        ["i", "n", "big", "e", "s", "p", "t", "f", "z", "a", "o"]
    );
    assert_eq!(
        values,
        [
            Value::Int(-7),
            Value::Number("1.50".into()),
            Value::Number("18446744073709551616".into()),
            Value::Number("1e400".into()),
            Value::text("a\"é😀"),
            Value::text("plain"),
            Value::Bool(true),
            Value::Bool(false),
            Value::Null,
            Value::Json(r#"[1, {"x":"]"}]"#.into()),
            Value::Json("{}".into()),
        ]
    );
}

#[test]
fn the_guess_changes_nothing_but_the_cost() {
    let text = r#"{"a":1,"b":2,"c\n":3}"#;
    let plain = named(text, &[]);
    for guess in [
        &["a", "b", "c\n"][..],
        &["a"],
        &["a", "b", "c\n", "d"],
        &["x", "b"],
        &["b", "a", "c\n"],
    ] {
        assert_eq!(named(text, guess), plain, "{guess:?}");
    }
    let guess = shape(&["a", "b", "c\n"]);
    let (columns, _) = read(text.as_bytes(), Some(&guess), 0).unwrap();
    assert!(matches!(columns, Columns::Guessed));
    assert_eq!(named("{}", &["a"]), (vec![], vec![]));
}

#[test]
fn says_where_and_why() {
    assert_eq!(
        message(b"{\"a\":1,\n \"b\":}").0,
        2,
        "the line of the second field"
    );
    for (text, part) in [
        (&b"{\"a\":1,\"a\":2}"[..], "\"a\" occurs twice"),
        (b"{\"a\":1} x", "trailing characters"),
        (b"[1]", "expected a JSON object"),
        (b"5", "expected a JSON object"),
        (b"", "EOF while parsing"),
        (b"{\"a\":\"\xff\"}", "invalid unicode"),
        (b"{\"a\":\"\\ud800\"}", "hex escape"),
        (b"{\"\":1}", "empty"),
        (b"{\"a\":01}", "invalid number"),
        (b"{\"a\":1", "EOF"),
    ] {
        let (_, _, found) = message(text);
        assert!(
            found.contains(part),
            "{found:?} for {:?}",
            String::from_utf8_lossy(text)
        );
    }
}

#[test]
fn duplicates_behind_the_guess_are_seen() {
    let guess = shape(&["a", "b"]);
    let error = read(br#"{"a":1,"b":2,"a":3}"#, Some(&guess), 0).unwrap_err();
    assert!(error.fault.message.contains("twice"));
}

#[test]
fn nesting_has_a_limit_that_is_named() {
    let nested = |n: usize| format!("{{\"a\":{}{}}}", "[".repeat(n), "]".repeat(n));
    assert!(read(nested(127).as_bytes(), None, 0).is_ok());
    let (.., found) = message(nested(128).as_bytes());
    assert!(found.contains("128"), "{found}");
    assert!(message(nested(100_000).as_bytes()).2.contains("128"));
    assert!(read(br#"{"a":["[[[[[[[[[[[[[\"[[[["]}"#, None, 0).is_ok());
}

#[test]
fn columns_have_a_limit_that_is_named() {
    let fields: Vec<_> = (0..1601).map(|n| format!("\"c{n}\":1")).collect();
    let (.., found) = message(format!("{{{}}}", fields.join(",")).as_bytes());
    assert!(found.contains("1600"), "{found}");
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        drop(read(&bytes, None, 0));
    }

    /// Reads the same objects of distinct names as serde_json does, with the same names.
    #[test]
    fn agrees_with_serde_json(text in r#"[{]("[ab]{1,2}":([0-9.e-]{1,4}|null|"[a\\"]{0,3}"|\[[0-9,]{0,4}\]),?){0,3}[}]?"#) {
        let tree = serde_json::from_str::<serde_json::Value>(&text);
        match read(text.as_bytes(), None, 0) {
            Ok((Columns::Named(names), values)) => {
                let tree = tree.unwrap();
                prop_assert_eq!(tree.as_object().unwrap().len(), names.len());
                for (name, value) in names.iter().zip(&values) {
                    prop_assert_eq!(tree[&**name].is_null(), value.is_null());
                }
            }
            Ok((Columns::Guessed, _)) => prop_assert!(false, "nothing was guessed"),
            Err(error) => prop_assert!(tree.is_err() || error.fault.message.contains("twice")),
        }
    }
}
