use proptest::prelude::*;
use windrow_core::Value;

use super::Csv;
use crate::query::CsvStyle;

fn csv(null: &str, delimiter: u8) -> Csv {
    Csv::new(CsvStyle {
        null: null.into(),
        delimiter: Some(delimiter),
    })
}

fn text(t: &str) -> Value {
    Value::text(t)
}

#[test]
fn a_header_with_another_delimiter_is_refused_with_advice() {
    let header = |delimiter, text: &[u8]| {
        let null = "".into();
        let csv = Csv::new(CsvStyle { null, delimiter });
        let names = csv.header(text).map_err(|fault| fault.message);
        names.map(|names| names.len())
    };
    let found = header(None, b"id;v\n").unwrap_err();
    assert!(
        found.contains("if ';' stands between its columns, say ?delimiter=%3B"),
        "{found}"
    );
    let found = header(None, b"id\tv\r\n").unwrap_err();
    assert!(
        found.contains("say ?delimiter=%09, and ?delimiter=%2C if"),
        "{found}"
    );
    assert_eq!(header(Some(b','), b"id;v\n"), Ok(1));
    assert_eq!(header(Some(b';'), b"id;v\n"), Ok(2));
    assert_eq!(header(None, b"id\n"), Ok(1));
    assert_eq!(header(None, b"a;b,c\n"), Ok(2));
}

#[test]
fn only_a_field_without_quotes_is_null() {
    let values = csv("", b',').values(b"a,,\"\",\"x\"\r\n", 4).unwrap();
    assert_eq!(values, [text("a"), Value::Null, text(""), text("x")]);
    let values = csv("NA", b';').values(b"NA;\"NA\";;1,5\n", 4).unwrap();
    assert_eq!(values, [Value::Null, text("NA"), text(""), text("1,5")]);
}

#[test]
fn only_a_field_without_quotes_is_a_number() {
    let values = csv("", b',').values(b"1.50,\"1.50\",007\n", 3).unwrap();
    assert_eq!(
        values,
        [Value::Number("1.50".into()), text("1.50"), text("007")]
    );
}

#[test]
fn an_object_or_array_is_json_with_quotes_or_without() {
    let values = csv("", b';')
        .values(b"\"{\"\"a\"\": 1}\";[1,2];{1,2};[draft]\n", 4)
        .unwrap();
    let json = |t: &str| Value::Json(t.into());
    assert_eq!(
        values,
        [
            json("{\"a\": 1}"),
            json("[1,2]"),
            text("{1,2}"),
            text("[draft]")
        ]
    );
}

#[test]
fn a_quote_has_a_meaning_only_where_it_begins_a_field() {
    let values = csv("", b',')
        .values(b"\"a,\"\"b\"\"\n\",x\"y\"z,\"\"\"\",\"a\"\"\",5\" x", 5)
        .unwrap();
    let expected = ["a,\"b\"\n", "x\"y\"z", "\"", "a\"", "5\" x"];
    assert_eq!(values, expected.map(text));
    for bad in ["1,\"a\"b", "1,\"a\" ", "1,\"a\"\"\"b\""] {
        let error = csv("", b',').values(bad.as_bytes(), 2).unwrap_err();
        assert!(error.contains("closing quote of field 2"), "{error}");
    }
    let error = csv("", b',').header(b"a,\"b\"c\n").unwrap_err();
    assert!(error.message.contains("closing quote of field 2"));
}

#[test]
fn a_quote_within_a_field_does_not_reach_over_lines() {
    let mut csv = csv("", b',');
    assert_eq!(csv.cut(b"a,5\" x\n1,2\n"), Some(7));
    assert_eq!(csv.cut(b"1,2\n"), Some(4));
    assert_eq!(csv.cut(b"1,\"2\"\"\n\""), None);
    assert_eq!(csv.cut(b"\n"), Some(1));
    assert_eq!(csv.cut(b"\"a\"b\"\n"), Some(6));
}

#[test]
fn a_record_may_hold_line_ends() {
    let mut csv = csv("", b',');
    assert_eq!(csv.cut(b"a,\"b\nc"), None);
    assert!(csv.in_quotes());
    assert_eq!(csv.cut(b"\"\"d\",e\nf"), Some(7));
    assert!(!csv.in_quotes());
}

#[test]
fn says_how_many_fields_there_are() {
    let error = csv("", b',').values(b"1,2,3\n", 2).unwrap_err();
    assert!(error.contains("3 fields") && error.contains("header has 2"));
    assert!(
        csv("", b',')
            .values(b"\xff\n", 1)
            .unwrap_err()
            .contains("UTF-8")
    );
    let lines = "a,b\r1,2\r3,4\r";
    for (header, part) in [
        ("a,a", "twice"),
        ("a,", "empty"),
        ("\"\",b", "empty"),
        (lines, "CR alone"),
    ] {
        let error = csv("", b',').header(header.as_bytes()).unwrap_err();
        assert!(error.message.contains(part), "{header}");
    }
}

proptest! {
    /// Fields written with quotes are read back unchanged.
    #[test]
    fn quoted_fields_survive(fields in prop::collection::vec("[a\",;\n\ré ]{0,6}", 1..5)) {
        let line: Vec<String> = fields.iter().map(|f| format!("\"{}\"", f.replace('"', "\"\""))).collect();
        let line = format!("{}\n", line.join(","));
        let mut csv = csv("", b',');
        prop_assert_eq!(csv.cut(line.as_bytes()), Some(line.len()));
        let values = csv.values(line.as_bytes(), fields.len()).unwrap();
        let found: Vec<Value> = fields.iter().map(|f| text(f)).collect();
        prop_assert_eq!(values, found);
    }
}
