use std::sync::Arc;

use super::*;
use crate::catalog::column::sample;

fn column(kind: Kind, narrowed: i32) -> Column {
    Column {
        typmod: narrowed,
        narrowed,
        ..sample(kind)
    }
}

fn judge(kind: Kind, narrowed: i32, value: impl Into<Value>) -> Fit {
    fit(&column(kind, narrowed), &value.into(), true)
}

fn number(text: &str) -> Value {
    Value::Number(text.into())
}

#[test]
fn what_cannot_fit_is_known() {
    let numeric_5_2 = ((5 << 16) | 2) + 4;
    let mood = Kind::Enum(Arc::from([Box::from("ok")]));
    for (fit, why) in [
        (judge(Kind::Int2, -1, 40_000), "out of range"),
        (judge(Kind::Int4, -1, "x"), "not a number"),
        (judge(Kind::Int4, -1, number("1.5")), "not whole"),
        (judge(Kind::Float8, -1, number("1e999")), "overflow"),
        (judge(Kind::Numeric, numeric_5_2, 1000), "too many digits"),
        (
            judge(Kind::Numeric, numeric_5_2, number("1000.5")),
            "too many digits",
        ),
        (judge(Kind::Numeric, -1, "abc"), "not a number"),
        (judge(Kind::Text, 3 + 4, "abcd"), "too long"),
        (judge(Kind::Text, -1, "a\0b"), "zero byte"),
        (judge(Kind::Text, -1, Value::Null), "null"),
        (judge(Kind::Uuid, -1, "abc"), "not a uuid"),
        (judge(mood, -1, "bad"), "not a label"),
        (judge(Kind::Timestamptz, -1, "soon"), "no date"),
        (
            judge(Kind::Jsonb, -1, Value::Json(r#"{"a":"\u0000"}"#.into())),
            "zero",
        ),
    ] {
        assert_eq!(fit, Fit::Bad, "{why}");
    }
}

#[test]
fn what_fits_is_known() {
    let numeric_5_2 = ((5 << 16) | 2) + 4;
    let scale_beyond = ((3 << 16) | 5) + 4;
    for (fit, why) in [
        (judge(Kind::Int2, -1, -32_768), "edge"),
        (judge(Kind::Int8, -1, "12"), "digits in a text"),
        (
            judge(Kind::Numeric, numeric_5_2, number("-999.999")),
            "rounded",
        ),
        (judge(Kind::Numeric, numeric_5_2, 0), "zero"),
        (
            judge(Kind::Numeric, scale_beyond, number("0.00123")),
            "scale past precision",
        ),
        (judge(Kind::Text, 3 + 4, "äöü"), "characters, not bytes"),
        (judge(Kind::Timestamptz, -1, "2013-01-01T06:00:00Z"), "iso"),
        (judge(Kind::Json, -1, "any text"), "a string"),
        (judge(Kind::Bytea, -1, "aGk="), "base64"),
    ] {
        assert_eq!(fit, Fit::Sure, "{why}");
    }
}

#[test]
fn the_server_is_asked_where_only_it_knows() {
    assert_eq!(judge(Kind::Bool, -1, "yes"), Fit::Unsure);
    assert_eq!(judge(Kind::Date, -1, "1 Jan 2020"), Fit::Unsure);
    assert_eq!(judge(Kind::Bytea, -1, "\\xzz"), Fit::Unsure);
    assert!(matches!(judge(Kind::Bytea, -1, "a b"), Fit::Unwritable(_)));
    let loose = fit(&column(Kind::Int4, -1), &Value::Null, false);
    assert_eq!(loose, Fit::Sure, "a trigger may fill it in");
}
