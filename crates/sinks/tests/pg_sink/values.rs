//! A value means the same to a column whether it travels alone or with others: random spellings, good and bad.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use windrow_core::{Unit, UnitOutcome, Value};

use crate::support::*;

const TYPES: [&str; 22] = [
    "smallint",
    "int",
    "bigint",
    "real",
    "double precision",
    "numeric",
    "numeric(5,2)",
    "boolean",
    "text",
    "varchar(5)",
    "char(5)",
    "bytea",
    "uuid",
    "json",
    "jsonb",
    "timestamptz",
    "timestamp",
    "timestamptz(1)",
    "date",
    "mood",
    "int[]",
    "text[]",
];

fn digits() -> impl Strategy<Value = String> {
    prop_oneof![
        "-?[0-9]{1,5}",
        "-?[0-9]{1,20}",
        "[+-]?[0-9]{0,4}\\.[0-9]{0,9}",
        "-?[0-9]\\.[0-9]{1,20}[eE][+-]?[0-9]{1,3}",
        "(NaN|nan|inf|-Infinity|0x1F|1_000| 1|1 |-0|1e|\\.|)",
    ]
}

fn moment() -> impl Strategy<Value = String> {
    let time = "[T ]?([0-2][0-9]:[0-6][0-9](:[0-6][0-9](\\.[0-9]{1,8})?)?)?";
    let zone = "(Z|z|\\+[01][0-9]|-[01][0-9]:?[0-5][05]| UTC|)";
    prop_oneof![
        (
            "[12][0-9]{3}-(0[1-9]|1[0-3])-(0[1-9]|[12][0-9]|3[01])",
            time,
            zone
        )
            .prop_map(|(date, time, zone)| format!("{date}{time}{zone}")),
        "(infinity|today|epoch|2020-1-1|20200101|1 Jan 2020|2020-01-01 BC|10000-01-01|0000-01-01)",
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let jsons = [
        "{}",
        "[]",
        "[1, null, 3]",
        "[[1,2],[3,4]]",
        "[[1],[2,3]]",
        "[\"a\\\"b\", \"\", \"null\", \"{\"]",
        "{\"a\": \"\\u0000\"}",
        "[1.5]",
        "[true]",
        "[{\"a\": 1}]",
    ];
    prop_oneof![
        3 => any::<i64>().prop_map(Value::from),
        6 => (-200..200_i32).prop_map(Value::from),
        4 => digits().prop_filter_map("a JSON number", |d| serde_json::from_str::<serde_json::Number>(&d).ok().map(|_| number(&d))),
        6 => digits().prop_map(Value::from),
        8 => moment().prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        2 => prop::sample::select(vec!["t", "f", "true", "FALSE", "yes", "on", "1", "of", "ok", "sad", ""]).prop_map(Value::from),
        4 => "\\PC{0,8}".prop_map(Value::from),
        2 => "[a-zA-Z0-9+/]{4}{1,3}(aGk=|)".prop_map(Value::from),
        1 => "\\\\x[0-9a-g]{0,6}".prop_map(Value::from),
        2 => "[0-9a-fA-F]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}".prop_map(Value::from),
        1 => "[{]?[0-9a-f]{32}[}]?".prop_map(Value::from),
        2 => prop::sample::select(jsons.to_vec()).prop_map(json),
        1 => prop::collection::vec(any::<u8>(), 0..5).prop_map(Value::from),
        1 => Just(Value::Null),
        1 => Just(Value::from("a\0b")),
    ]
}

/// `NaN` is equal to itself here, and what is compared is what is stored, digit for digit.
fn contents(bed: &Bed, schema: &str, column: usize) -> String {
    bed.sql(&format!("select id, c from {schema}.v{column} order by id"))
}

#[test]
fn any_spelling_means_the_same_alone_and_in_company() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut sql = "create type mood as enum ('sad', 'ok');".to_owned();
    for schema in ["a", "b"] {
        sql.push_str(&format!("create schema {schema};"));
        for (n, name) in TYPES.iter().enumerate() {
            sql.push_str(&format!(
                "create table {schema}.v{n} (id int primary key, c {name});"
            ));
        }
    }
    let mut bed = runtime.block_on(Bed::new(&sql));
    let cases = std::env::var("PROPTEST_CASES").ok();
    let mut runner = TestRunner::new(Config {
        cases: cases.and_then(|n| n.parse().ok()).unwrap_or(150),
        failure_persistence: None,
        ..Config::default()
    });
    let bed = std::cell::RefCell::new(&mut bed);
    let samples = (0..TYPES.len(), prop::collection::vec(value(), 8..40));
    runner
        .run(&samples, |(column, values)| {
            let mut bed = bed.borrow_mut();
            bed.sql(&format!("truncate a.v{column}, b.v{column}"));
            let units = |schema: &str| -> Vec<Unit> {
                let shape = insert(&format!("{schema}.v{column}"), &["id", "c"]).shape();
                let rows = (0_i32..).zip(&values);
                rows.map(|(id, v)| unit(&shape, vec![id.into(), v.clone()]))
                    .collect()
            };
            let joined = runtime.block_on(bed.outcomes(&units("a")));
            let mut alone: Vec<UnitOutcome> = Vec::new();
            for unit in units("b") {
                alone.extend(runtime.block_on(bed.outcomes(&[unit])));
            }
            for ((value, joined), alone) in values.iter().zip(&joined).zip(&alone) {
                prop_assert_eq!(joined, alone, "{:?} as {}", value, TYPES[column]);
            }
            prop_assert_eq!(
                contents(&bed, "a", column),
                contents(&bed, "b", column),
                "{} of {:?}",
                TYPES[column],
                values
            );
            Ok(())
        })
        .unwrap();
}
