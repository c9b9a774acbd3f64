//! Numbers that the server generates.

use std::collections::BTreeSet;
use std::sync::Arc;

use windrow_core::sink::Purpose;
use windrow_core::{Rung, Sink};

use crate::support::*;

const TABLE: &str = "create table t (id int auto_increment primary key, a varchar(20) unique)";

#[tokio::test(flavor = "multi_thread")]
async fn each_client_of_many_lanes_gets_its_own_number() {
    let bed = Bed::with(TABLE, &[("auto_increment_increment", "3")], |_| {}).await;
    let put = bed.describe(insert("t", &["a"])).await;
    let lane = |lane: i32| {
        let (sink, put) = (Arc::clone(&bed.sink), Arc::clone(&put));
        tokio::spawn(async move {
            let mut executor = sink.connect(Purpose::Batches).await.unwrap();
            let mut seen = Vec::new();
            for batch in 0..20 {
                let name = |n: i32| format!("{lane}-{batch}-{n}");
                let call = |n: i32| match lane % 2 {
                    0 => unit(text(&put, &[&format!("'{}'", name(n))])),
                    _ => unit(prepared(&put, &[&name(n)])),
                };
                let units: Vec<_> = (0..17).map(call).collect();
                let report = executor.execute(&units).await;
                for (n, verdict) in (0..).zip(report.verdicts) {
                    let answer = answer(&told(verdict).unwrap()[0]);
                    assert_eq!(answer.last_insert_id, Some(answer.insert_id));
                    seen.push((answer.insert_id, name(n)));
                }
            }
            seen
        })
    };
    let mut all = BTreeSet::new();
    for task in (0..8).map(lane).collect::<Vec<_>>() {
        all.extend(task.await.unwrap());
    }
    assert_eq!(all.len(), 8 * 20 * 17);
    let stored = bed.sql("select id, a from t order by id");
    let expected: Vec<_> = all
        .iter()
        .map(|(id, name)| format!("{id}|{name}"))
        .collect();
    assert_eq!(stored, expected.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_the_client_gives_is_its_own() {
    let mut bed = Bed::new(TABLE).await;
    let put = bed.describe(insert("t", &["id", "a"])).await;
    let units = [
        unit(text(&put, &["NULL", "'a'"])),
        unit(text(&put, &["70", "'b'"])),
        unit(text(&put, &["0", "'c'"])),
        unit(text(&put, &["null", "'d'"])),
        unit(prepared(&put, &["90", "e"])),
        unit(prepared(&put, &["~", "f"])),
    ];
    let (done, _) = bed.succeed(&units).await;
    let of = |at: usize| {
        (
            answer(&done[at]).insert_id,
            answer(&done[at]).last_insert_id,
        )
    };
    for (at, name) in [(0, "a"), (2, "c"), (3, "d"), (5, "f")] {
        let id = bed
            .sql(&format!("select id from t where a = '{name}'"))
            .parse()
            .unwrap();
        assert_eq!(of(at), (id, Some(id)), "{name}");
    }
    assert_eq!(of(1), (70, None));
    assert_eq!(of(4), (90, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn nulls_of_many_clients_become_one_statement() {
    let mut bed = Bed::new(TABLE).await;
    let mut parsed = insert("t", &["id", "a"]);
    parsed.columns = None;
    parsed.text = "INSERT INTO t VALUES (?, ?)".into();
    let put = bed.describe(parsed).await;
    let call = |n: i32| unit(text(&put, &["NULL", &n.to_string()]));
    let (done, report) = bed.succeed(&(0..10).map(call).collect::<Vec<_>>()).await;
    assert_eq!(rung(&report, Rung::Fused), 10);
    let ids: Vec<_> = done.iter().map(|done| answer(done).insert_id).collect();
    assert_eq!(ids, (1..11).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_at_a_conflict_says_which_number_it_left() {
    let mut bed = Bed::new(TABLE).await;
    let sql = "INSERT INTO t (a) VALUES (?) ON DUPLICATE KEY UPDATE a = 'z'".to_owned();
    let upsert = bed.describe(conflict(insert("t", &["a"]), sql, true)).await;
    let units = [unit(text(&upsert, &["'x'"])), unit(text(&upsert, &["'x'"]))];
    let (done, _) = bed.succeed(&units).await;
    assert_eq!((done[0].rows, done[1].rows), (1, 2));
    assert_eq!(answer(&done[0]).last_insert_id, Some(1));
    // The same by a session of its own.
    let direct = "insert into t (a) values ('q'); select last_insert_id(0); \
                  insert into t (a) values ('q') on duplicate key update a = 'r'; \
                  select last_insert_id()";
    let last = bed.sql(direct);
    let changed = last.lines().last().unwrap() != "0";
    assert_eq!(answer(&done[1]).last_insert_id.is_some(), changed);
}

#[tokio::test(flavor = "multi_thread")]
async fn zeros_generate_numbers_unless_the_mode_keeps_them() {
    for (mode, is_generated) in [("", true), ("NO_AUTO_VALUE_ON_ZERO", false)] {
        let mut bed = Bed::with(TABLE, &[("sql_mode", mode)], |_| {}).await;
        let put = bed.describe(insert("t", &["id", "a"])).await;
        let call = |n: i32| match n % 2 {
            0 => unit(text(&put, &["0", &format!("'{n}'")])),
            _ => unit(prepared(&put, &["0", &n.to_string()])),
        };
        let units: Vec<_> = (0..16).map(call).collect();
        let report = bed.run(&units).await;
        let ids = report.verdicts.into_iter().map(told);
        let ids = ids.map(|outcome| outcome.map(|done| answer(&done[0]).last_insert_id));
        let ids: Vec<_> = ids.flatten().collect();
        if is_generated {
            assert_eq!(ids.iter().flatten().collect::<BTreeSet<_>>().len(), 16);
        } else {
            // One row has the number zero, and all others meet it.
            assert_eq!(ids, [None]);
        }
    }
}
