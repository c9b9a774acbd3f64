//! In batches or one by one: the same answers, the same tables.

use std::collections::BTreeMap;

use proptest::prelude::*;
use windrow_core::{SourceId, Unit, UnitOutcome, Value, Verdict, Write};

use crate::support::*;

const SCHEMA: &str = "
create table parent (id int primary key, v varchar(20));
create table t (
  id int primary key, u int unique, must varchar(5) not null, n tinyint check (n < 4), b varbinary(5),
  parent int, foreign key (parent) references parent (id) on delete cascade);
create table firm (a int, b varchar(5), v decimal(4,1), primary key (b, a));
create table names (k varchar(10) collate utf8mb4_unicode_ci primary key, v int not null default 3);";

const TABLES: [&str; 4] = ["parent", "t", "firm", "names"];

fn small() -> impl Strategy<Value = Value> {
    (0..6_i64).prop_map(Value::from)
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        8 => small(),
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(number("1.55")),
        1 => Just(number("300")),
        1 => "[a-c]{0,2}".prop_map(Value::from),
        1 => Just(Value::from("too long")),
        1 => Just(Value::from("aGk=")),
        1 => Just(Value::Bytes([7].into())),
    ]
}

fn name() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just("a"),
        Just("A"),
        Just("b"),
        Just("ä"),
        Just("b "),
        Just("ss"),
        Just("ß"),
        Just("c")
    ]
    .prop_map(Value::from)
}

fn pick(make: Make, how: u8) -> Make {
    match how % 3 {
        0 => make,
        1 => make.ignore(),
        _ => make.upsert(),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "a shorter way to say it")]
fn of(make: Make, row: Vec<Value>) -> Write {
    write(&make.shape(), row)
}

fn any_write() -> impl Strategy<Value = Write> {
    let parent = (small(), any_value(), any::<u8>())
        .prop_map(|(id, v, how)| of(pick(insert("parent", &["id", "v"]), how).all(), vec![id, v]));
    let t = (
        small(),
        any_value(),
        any_value(),
        any_value(),
        any_value(),
        any::<u8>(),
    )
        .prop_map(|(id, u, must, n, parent, how)| {
            let make = insert("t", &["id", "u", "must", "n", "parent"]);
            of(pick(make, how), vec![id, u, must, n, parent])
        });
    let firm = (small(), any_value(), any_value(), any::<u8>())
        .prop_map(|(a, b, v, how)| of(pick(insert("firm", &["a", "b", "v"]), how), vec![a, b, v]));
    let names = (name(), small(), any::<u8>())
        .prop_map(|(k, v, how)| of(pick(insert("names", &["k", "v"]), how), vec![k, v]));
    let change = (any_value(), small())
        .prop_map(|(v, id)| of(update("t", &["n"]).returning(&["id", "n"]), vec![v, id]));
    let change_firm = (any_value(), name(), small())
        .prop_map(|(v, b, a)| of(update("firm", &["v"]), vec![v, b, a]));
    let change_name =
        (any_value(), name()).prop_map(|(v, k)| of(update("names", &["v"]), vec![v, k]));
    let move_u = (any_value(), small()).prop_map(|(u, id)| of(update("t", &["u"]), vec![u, id]));
    let rest = prop_oneof![
        1 => small().prop_map(|id| of(delete("parent"), vec![id])),
        1 => small().prop_map(|id| of(delete("t").all(), vec![id])),
        3 => small().prop_map(|id| of(get("t"), vec![id])),
        1 => any_value().prop_map(|id| of(get("parent"), vec![id])),
        1 => name().prop_map(|k| of(delete("names"), vec![k])),
        1 => name().prop_map(|k| of(get("names"), vec![k])),
        1 => Just(of(insert("nowhere", &["a"]), vec![1.into()])),
        1 => Just(of(insert("t", &["nope"]), vec![1.into()])),
    ];
    prop_oneof![2 => parent, 3 => t, 2 => firm, 2 => names, 2 => change, 1 => change_firm, 1 => change_name, 1 => move_u, 4 => rest]
}

fn any_unit() -> impl Strategy<Value = Unit> {
    prop_oneof![
        6 => any_write().prop_map(Unit::one),
        1 => proptest::collection::vec(any_write(), 0..5).prop_map(Unit::of),
    ]
}

/// All of one source, whose order is kept: of several ones nobody could say what comes first.
fn of_one_source(mut units: Vec<Unit>) -> Vec<Unit> {
    for unit in &mut units {
        unit.hand_over(SourceId(1));
    }
    units
}

/// Runs the units on empty tables in batches of these sizes, again and again, and gives back all
/// outcomes and all tables.
async fn run(bed: &mut Bed, units: &[Unit], sizes: &[usize]) -> (Vec<String>, Vec<String>) {
    // Much sooner done than making the tables anew, which MariaDB syncs to the disk.
    bed.sql(&TABLES.map(|table| format!("delete from {table};")).concat());
    bed.executor = bed.connect().await;
    let mut outcomes = Vec::new();
    let mut sizes = sizes.iter().cycle();
    let mut rest = units;
    while !rest.is_empty() {
        let size = sizes.next().copied().unwrap_or(1).clamp(1, rest.len());
        let (batch, behind) = rest.split_at(size);
        rest = behind;
        for verdict in bed.run(batch).await.verdicts {
            match verdict {
                Verdict::Final(outcome) => outcomes.push(spelled(&outcome)),
                other => panic!("{other:?}"),
            }
        }
    }
    (outcomes, dump(bed))
}

/// All tables.
fn dump(bed: &Bed) -> Vec<String> {
    let tables = TABLES.iter();
    tables
        .map(|table| bed.sql(&format!("select * from {table} order by 1, 2")))
        .collect()
}

fn spelled(outcome: &UnitOutcome) -> String {
    match outcome {
        Ok(dones) => format!("{dones:?}"),
        Err(fault) => {
            let mut parts = BTreeMap::new();
            parts.insert("at", fault.at.to_string());
            parts.insert("fault", format!("{:?}", fault.fault));
            format!("{parts:?}")
        }
    }
}

/// Each write by itself, in the order in which the batches would have kept it, is what a client
/// alone would have done.
#[test]
fn batches_answer_as_single_writes() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let bed = std::cell::RefCell::new(runtime.block_on(Bed::new(SCHEMA)));
    let config = ProptestConfig {
        cases: 40,
        failure_persistence: None,
        max_shrink_iters: 200,
        ..ProptestConfig::default()
    };
    let strategy = (
        proptest::collection::vec(any_unit(), 1..50).prop_map(of_one_source),
        proptest::collection::vec(1..30_usize, 1..5),
    );
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let result = runner.run(&strategy, |(units, sizes)| {
        let mut bed = bed.borrow_mut();
        let alone = runtime.block_on(run(&mut bed, &units, &[1]));
        let together = runtime.block_on(run(&mut bed, &units, &sizes));
        prop_assert_eq!(alone, together);
        Ok(())
    });
    result.unwrap();
}

/// A batch of several sources.
type Sent = Vec<(u64, Unit)>;

fn sent() -> impl Strategy<Value = Sent> {
    proptest::collection::vec((0..3_u64, any_unit().boxed()), 1..9).boxed()
}

/// The first order of the units that keeps each source's own and begins with none of these.
fn order(batch: &Sent, tried: &[Vec<usize>], begun: Vec<usize>) -> Option<Vec<usize>> {
    if tried.contains(&begun) {
        return None;
    }
    if begun.len() == batch.len() {
        return Some(begun);
    }
    let open = |place: &usize| !begun.contains(place);
    let is_head = |place: &usize| {
        let mut before = (0..*place).filter(open);
        !before.any(|other| batch[other].0 == batch[*place].0)
    };
    let mut heads = (0..batch.len()).filter(open).filter(is_head);
    heads.find_map(|head| {
        let begun = begun.iter().copied().chain([head]).collect();
        order(batch, tried, begun)
    })
}

/// What each unit of a batch was told, and what was left behind it.
type Seen = (Vec<String>, Vec<String>);

/// How many orders are tried before a batch is left undecided.
const ORDERS: usize = 60;

/// Looks for an order in which each unit alone is told the same and leaves the same behind; adds it
/// to what was before. False: there is none. `None`: it was given up.
async fn explain(bed: &mut Bed, before: &mut Vec<Unit>, batch: &Sent, seen: &Seen) -> Option<bool> {
    let mut tried = Vec::new();
    while let Some(order) = order(batch, &tried, Vec::new()) {
        if tried.len() == ORDERS {
            return None;
        }
        run(bed, before, &[1]).await;
        let units: Vec<Unit> = order.iter().map(|place| batch[*place].1.clone()).collect();
        let mut same = 0;
        for (unit, place) in units.iter().zip(&order) {
            let told = bed.outcomes(std::slice::from_ref(unit)).await;
            if spelled(&told[0]) != seen.0[*place] {
                break;
            }
            same += 1;
        }
        if same == units.len() && dump(bed) == seen.1 {
            before.extend(units);
            return Some(true);
        }
        tried.push(order[..units.len().min(same + 1)].to_vec());
    }
    Some(false)
}

/// Several sources that pipeline: some order that keeps each one's own explains what all were told.
#[test]
fn pipelines_of_several_sources_are_told_what_some_order_of_them_tells() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let bed = std::cell::RefCell::new(runtime.block_on(Bed::new(SCHEMA)));
    let config = ProptestConfig {
        cases: 24,
        failure_persistence: None,
        max_shrink_iters: 200,
        ..ProptestConfig::default()
    };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let result = runner.run(&proptest::collection::vec(sent(), 1..4), |batches| {
        let mut bed = bed.borrow_mut();
        runtime.block_on(run(&mut bed, &[], &[1]));
        let mut seen = Vec::new();
        for batch in &batches {
            let units: Vec<Unit> = batch.iter().map(of_its_source).collect();
            let told = runtime.block_on(bed.outcomes(&units));
            seen.push((told.iter().map(spelled).collect(), dump(&bed)));
        }
        let mut before = Vec::new();
        for (batch, seen) in batches.iter().zip(&seen) {
            let found = runtime.block_on(explain(&mut bed, &mut before, batch, seen));
            prop_assert!(found != Some(false), "no order explains {:#?}", seen);
            if found.is_none() {
                break;
            }
        }
        Ok(())
    });
    result.unwrap();
}

fn of_its_source((source, unit): &(u64, Unit)) -> Unit {
    let mut unit = unit.clone();
    unit.hand_over(SourceId(source + 1));
    unit
}
