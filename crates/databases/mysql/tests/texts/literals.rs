//! Where literals begin and end: bound as parameters, they store the same as in the text.

use mysql_async::Value;
use proptest::prelude::*;
use windrow_sql::mysql::{lift, read};

use crate::support::{SQL_MODES, Session, try_all};

/// Literals and expressions that a server may read in the same way with a parameter in a literal's
/// place.
#[rustfmt::skip]
const VALUES: [&str; 60] = [
    "1", "-1", "+5", "- 7", "1.50", ".5", "5.", "1e3", "1E-3", "0x41", "0x4", "0b01000001", "x'4142'", "X'4a'", "b'01000001'", "B'1'",
    "'a'", "''", "'it''s'", "'a\"b'", "'a' 'b'", "'a'\n'b' /* c */ 'd'", "N'x'", "n'y' 'z'", "_utf8mb4'ö'", "_latin1 'a'", "_binary x'41'",
    "_utf8mb4 0x41", "'ö'", "'a\tb'", "'?'", "'-- '", "'/*'", "'#'", "';'", "'@v'", "'f()'", "null", "NULL", "true", "False",
    "concat('a', 'b')", "upper('x')", "coalesce(null, 'c')", "if(1, 'a', 'b')", "cast('1' as char)", "hex('a')", "(1)", "('a')",
    "date'2026-01-02'", "timestamp '2026-01-02 03:04:05'", "time'01:02:03'", "'2026-01-02' + interval 1 day",
    "case 1 when 1 then 'x' else 'y' end", "length('abc')", "json_object('k', 'v')", "1 in (1, 2)", "nullif('a', 'b')", "md5('a')", "substring('abc' from 2 for 1)",
];

/// Literals that depend on how backslashes and double quotes are read.
#[rustfmt::skip]
const OF_MODES: [&str; 15] = [
    r"'a\\'", r"'a\'", r"'\'''", r"'\n\0\Z\%'", r"'\''", "\"a\"", "\"a''b\"", "\"a\"\"b\"", r#""\"""#, r#""a\""#, r"'\x'", "'a\\\nb'", "'a\0b'",
    "'\\\0'", "\"\0\"",
];

/// Space and comments between tokens.
const GAPS: [&str; 8] = ["", " ", "  ", "\n", "/* ' */", " -- '\n", "#\"\n", "/**/ "];

fn value() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        3 => prop::sample::select(&VALUES[..]),
        1 => prop::sample::select(&OF_MODES[..]),
    ]
}

/// A value as the type of its literal: strings and numbers are compared differently.
fn typed(literal: &str, value: Value) -> Value {
    let plain = literal.replace(' ', "");
    match (plain.parse::<i64>(), plain.parse::<f64>()) {
        (Ok(number), _) => number.into(),
        (_, Ok(number)) if plain.contains(['e', 'E']) => number.into(),
        _ => value,
    }
}

#[test]
fn literals_are_parameters_with_the_same_value() {
    let session = Session::new(&["create table t (a varbinary(99), b varbinary(99))"]);
    let compared = std::cell::Cell::new(0);
    let tried = std::cell::Cell::new(0);
    let gap = || prop::sample::select(&GAPS[..]);
    let strategy = (
        0..SQL_MODES.len(),
        value(),
        value(),
        [gap(), gap(), gap(), gap()],
        0..3,
    );
    try_all(&strategy, |(mode, one, two, [g, h, i, j], form)| {
        let modes = session.mode(SQL_MODES[mode]);
        let text = match form {
            0 => format!("insert into{i} t (a,b){j} values ({g}{one}{h},{i}{two}{j})"),
            1 => format!("insert into t set a={g}{one}{h},b={i}{two}{j}"),
            _ => format!("update t{g} set a={h}{one}{g} , b{h}={i}{two}{j}"),
        };
        let Some(lifted) = lift(&text, modes) else {
            return;
        };
        // A string that ends where the second column was set: it is compared with the other value,
        // and dates and numbers are compared in another way than parameters.
        if !lifted.text.contains('b') {
            return;
        }
        let stored = |run: &dyn Fn() -> Option<u16>| {
            session.rows("delete from t").unwrap();
            session.rows("insert into t values ('old', 'row')").unwrap();
            let error = run();
            (
                error,
                session.table("select hex(a), hex(b) from t order by a = 'old', a, b"),
            )
        };
        let alone = stored(&|| session.rows(&text).err());
        let mut values = Vec::new();
        for place in &lifted.literals {
            // A wrong place is no value by itself.
            let found = session.one(&format!("select {}", &text[place.clone()]));
            match (found, alone.0) {
                (Ok(value), _) => values.push(typed(&text[place.clone()], value)),
                (Err(_), Some(_)) => return,
                (Err(error), None) => panic!("{error}: {:?} of {text}", &text[place.clone()]),
            }
        }
        // A text of its own: MySQL 9.7 converts strings wrongly in a statement whose parameters
        // had other types before.
        tried.set(tried.get() + 1);
        let prepared = format!("{} /* {} */", lifted.text, tried.get());
        let bound = stored(&|| session.execute(&prepared, values.clone()).err());
        assert_eq!(bound, alone, "{text} -> {lifted:?} {values:?}");
        if alone.0.is_none() {
            compared.set(compared.get() + 1);
            let is_update = text.starts_with("update");
            assert!(
                is_update || read(&lifted.text, modes).is_ok() || text.contains("md5"),
                "{text}"
            );
        }
    });
    assert!(
        compared.get() > 200,
        "only {} texts were compared",
        compared.get()
    );
}

#[test]
fn each_kind_of_literal_is_one() {
    let session = Session::new(&[]);
    for sql_mode in SQL_MODES {
        let modes = session.mode(sql_mode);
        for literal in VALUES.iter().chain(&OF_MODES) {
            let text = format!("update t set a = {literal}");
            let Some(lifted) = lift(&text, modes) else {
                continue;
            };
            if lifted.text == "update t set a = ?" {
                assert_eq!(&text[lifted.literals[0].clone()], *literal);
                let value = session.one(&format!("select {literal}"));
                assert!(
                    matches!(
                        value,
                        Ok(Value::NULL
                            | Value::Bytes(_)
                            | Value::Int(_)
                            | Value::UInt(_)
                            | Value::Float(_)
                            | Value::Double(_))
                    ),
                    "{literal} {value:?}"
                );
            }
        }
    }
}
