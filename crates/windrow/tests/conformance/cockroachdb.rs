//! What only CockroachDB does, against the stand-in.

use std::sync::Arc;

use windrow_core::sink::Purpose;
use windrow_core::{Database, Executor, FaultClass, Rung, Unit, Value, Verdict};
use windrow_database::Options;
use windrow_testkit::cockroachdb::{StandIn, Trouble};

use crate::bed::open;
use crate::words::*;

/// A stand-in with one connection to it.
struct Stand {
    stand_in: StandIn,
    sink: Arc<dyn Database>,
    executor: Box<dyn Executor>,
}

const TABLE: &str = "create table t (id bigint primary key, a text, n bigint)";

async fn stand(sql: &str) -> Stand {
    let stand_in = StandIn::builder().start().await.unwrap();
    stand_in.exec(sql).unwrap();
    // By a URL that says nothing of CockroachDB.
    let sink = open(stand_in.url()).await;
    let executor = sink.connect(Purpose::Batches).await.unwrap();
    Stand {
        stand_in,
        sink,
        executor,
    }
}

impl Stand {
    fn count(&self) -> String {
        self.stand_in.exec("select count(*) from t").unwrap()
    }

    async fn verdicts(&mut self, units: &[Unit]) -> Vec<Verdict> {
        let report = self.executor.execute(units).await;
        assert!(report.usable);
        report.verdicts
    }

    async fn succeed(&mut self, units: &[Unit]) {
        for verdict in self.verdicts(units).await {
            assert_eq!(count(&told(verdict)), 1);
        }
    }
}

fn inserts(from: i64, size: i64) -> Vec<Unit> {
    let put = insert("t", &["id", "a", "n"]);
    (from..from + size)
        .map(|id| put.of(row![id, "x", id]))
        .collect()
}

#[tokio::test]
async fn what_has_to_be_restarted_is_run_again_and_was_not_written() {
    let mut stand = stand(TABLE).await;
    stand.succeed(&inserts(-60, 1)).await;
    stand.succeed(&inserts(-50, 50)).await;
    for trouble in [Trouble::Restart, Trouble::RestartAtCommit] {
        for size in [1, 3, 50] {
            let before = stand.count();
            stand.stand_in.trouble([trouble]);
            let units = inserts(before.parse::<i64>().unwrap() * 100, size);
            for verdict in stand.verdicts(&units).await {
                let Verdict::RolledBack(fault) = verdict else {
                    panic!("{verdict:?}")
                };
                assert_eq!((fault.class, &*fault.code), (FaultClass::Conflict, "40001"));
            }
            assert_eq!((stand.stand_in.troubles_left(), stand.count()), (0, before));
            stand.succeed(&units).await;
        }
    }
}

#[tokio::test]
async fn an_ambiguous_result_is_unknown_and_never_run_again() {
    let mut stand = stand(TABLE).await;
    stand.succeed(&inserts(-60, 1)).await;
    stand.succeed(&inserts(-50, 50)).await;
    for (trouble, written) in [
        (Trouble::AmbiguousWritten, true),
        (Trouble::AmbiguousLost, false),
    ] {
        for size in [1, 3, 50] {
            let before: i64 = stand.count().parse().unwrap();
            stand.stand_in.trouble([trouble]);
            for verdict in stand.verdicts(&inserts(before * 100, size)).await {
                let outcome = told(verdict);
                let fault = fault(&outcome);
                assert_eq!((fault.class, &*fault.code), (FaultClass::Unknown, "08007"));
                assert!(fault.message.contains("result is ambiguous"), "{fault}");
            }
            let after = if written { before + size } else { before };
            assert_eq!(stand.count(), after.to_string());
        }
    }
}

#[tokio::test]
async fn trouble_in_one_transaction_is_not_told_to_another() {
    let mut stand = stand(TABLE).await;
    stand.succeed(&inserts(0, 20)).await;
    // The second one of a round trip: a value that is visibly wrong goes in a transaction of its
    // own.
    let mut units = inserts(100, 20);
    units.push(insert("t", &["id"]).of(row!["no number"]));
    stand
        .stand_in
        .trouble([Trouble::None, Trouble::AmbiguousWritten]);
    let verdicts = stand.verdicts(&units).await;
    let outcomes: Vec<_> = verdicts.into_iter().map(told).collect();
    assert!(outcomes[..20].iter().all(|outcome| count(outcome) == 1));
    assert!(outcomes[20].is_err());
    assert_eq!(stand.count(), "40");
}

#[tokio::test]
async fn whole_rows_are_upserted_without_being_read() {
    let mut stand = stand(
        "create table t (id bigint primary key, a text, n bigint);
         create table two (id bigint primary key, a text unique)",
    )
    .await;
    let put = |table: &str, columns: &[&str]| insert(table, columns).upsert();
    let whole = put("t", &["a", "id", "n"]);
    for size in [1, 3, 40] {
        let units: Vec<Unit> = (0..size)
            .map(|id| whole.of(row![format!("{size}"), id, id]))
            .collect();
        stand.succeed(&units).await;
    }
    let seen = stand.stand_in.upserts();
    assert!(seen > 0);
    assert_eq!(
        stand
            .stand_in
            .exec("select count(*), min(a) from t")
            .unwrap(),
        "40|40"
    );
    let part = put("t", &["id", "a"]);
    let other_key = put("two", &["id", "a"]);
    let units: Vec<Unit> = (0..20)
        .flat_map(|id| {
            [
                part.of(row![id, "part"]),
                other_key.of(row![id, format!("{id}")]),
            ]
        })
        .collect();
    stand.succeed(&units).await;
    assert_eq!(stand.stand_in.upserts(), seen);
    let kept = "select count(*) filter (where a = 'part' and n = id) from t";
    assert_eq!(stand.stand_in.exec(kept).unwrap(), "20");
}

#[tokio::test]
async fn large_batches_become_several_transactions() {
    let mut stand = stand(TABLE).await;
    assert_eq!(stand.sink.profile().batch_rows, 1_000);
    let report = stand.executor.execute(&inserts(0, 2_500)).await;
    assert_eq!(report.tally.commits, 3);
    assert_eq!(report.tally.rungs[place(Rung::Fused)], 2_500);
    assert_eq!(stand.count(), "2500");
}

fn place(rung: Rung) -> usize {
    Rung::ALL.iter().position(|r| *r == rung).unwrap()
}

#[tokio::test]
async fn json_and_decimals_travel_with_others_and_nothing_is_asked_that_is_refused() {
    let mut stand = stand(
        "create table t (id bigint primary key default unique_rowid(), j jsonb, n numeric(10,2), at timestamptz, u uuid, tags text[]);
         create table log (a text)",
    )
    .await;
    let put = insert("t", &["j", "n", "at", "u"]).returning(&["id", "j", "n", "at"]);
    let uuid = "00112233-4455-6677-8899-aabbccddeeff";
    let units: Vec<Unit> = (0..30)
        .map(|n| {
            let json = Value::Json(format!("{{\"n\": {n}}}").into());
            let number = Value::number(&format!("{n}.5"));
            put.of(vec![
                json,
                number,
                "2024-02-03T04:05:06Z".into(),
                uuid.into(),
            ])
        })
        .collect();
    let report = stand.executor.execute(&units).await;
    assert_eq!(
        report.tally.rungs[place(Rung::Fused)],
        30,
        "{:?}",
        report.tally
    );
    for (n, verdict) in report.verdicts.into_iter().enumerate() {
        let outcome = told(verdict);
        let row = rows(done(&outcome)).remove(0);
        assert_eq!(row[1], Value::Json(format!("{{\"n\": {n}}}").into()));
        assert_eq!(row[2], Value::number(&format!("{n}.50")));
        assert_eq!(row[3], "2024-02-03T04:05:06Z".into());
    }
    let tags = insert("t", &["id", "tags"]);
    let tags: Vec<Unit> = (0..10)
        .map(|n| tags.of(vec![(1_000_000 + n).into(), Value::Json("[\"x\"]".into())]))
        .collect();
    stand.succeed(&tags).await;
    let log = insert("log", &["a"]);
    let log: Vec<Unit> = (0..10).map(|n| log.of(row![n])).collect();
    stand.succeed(&log).await;
    stand.sink.ping().await.unwrap();
    let refused = stand.stand_in.refused();
    assert!(refused.is_empty(), "{refused:#?}");
}

#[tokio::test]
async fn it_is_told_by_its_own_words() {
    let silent = StandIn::builder().silent().start().await.unwrap();
    let sink = open(silent.url()).await;
    assert_eq!(sink.profile().name, "PostgreSQL", "nobody has looked yet");
    sink.ping().await.unwrap();
    assert_eq!(
        (sink.profile().name, sink.profile().batch_rows),
        ("CockroachDB", 1_000)
    );

    let old = StandIn::builder().version("CockroachDB CCL v21.2.17 (x86_64-unknown-linux-gnu)");
    let old = old.start().await.unwrap();
    let fault = open(old.url()).await.ping().await.unwrap_err();
    assert_eq!(fault.class, FaultClass::Unsupported);
    assert!(fault.message.contains("v22.1"), "{fault}");

    let postgres = windrow_testkit::postgres::shared().unwrap();
    let sink = open(&postgres.url().replacen("postgres", "cockroach", 1)).await;
    assert_eq!(sink.profile().name, "CockroachDB");
    let fault = sink.ping().await.unwrap_err();
    assert_eq!(fault.class, FaultClass::Invalid, "{fault}");
}

#[tokio::test]
async fn tables_and_columns_are_made_and_never_change_their_type() {
    let stand_in = StandIn::builder().start().await.unwrap();
    let options = Options {
        create_tables: true,
        extend_tables: true,
        ..Options::default()
    };
    let sink = windrow::databases::open(stand_in.url(), &options)
        .await
        .unwrap();
    let mut executor = sink.connect(Purpose::Batches).await.unwrap();
    let first = insert("made", &["id", "n"]);
    let units: Vec<Unit> = (0..10).map(|id| first.of(row![id, id])).collect();
    for verdict in executor.execute(&units).await.verdicts {
        assert_eq!(count(&told(verdict)), 1);
    }
    let more = insert("made", &["id", "n", "later"]);
    let wrong = more.of(row![100, "n/a", "x"]);
    let fits = more.of(row![101, 1, "x"]);
    let outcomes: Vec<_> = executor
        .execute(&[wrong, fits])
        .await
        .verdicts
        .into_iter()
        .map(told)
        .collect();
    assert_eq!(class(&outcomes[0]), FaultClass::Value);
    assert_eq!(count(&outcomes[1]), 1);
    let types = "select string_agg(column_name || ' ' || data_type, ', ' order by ordinal_position) from information_schema.columns where table_name = 'made'";
    assert_eq!(
        stand_in.exec(types).unwrap(),
        "id bigint, n numeric, later text"
    );
    assert!(stand_in.refused().is_empty(), "{:?}", stand_in.refused());
}
