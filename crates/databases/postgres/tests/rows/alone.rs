//! As if alone: random batches give the same answers and the same tables as the same units one by
//! one.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use windrow_core::{Rung, Shape, Unit, UnitOutcome, Value, Write};

use crate::support::*;

const SCHEMA: &str = "
create table t (
  id int primary key, mail text unique, n smallint not null check (n < 100), name varchar(4) default 'x',
  parent int references parent, twice int generated always as (n * 2) stored);
create table plain (a int, b text, n int, primary key (a, b));
create table seq (id serial primary key, n numeric(6,2) unique);";

/// One write, without its schema.
#[derive(Clone, Debug)]
struct ParsedStatement {
    kind: usize,
    values: Vec<Value>,
}

/// The shapes: made for a schema, with the same numbers in each.
fn shapes(schema: &str) -> Vec<Arc<Shape>> {
    let (t, plain, seq) = (
        format!("{schema}.t"),
        format!("{schema}.plain"),
        format!("{schema}.seq"),
    );
    let row = ["id", "mail", "n", "name", "parent"];
    vec![
        insert(&t, &row).shape(),
        insert(&t, &row).returning(&["id", "twice"]).shape(),
        insert(&t, &row).ignore().shape(),
        insert(&t, &row).upsert().returning(&["id", "n"]).shape(),
        insert(&t, &row).upsert().key(&["mail"]).shape(),
        update(&t, &["n", "name"]).shape(),
        update(&t, &["mail"]).returning(&["mail"]).shape(),
        update(&t, &["n"]).key(&["mail"]).shape(),
        delete(&t).returning(&["n"]).shape(),
        get(&t).shape(),
        insert(&plain, &["a", "b", "n"]).shape(),
        insert(&plain, &["a", "b", "n"]).upsert().shape(),
        update(&plain, &["n"]).returning(&["n"]).shape(),
        delete(&plain).shape(),
        insert(&seq, &["n"]).shape(),
        insert(&seq, &["n"]).returning(&["n"]).shape(),
    ]
}

/// Values that fail are rare, so that most batches are joined; `rare` says how rare.
fn id(rare: u32) -> impl Strategy<Value = Value> {
    prop_oneof![
        rare => (0..40).prop_map(Value::from),
        1 => Just(Value::text("007")),
        1 => Just(Value::text("x")),
        1 => Just(Value::Null)
    ]
}

fn mail(rare: u32) -> impl Strategy<Value = Value> {
    prop_oneof![
        rare => (0..60).prop_map(|n| Value::text(format!("m{n}"))),
        3 => Just(Value::Null)
    ]
}

fn small(rare: u32) -> impl Strategy<Value = Value> {
    prop_oneof![
        rare => (0..100).prop_map(Value::from),
        1 => Just(Value::from(100)),
        1 => Just(Value::from(70_000)),
        1 => Just(Value::from("many")),
        1 => Just(Value::Null)
    ]
}

fn name(rare: u32) -> impl Strategy<Value = Value> {
    prop_oneof![
        rare => "[a-z'\"\\\\]{0,4}".prop_map(Value::from),
        1 => Just(Value::from("too long")),
        1 => Just(Value::from("a\0"))
    ]
}

fn parent(rare: u32) -> impl Strategy<Value = Value> {
    prop_oneof![
        rare => Just(Value::Null),
        rare => Just(Value::from(1)),
        1 => Just(Value::from(99))
    ]
}

fn decimal(rare: u32) -> impl Strategy<Value = Value> {
    prop_oneof![
        rare => (0..200).prop_map(|n| number(&format!("{}.{}", n / 4, n % 4 * 25))),
        1 => Just(number("12345.6"))
    ]
}

fn parsed(rare: u32) -> impl Strategy<Value = ParsedStatement> {
    let (id, mail) = (move || id(rare), move || mail(rare));
    let (small, name) = (move || small(rare), move || name(rare));
    let t = (0..5_usize, id(), mail(), small(), name(), parent(rare))
        .prop_map(|(kind, id, mail, n, name, parent)| (kind, vec![id, mail, n, name, parent]));
    let changes = prop_oneof![
        (small(), name(), id()).prop_map(|(n, name, id)| (5, vec![n, name, id])),
        (mail(), id()).prop_map(|(mail, id)| (6, vec![mail, id])),
        (small(), mail()).prop_map(|(n, mail)| (7, vec![n, mail])),
        (8..10_usize, id()).prop_map(|(kind, id)| (kind, vec![id])),
    ];
    let plain = prop_oneof![
        (10..12_usize, id(), name(), small()).prop_map(|(kind, a, b, n)| (kind, vec![a, b, n])),
        (small(), id(), name()).prop_map(|(n, a, b)| (12, vec![n, a, b])),
        (id(), name()).prop_map(|(a, b)| (13, vec![a, b])),
        (14..16_usize, decimal(rare)).prop_map(|(kind, n)| (kind, vec![n])),
    ];
    prop_oneof![3 => t, 3 => changes, 3 => plain]
        .prop_map(|(kind, values)| ParsedStatement { kind, values })
}

/// Batches of one focus have many writes of few shapes, so that they fuse.
fn batch() -> impl Strategy<Value = Vec<Vec<ParsedStatement>>> {
    let units = |rare| {
        let unit = prop_oneof![
            30 => prop::collection::vec(parsed(rare), 1),
            1 => prop::collection::vec(parsed(rare), 2..6)
        ];
        prop::collection::vec(unit, 1..150)
    };
    let mixed = prop_oneof![units(30), units(300), units(3000)];
    (mixed, prop::option::of((0..16_usize, 0..16_usize))).prop_map(|(units, focus)| match focus {
        None => units,
        Some((a, b)) => {
            let focused = |d: &ParsedStatement| d.kind == a || d.kind == b || (a < 5 && d.kind < 5);
            let units = units.into_iter();
            units.filter(|unit| unit.iter().all(focused)).collect()
        }
    })
}

fn unit_of(shapes: &[Arc<Shape>], parsed: &[ParsedStatement]) -> Unit {
    let write = |d: &ParsedStatement| Write::new(shapes[d.kind].clone(), d.values.clone());
    match parsed {
        [one] => Unit::one(write(one)),
        more => Unit::of(more.iter().map(write)),
    }
}

/// What is compared: everything but the schema's name.
fn plain(outcome: &UnitOutcome) -> String {
    format!("{outcome:?}")
}

const CONTENTS: &str = "select (select json_agg(t order by id) from S.t), (select json_agg(p order by a, b) from S.plain p), (select json_agg(n order by n) from S.seq)";

#[test]
fn random_batches_are_as_if_alone() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut bed = runtime.block_on(Bed::new(&format!(
        "create schema a; create schema b; create table parent (id int primary key); insert into parent values (1);
         set search_path = a, public; {SCHEMA} set search_path = b, public; {SCHEMA}"
    )));
    let (joined, alone) = (shapes("a"), shapes("b"));
    let cases = std::env::var("PROPTEST_CASES").ok();
    let mut runner = TestRunner::new(Config {
        cases: cases.and_then(|n| n.parse().ok()).unwrap_or(60),
        failure_persistence: None,
        ..Config::default()
    });
    let batches = prop::collection::vec(batch(), 1..6);
    let fused = std::cell::Cell::new(0);
    let bed = std::cell::RefCell::new(&mut bed);
    runner
        .run(&batches, |batches| {
            let mut bed = bed.borrow_mut();
            bed.sql("truncate a.t, a.plain, a.seq, b.t, b.plain, b.seq");
            for batch in &batches {
                let units: Vec<Unit> = batch.iter().map(|d| unit_of(&joined, d)).collect();
                let report = runtime.block_on(bed.run(&units));
                fused.set(fused.get() + rung(&report, Rung::Fused));
                let outcomes: Vec<UnitOutcome> = report.verdicts.into_iter().map(told).collect();
                for (parsed, outcome) in batch.iter().zip(&outcomes) {
                    let unit = [unit_of(&alone, parsed)];
                    let expected = runtime.block_on(bed.outcomes(&unit));
                    prop_assert_eq!(plain(outcome), plain(&expected[0]), "of {:?}", parsed);
                }
                let contents = |schema| bed.sql(&CONTENTS.replace('S', schema));
                prop_assert_eq!(contents("a"), contents("b"));
            }
            Ok(())
        })
        .unwrap();
    assert!(fused.get() > 100, "few were joined: {fused:?}");
}
