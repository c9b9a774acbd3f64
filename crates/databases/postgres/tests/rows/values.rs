//! A value means the same to a column whether it travels alone or with others: random spellings,
//! good and bad.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use windrow_core::{Rung, Unit, UnitOutcome, Value};

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
        "-?[0-9]{1,3}(\\.[0-9]{1,3})?",
        "-?[0-9]{1,20}",
        "[+-]?[0-9]{0,4}\\.[0-9]{0,9}",
        "-?[0-9]\\.[0-9]{1,20}[eE][+-]?[0-9]{1,3}",
        "(NaN|nan|inf|-Infinity|0x1F|1_000| 1|1 |-0|1e|\\.|)",
    ]
}

fn moment() -> impl Strategy<Value = String> {
    let time = "[T ]([01][0-9]|2[0-4]):[0-6][0-9](:[0-5][0-9](\\.[0-9]{1,8})?)?";
    let zone = "(Z|z|\\+[01][0-9]|-[01][0-9]:?[0-5][05]| UTC|)";
    prop_oneof![
        2 => "[12][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9])",
        6 => (
            "[12][0-9]{3}-(0[1-9]|1[0-3])-(0[1-9]|[12][0-9]|3[01])",
            time,
            zone
        )
            .prop_map(|(date, time, zone)| format!("{date}{time}{zone}")),
        1 => "(infinity|today|epoch|2020-1-1|20200101|1 Jan 2020|2020-01-01 BC|10000-01-01|0000-01-01)",
    ]
}

fn jsons() -> impl Strategy<Value = Value> {
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
    prop::sample::select(jsons.to_vec()).prop_map(json)
}

fn numbers() -> impl Strategy<Value = Value> {
    let as_number = |digits: String| {
        let parsed = serde_json::from_str::<serde_json::Number>(&digits);
        parsed.ok().map(|_| number(&digits))
    };
    prop_oneof![
        1 => any::<i64>().prop_map(Value::from),
        6 => (-200..200_i32).prop_map(Value::from),
        4 => digits().prop_filter_map("a JSON number", as_number),
        4 => digits().prop_map(Value::from),
    ]
}

fn words() -> impl Strategy<Value = Value> {
    let words = vec![
        "t", "f", "true", "FALSE", "yes", "on", "1", "of", "ok", "sad", "",
    ];
    prop_oneof![
        any::<bool>().prop_map(Value::from),
        prop::sample::select(words).prop_map(Value::from)
    ]
}

fn texts() -> impl Strategy<Value = Value> {
    prop_oneof![
        6 => "\\PC{0,5}".prop_map(Value::from),
        2 => "\\PC{0,8}".prop_map(Value::from),
        1 => "[a-c]{0,5} {0,3}".prop_map(Value::from),
        1 => Just(Value::from("a\0b")),
    ]
}

fn binaries() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => "([a-zA-Z0-9+/]{4}){0,3}(aGk=|)".prop_map(Value::from),
        1 => "\\\\x[0-9a-g]{0,6}".prop_map(Value::from),
        4 => prop::collection::vec(any::<u8>(), 0..5).prop_map(Value::from),
    ]
}

fn uuids() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => "[0-9a-fA-F]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}".prop_map(Value::from),
        1 => "[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}".prop_map(Value::from),
        1 => "[{]?[0-9a-f]{32}[}]?".prop_map(Value::from),
    ]
}

/// Values of any kind.
fn any_value() -> BoxedStrategy<Value> {
    prop_oneof![
        numbers(),
        moment().prop_map(Value::from),
        words(),
        texts(),
        binaries(),
        uuids(),
        jsons(),
        Just(Value::Null),
    ]
    .boxed()
}

/// Spellings that every server takes, so that they travel together.
fn good_value_for(column: &str) -> BoxedStrategy<Value> {
    let time = "[T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\\.[0-9]{1,6})?)?";
    let zone = "(Z|z|\\+0[0-9]|-1[0-4]:?[0-5][05]|)";
    let day = || "[12][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-8])";
    match column {
        "smallint" | "int" | "bigint" => (-200..200_i32).prop_map(Value::from).boxed(),
        "real" | "double precision" | "numeric" | "numeric(5,2)" => {
            "-?[0-9]{1,3}(\\.[0-9]{1,9})?([eE]-?[0-9])?"
                .prop_map(Value::from)
                .boxed()
        }
        "boolean" => any::<bool>().prop_map(Value::from).boxed(),
        "mood" => "(sad|ok)".prop_map(Value::from).boxed(),
        "text" | "varchar(5)" | "char(5)" | "json" | "jsonb" => {
            "\\PC{0,3} {0,2}".prop_map(Value::from).boxed()
        }
        "bytea" => "([a-zA-Z0-9+/]{4}){0,3}(aGk=|)"
            .prop_map(Value::from)
            .boxed(),
        "uuid" => "[0-9a-fA-F]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
            .prop_map(Value::from)
            .boxed(),
        "date" => day().prop_map(Value::from).boxed(),
        "int[]" => "\\[[0-9]{1,3}(, ?(-[1-9]|null)){0,3}\\]"
            .prop_map(|t| json(&t))
            .boxed(),
        "text[]" => prop::collection::vec("\\PC{0,4}", 0..4)
            .prop_map(|texts| json(&serde_json::to_string(&texts).unwrap()))
            .boxed(),
        _ => (day(), time, zone)
            .prop_map(|(day, time, zone)| Value::text(format!("{day}{time}{zone}")))
            .boxed(),
    }
}

/// Spellings that mostly suit a column.
fn value_for(column: &str) -> BoxedStrategy<Value> {
    let suited = match column.split('(').next().unwrap_or_default() {
        "boolean" | "mood" => words().boxed(),
        "text" | "varchar" | "char" => texts().boxed(),
        "bytea" => binaries().boxed(),
        "uuid" => uuids().boxed(),
        "json" | "jsonb" | "int[]" | "text[]" => jsons().boxed(),
        "timestamptz" | "timestamp" | "date" => moment().prop_map(Value::from).boxed(),
        _ => numbers().boxed(),
    };
    prop_oneof![12 => suited, 1 => any_value()].boxed()
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
    let samples = (0..TYPES.len()).prop_flat_map(|column| {
        let name = TYPES[column];
        let values = prop_oneof![
            prop::collection::vec(value_for(name), 10..50),
            prop::collection::vec(good_value_for(name), 10..50)
        ];
        (Just(column), values)
    });
    let mut fused = std::cell::Cell::new(0);
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
            let report = runtime.block_on(bed.run(&units("a")));
            fused.set(fused.get() + rung(&report, Rung::Fused));
            let joined: Vec<UnitOutcome> = report.verdicts.into_iter().map(told).collect();
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
    assert!(*fused.get_mut() > 1500, "few were joined: {fused:?}");
}
