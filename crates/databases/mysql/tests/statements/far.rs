//! A server far away: a batch commits in the round trip of its statements, and its clients get the
//! same answers.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use windrow_core::sink::Purpose;
use windrow_core::{Sink, Unit, Verdict};
use windrow_mysql::ClientSink;
use windrow_mysqlwire::Target;
use windrow_testkit::mariadb::shared;
use windrow_testkit::process::TEST_TIMEOUT;
use windrow_testkit::proxy::{Delay, Direction, Proxy};

use crate::relay::Relay;
use crate::support::*;

const TABLE: &str = "create table t (id int primary key, a varchar(3), n int not null)";

/// Starts a slow line to the server of a URL.
async fn line(url: &str) -> Proxy {
    let target = Target::parse(url).unwrap();
    let server = format!("{}:{}", target.host, target.port);
    let late = Delay::of(Duration::from_millis(3));
    Proxy::builder(server)
        .to_client(late)
        .start()
        .await
        .unwrap()
}

/// A fresh database behind a slow line.
async fn far(sql: &str, variables: &[(&'static str, &str)]) -> (Bed, Proxy) {
    let database = shared().unwrap();
    database.exec(sql).unwrap();
    let proxy = line(database.url()).await;
    let url = proxy.through(database.url()).unwrap();
    let (target, login) = login(&url, variables);
    let sink = ClientSink::new(target, login, &Default::default());
    let executor = sink.connect(Purpose::Batches).await.unwrap();
    let bed = Bed {
        database,
        sink,
        executor,
    };
    (bed, proxy)
}

/// Executes batches until one takes a single round trip: a table is checked now and then. Returns
/// the number of batches.
pub(crate) async fn until_one_trip(bed: &mut Bed, units: impl Fn(i32) -> Vec<Unit>) -> i32 {
    let start = Instant::now();
    for batch in 0.. {
        let (done, report) = bed.succeed(&units(batch)).await;
        assert!(done.iter().all(|done| done.rows == 1));
        assert_eq!(report.tally.commits, 1);
        if report.tally.round_trips == 1 {
            return batch + 1;
        }
        assert!(start.elapsed() < TEST_TIMEOUT, "{report:?}");
    }
    panic!("never in one round trip");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_takes_one_round_trip() {
    let (mut bed, _line) = far(TABLE, &[]).await;
    let put = bed.describe(insert("t", &["id", "a", "n"])).await;
    let set = bed.describe(update("t", "n", "id")).await;
    let cut = bed.describe(delete("t", "id")).await;
    let id = |batch: i32, n: i32| (batch * 100 + n).to_string();
    let rows = |count: i32, call: &dyn Fn(&str) -> Unit, batch: i32| {
        let ids = (0..count).map(|n| id(batch, n));
        ids.map(|id| call(&id)).collect::<Vec<_>>()
    };
    let by_text = |id: &str| unit(text(&put, &[id, "'x'", "1"]));
    let batches = until_one_trip(&mut bed, |batch| rows(20, &by_text, batch)).await;
    let first = batches;
    let by_values = |id: &str| unit(prepared(&put, &[id, "x", "1"]));
    let more = until_one_trip(&mut bed, |batch| rows(37, &by_values, first + batch)).await;
    let count = 20 * batches + 37 * more;
    assert_eq!(bed.sql("select count(*) from t"), count.to_string());
    let changes = until_one_trip(&mut bed, |batch| {
        let set = |n: i32| unit(text(&set, &[&(batch + 2).to_string(), &n.to_string()]));
        (1..20).map(set).collect()
    })
    .await;
    let changed = format!("select count(*) from t where n = {}", changes + 1);
    assert_eq!(bed.sql(&changed), "19");
    let numbers = "with recursive s as (select 1 n union all select n + 1 from s where n < 900)";
    bed.sql(&format!("insert into t {numbers} select -n, 'y', 1 from s"));
    let negative = |id: i32| unit(prepared(&cut, &[&(-1 - id).to_string()]));
    let deleted = until_one_trip(&mut bed, |batch| {
        (0..3).map(|n| negative(3 * batch + n)).collect()
    })
    .await;
    let left = bed.sql("select count(*) from t where id < 0");
    assert_eq!(left, (900 - 3 * deleted).to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_warn_or_fail_are_answered_as_if_alone() {
    let (mut bed, _line) = far(TABLE, &[("sql_mode", "")]).await;
    let put = bed.describe(insert("t", &["id", "a", "n"])).await;
    for (round, is_text) in [(0, true), (1, false), (2, true), (3, false)] {
        let call = |n: i32| {
            let id = (round * 100 + n % 15).to_string();
            let null = if is_text { "NULL" } else { "~" };
            let long = if is_text { "'long text'" } else { "long text" };
            let short = if is_text { "'x'" } else { "x" };
            let a = if n % 5 == 3 { long } else { short };
            let values = [&*id, a, if n == 7 { null } else { "1" }];
            unit(match is_text {
                true => text(&put, &values),
                false => prepared(&put, &values),
            })
        };
        let outcomes = bed.outcomes(&(0..16).map(call).collect::<Vec<_>>()).await;
        for (n, outcome) in outcomes.iter().enumerate() {
            match n {
                7 => assert_eq!(error(outcome).number, 1048),
                15 => assert_eq!(error(outcome).number, 1062),
                _ => {
                    let done = &outcome.as_ref().unwrap()[0];
                    let warnings = done
                        .extra
                        .as_ref()
                        .map_or(0, |_| answer(done).warning_count);
                    assert_eq!((done.rows, warnings), (1, u16::from(n % 5 == 3)), "{n}");
                }
            }
        }
        let stored = format!("select count(*) from t where id >= {}", round * 100);
        assert_eq!(bed.sql(&stored), "14");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_client_gets_its_number() {
    let sql = "create table t (id int primary key auto_increment, u int unique, a int)";
    let (mut bed, _line) = far(sql, &[]).await;
    let put = bed.describe(insert("t", &["u"])).await;
    let upsert = "INSERT INTO t (u) VALUES (?) ON DUPLICATE KEY UPDATE a = 1";
    let upsert = conflict(insert("t", &["u"]), upsert.to_owned(), true);
    let upsert = bed.describe(upsert).await;
    for batch in 0..4 {
        let of = |n: i32| (batch * 10 + n).to_string();
        let mut units: Vec<_> = (0..5).map(|n| unit(text(&put, &[&of(n)]))).collect();
        units.extend((5..8).map(|n| unit(text(&upsert, &[&of(n)]))));
        let (done, _) = bed.succeed(&units).await;
        for (n, done) in (0..).zip(&done) {
            let id = bed.sql(&format!("select id from t where u = {}", of(n)));
            let answer = answer(done);
            assert_eq!(answer.insert_id.to_string(), id, "{n}");
            assert_eq!(answer.last_insert_id, Some(answer.insert_id), "{n}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_row_that_is_locked_waits() {
    let (mut bed, _line) = far(TABLE, &[]).await;
    let put = bed.describe(insert("t", &["id", "n"])).await;
    let mut other = mysql_async::Conn::from_url(bed.database.url())
        .await
        .unwrap();
    other.query_drop("begin").await.unwrap();
    let held = "insert into t values (7, '', 1)";
    other.query_drop(held).await.unwrap();
    let call = |n: i32| unit(text(&put, &[&n.to_string(), "1"]));
    let report = bed.run(&(0..20).map(call).collect::<Vec<_>>()).await;
    for (n, verdict) in report.verdicts.iter().enumerate() {
        match verdict {
            Verdict::WaitsForLock(_) => assert_eq!(n, 7),
            Verdict::Final(outcome) => assert!(outcome.is_ok(), "{n}: {outcome:?}"),
            other => panic!("{n}: {other:?}"),
        }
    }
    other.query_drop("rollback").await.unwrap();
    assert_eq!(bed.sql("select count(*) from t"), "19");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_without_an_answer_is_unknown() {
    for forwards in [true, false] {
        let database = shared().unwrap();
        database.exec(TABLE).unwrap();
        let line = line(database.url()).await;
        let (mut target, login) = login(database.url(), &[]);
        let relay = Relay::start(line.address().port(), &[b"SET autocommit = ("], forwards).await;
        target.port = relay.port;
        let sink = ClientSink::new(target, login, &Default::default());
        let put = describe(&sink, insert("t", &["id", "n"])).await;
        let mut executor = sink.connect(Purpose::Batches).await.unwrap();
        relay.breaks.store(true, Ordering::SeqCst);
        let mut batch = 0;
        let report = loop {
            batch += 1;
            let call = |n: i32| unit(text(&put, &[&(10 * batch + n).to_string(), "1"]));
            let report = executor.execute(&[call(0), call(1), call(2)]).await;
            if !report.usable {
                break report;
            }
            assert!(batch < 1000, "{report:?}");
        };
        for verdict in report.verdicts {
            assert_eq!(&*fault(&told(verdict)).code, "08007");
        }
        let stored = 3 * (batch - i32::from(!forwards));
        eventually("the server has ended the transaction", || {
            database.exec("select count(*) from t").unwrap() == stored.to_string()
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_breaks_within_the_answers_leaves_no_wrong_outcome() {
    let (bed, line) = far(TABLE, &[]).await;
    let put = bed.describe(insert("t", &["id", "n"])).await;
    let lengths = (0..80).step_by(2).chain((80..1600).step_by(30));
    for (n, bytes) in (0..).zip(lengths) {
        let mut executor = bed.sink.connect(Purpose::Batches).await.unwrap();
        let call = |row: i32| unit(text(&put, &[&(3 * n + row).to_string(), "1"]));
        line.cut_after(Direction::ToClient, bytes);
        let report = executor.execute(&[call(0), call(1), call(2)]).await;
        line.cut_after(Direction::ToClient, u64::MAX);
        if report.usable {
            executor.close().await;
        }
        let first = 3 * n;
        let stored = format!("select count(*) from t where id between {first} and {first} + 2");
        let verdicts: Vec<_> = report.verdicts.iter().collect();
        match verdicts.as_slice() {
            [Verdict::Final(Ok(_)), ..] => assert_eq!(bed.sql(&stored), "3", "{bytes}"),
            [Verdict::RolledBack(_), ..] => {
                let idle = "select count(*) from information_schema.processlist \
                            where db = database() and command <> 'Sleep'";
                eventually("the connection has ended", || bed.sql(idle) == "1").await;
                assert_eq!(bed.sql(&stored), "0", "{bytes}");
            }
            [first, ..] => assert_eq!(&*fault(&told((*first).clone())).code, "08007", "{bytes}"),
            [] => panic!("no verdict"),
        }
    }
}
