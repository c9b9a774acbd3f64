//! Units of one source keep their order, whatever fails or waits; all others change places as it
//! suits.

use std::cell::RefCell;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use windrow_core::{FaultClass, Shape, SourceId, Unit, Value, Verdict};

use crate::lost::session;
use crate::support::*;
use windrow_testkit::row;

/// The units as those of one source.
fn of(source: u64, mut units: Vec<Unit>) -> Vec<Unit> {
    for unit in &mut units {
        unit.hand_over(SourceId(source));
    }
    units
}

#[tokio::test]
async fn a_row_that_refers_to_a_later_one_of_its_source_fails() {
    let mut bed = Bed::new("create table t (id int primary key, boss int references t)").await;
    let shape = insert("t", &["id", "boss"]).shape();
    let units = (1..40).rev().map(|n| {
        let boss = if n == 1 {
            Value::Null
        } else {
            Value::from(n - 1)
        };
        unit(&shape, vec![n.into(), boss])
    });
    let outcomes = bed.outcomes(&of(1, units.collect())).await;
    let (last, before) = outcomes.split_last().unwrap();
    assert!(last.is_ok());
    assert!(
        before
            .iter()
            .all(|o| fault(o).class == FaultClass::ForeignKey)
    );
}

#[tokio::test]
async fn generated_numbers_rise_in_the_order_in_which_a_source_sent_its_rows() {
    let mut bed = Bed::new("create table t (id int primary key, n serial, who int)").await;
    let shape = insert("t", &["id", "who"]).shape();
    let mut units = Vec::new();
    for n in (0..40).rev() {
        for who in 1..4 {
            let row = unit(&shape, row![who * 1000 + n, who]);
            units.extend(of(u64::try_from(who).unwrap(), vec![row]));
        }
    }
    bed.succeed(&units).await;
    let disorder =
        "select count(*) from t a join t b on a.who = b.who and a.id > b.id and a.n > b.n";
    assert_eq!(bed.sql(disorder), "0");
}

/// All that wait are found at once, by count of round trips and not by time.
#[tokio::test]
async fn many_foreign_locks_are_found_together() {
    let mut bed = Bed::new(
        "create table t (id int primary key, a int); insert into t select g, 0 from generate_series(0, 99) g",
    )
    .await;
    let other = session(bed.database.url()).await;
    other
        .batch_execute("begin; update t set a = 1 where id < 40; insert into t select g from generate_series(1000, 1039) g")
        .await
        .unwrap();
    let (set, put) = (
        update("t", &["a"]).shape(),
        insert("t", &["id", "a"]).shape(),
    );
    let mut units: Vec<Unit> = (0..50).map(|n| unit(&set, row![5, n])).collect();
    units.extend((1000..1050).map(|n| unit(&put, row![n, 5])));
    let report = bed.run(&units).await;
    for (n, verdict) in report.verdicts.iter().enumerate() {
        match verdict {
            Verdict::WaitsForLock(fault) => assert!(n % 50 < 40 && fault.code == "55P03", "{n}"),
            Verdict::Final(Ok(_)) => assert!(n % 50 >= 40, "{n}"),
            other => panic!("{n}: {other:?}"),
        }
    }
    assert!(report.tally.round_trips < 10, "{:?}", report.tally);
    assert_eq!(bed.sql("select count(*) from t where a = 5"), "20");
    other.batch_execute("rollback").await.unwrap();
}

/// Statements that go out one by one lock their rows in the order of the keys.
#[tokio::test]
async fn single_statements_lock_in_one_order() {
    let bed = Bed::new(
        "create table t (id int primary key, a int, b int); insert into t select g, 0 from generate_series(0, 9) g",
    )
    .await;
    let other = session(bed.database.url()).await;
    other
        .batch_execute("begin; select * from t where id = 5 for update")
        .await
        .unwrap();
    let (a, b) = (update("t", &["a"]).shape(), update("t", &["b"]).shape());
    let units = vec![
        unit(&a, row![1, 8]),
        unit(&b, row![1, 5]),
        unit(&a, row![1, 2]),
        unit(&b, row![1, 1]),
    ];
    let mut alone = bed
        .sink
        .connect(windrow_core::sink::Purpose::LockWait)
        .await
        .unwrap();
    let task = tokio::spawn(async move { alone.execute(&units).await });
    let waits = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()";
    eventually("the batch waits", || bed.sql(waits) == "1").await;
    let free = "select json_agg(id) from (select id from t where id in (1, 2, 8) order by id for update skip locked) t";
    assert_eq!(
        bed.sql(free),
        "[8]",
        "1 and 2 are locked before 5, 8 is not"
    );
    other.batch_execute("rollback").await.unwrap();
    let report = task.await.unwrap();
    assert!(report.verdicts.into_iter().all(|v| told(v).is_ok()));
}

/// The cost of failures in one stream does not grow with their number.
#[tokio::test]
async fn failures_of_a_stream_take_few_round_trips() {
    let mut bed = Bed::new("create table t (id int primary key, a int check (a < 100))").await;
    let shape = insert("t", &["id", "a"]).shape();
    let stream = |from: i32, bad: Value, a: Value| {
        let row = |n: i32| match n % 100 {
            50 => vec![bad.clone(), 1.into()],
            70 => vec![n.into(), a.clone()],
            _ => row![n, 1],
        };
        of(
            1,
            (from..from + 1000).map(|n| unit(&shape, row(n))).collect(),
        )
    };
    bed.outcomes(&of(1, vec![unit(&shape, row![-1, 1])])).await;
    let values = [
        (Value::from("x"), Value::from(1)),
        (Value::from(-1), Value::from(1)),
        (Value::from("y"), Value::from(100)),
    ];
    let mut from = 0;
    for (bad, a) in values {
        for _ in 0..5 {
            let units = stream(from, bad.clone(), a.clone());
            let report = bed.run(&units).await;
            assert!(report.tally.round_trips <= 7, "{bad:?}: {:?}", report.tally);
            for (n, verdict) in report.verdicts.into_iter().enumerate() {
                let fails = n % 100 == 50 || n % 100 == 70 && a == Value::from(100);
                assert_eq!(told(verdict).is_err(), fails, "{n}");
            }
            from += 1000;
        }
    }
}

const SCHEMA: &str = "
create table p (id int primary key, n int check (n < 9));
create table c (id int primary key, p int references p on delete cascade, boss int references c);
create table s (id serial, n int);
create table d (id int primary key, a int unique, b int, p int references p);";

/// A write of one of four sources, each of which has rows of its own.
#[derive(Clone, Debug)]
struct ParsedStatement {
    source: u64,
    kind: usize,
    values: Vec<i64>,
}

fn shapes(schema: &str) -> Vec<Arc<Shape>> {
    let d = format!("{schema}.d");
    let (p, c, s) = (
        format!("{schema}.p"),
        format!("{schema}.c"),
        format!("{schema}.s"),
    );
    vec![
        insert(&p, &["id", "n"]).shape(),
        insert(&p, &["id", "n"]).upsert().shape(),
        insert(&c, &["id", "p"]).shape(),
        insert(&c, &["id", "boss"]).returning(&["id"]).shape(),
        update(&p, &["n"]).returning(&["n"]).shape(),
        update(&c, &["p"]).shape(),
        delete(&p).shape(),
        get(&p).shape(),
        insert(&s, &["n"]).shape(),
        insert(&d, &["id", "b"]).shape(),
        insert(&d, &["id", "a"]).shape(),
        insert(&d, &["id", "p"]).shape(),
        update(&d, &["b"]).shape(),
        delete(&d).shape(),
    ]
}

fn parsed(sources: u64, ids: i64) -> impl Strategy<Value = ParsedStatement> {
    let n = prop_oneof![30 => 0..9_i64, 1 => Just(9_i64)];
    (0..sources, 0..14_usize, 0..ids, 0..ids, n).prop_map(move |(source, kind, id, other, n)| {
        let own = |id: i64| id * 4 + i64::try_from(source).unwrap();
        let (id, other) = (own(id), own(other));
        let values = match kind {
            0 | 1 => vec![id, n],
            2 | 3 => vec![id, other],
            4 => vec![n, id],
            5 | 12 => vec![other, id],
            9..12 => vec![id, other],
            _ => vec![id],
        };
        ParsedStatement {
            source,
            kind,
            values,
        }
    })
}

/// Runs of one kind, so that some of it is joined.
fn batch() -> impl Strategy<Value = Vec<ParsedStatement>> {
    (1..5_u64, prop_oneof![Just(4_i64), Just(40), Just(400)]).prop_flat_map(|(sources, ids)| {
        let run = (
            0..14_usize,
            prop::collection::vec(parsed(sources, ids), 1..40),
        );
        let of_kind = |(kind, run): (usize, Vec<ParsedStatement>)| {
            let run = run.into_iter();
            run.filter(move |d| d.kind % 3 != kind % 3)
                .collect::<Vec<_>>()
        };
        prop::collection::vec(run.prop_map(of_kind), 1..5).prop_map(|runs| runs.concat())
    })
}

const CONTENTS: &str =
    "select (select json_agg(p order by id) from S.p), (select json_agg(c order by id) from S.c),
  (select json_agg(n order by n % 4, id) from S.s), (select json_agg(d order by id) from S.d)";

#[test]
fn random_pipelines_are_as_if_sent_one_by_one() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let bed = runtime.block_on(Bed::new(&format!(
        "create schema a; create schema b; set search_path = a; {SCHEMA} set search_path = b; {SCHEMA}"
    )));
    let (joined, alone) = (shapes("a"), shapes("b"));
    let cases = std::env::var("PROPTEST_CASES").ok();
    let mut runner = TestRunner::new(Config {
        cases: cases.and_then(|n| n.parse().ok()).unwrap_or(40),
        failure_persistence: None,
        ..Config::default()
    });
    let bed = RefCell::new(bed);
    runner
        .run(&prop::collection::vec(batch(), 1..5), |batches| {
            let mut bed = bed.borrow_mut();
            bed.sql("truncate a.p, a.c, a.s, a.d, b.p, b.c, b.s, b.d");
            for batch in &batches {
                let made = |shapes: &[Arc<Shape>], d: &ParsedStatement| {
                    let row = d.values.iter().map(|v| Value::from(*v)).collect();
                    of(d.source, vec![unit(&shapes[d.kind], row)])
                };
                let units: Vec<Unit> = batch.iter().flat_map(|d| made(&joined, d)).collect();
                let outcomes = runtime.block_on(bed.outcomes(&units));
                for (parsed, outcome) in batch.iter().zip(&outcomes) {
                    let expected = runtime.block_on(bed.outcomes(&made(&alone, parsed)));
                    let (outcome, expected) =
                        (format!("{outcome:?}"), format!("{:?}", expected[0]));
                    prop_assert_eq!(outcome, expected, "of {:?}", parsed);
                }
                let contents = |schema| bed.sql(&CONTENTS.replace('S', schema));
                prop_assert_eq!(contents("a"), contents("b"));
            }
            Ok(())
        })
        .unwrap();
}
