//! Every client gets the server's answer to its own statement.

use windrow_core::Rung;

use crate::far::until_one_trip;
use crate::support::*;

const TABLE: &str = "create table t (id int primary key, a varchar(20) not null, b int)";

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_texts_become_one_statement() {
    let mut bed = Bed::new(TABLE).await;
    let put = bed.describe(insert("t", &["id", "a", "b"])).await;
    let call = |n: i32| unit(text(&put, &[&n.to_string(), "'it''s' ' so'", "NULL"]));
    let units: Vec<_> = (0..64).map(call).collect();
    let (done, report) = bed.succeed(&units).await;
    assert_eq!(rung(&report, Rung::Fused), 64);
    assert_eq!(report.tally.commits, 1);
    assert!(
        done.iter()
            .all(|done| done.rows == 1 && done.extra.is_none())
    );
    assert_eq!(
        bed.sql("select count(*), min(a) from t where b is null"),
        "64|it's so"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_prepared_statements_keep_their_types() {
    let mut bed = Bed::new(TABLE).await;
    let put = bed.describe(insert("t", &["id", "a", "b"])).await;
    let call = |n: i32| {
        let b = if n % 2 == 0 { "7" } else { "~" };
        unit(prepared(&put, &[&n.to_string(), "x", b]))
    };
    for from in [0, 100] {
        let units: Vec<_> = (from..from + 37).map(call).collect();
        let (_, report) = bed.succeed(&units).await;
        assert_eq!(rung(&report, Rung::Fused), 36);
    }
    assert_eq!(
        bed.sql("select count(*), sum(id), sum(b) from t"),
        "74|5032|266"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unit_alone_takes_one_round_trip() {
    let mut bed = Bed::new(TABLE).await;
    let put = bed.describe(insert("t", &["id", "a"])).await;
    let by_text = |n: i32| vec![unit(text(&put, &[&n.to_string(), "'x'"]))];
    let count = until_one_trip(&mut bed, by_text).await;
    let by_values = |n: i32| vec![unit(prepared(&put, &[&(count + n).to_string(), "x"]))];
    let count = count + until_one_trip(&mut bed, by_values).await;
    let (_, report) = bed.succeed(&by_text(count)).await;
    assert_eq!(rung(&report, Rung::Solo), 1);
    assert_eq!(bed.sql("select count(*) from t"), (count + 1).to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_duplicate_key_among_many_fails_alone() {
    let mut bed = Bed::new(TABLE).await;
    bed.sql("insert into t values (5, 'old', 0)");
    let put = bed.describe(insert("t", &["id", "a"])).await;
    for (from, is_text) in [(0, true), (100, false)] {
        let call = |n: i32| match is_text {
            true => unit(text(&put, &[&n.to_string(), "'x'"])),
            false => unit(prepared(&put, &[&n.to_string(), "x"])),
        };
        let mut units: Vec<_> = (from..from + 20).map(call).collect();
        units[5] = call(5);
        let outcomes = bed.outcomes(&units).await;
        for (n, outcome) in outcomes.iter().enumerate() {
            assert_eq!(outcome.is_err(), n == 5, "{n}: {outcome:?}");
        }
        let error = error(&outcomes[5]);
        assert_eq!((error.number, &error.state), (1062, b"23000"));
        assert!(
            error.message.starts_with("Duplicate entry '5' for key"),
            "{error}"
        );
    }
    assert_eq!(bed.sql("select count(*) from t"), "39");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_few_rows_that_fail_leave_most_rows_together() {
    let mut bed = Bed::new(TABLE).await;
    bed.sql("insert into t values (5, 'old', 0), (60, 'old', 0)");
    let put = bed.describe(insert("t", &["id", "a"])).await;
    let set = bed.describe(update("t", "b", "id")).await;
    let mut units: Vec<_> = (0..64)
        .map(|n| unit(text(&put, &[&n.to_string(), "'x'"])))
        .collect();
    units.push(unit(text(&set, &["1", "5"])));
    let report = bed.run(&units).await;
    for (n, verdict) in report.verdicts.iter().enumerate() {
        assert_eq!(told(verdict.clone()).is_err(), n == 5 || n == 60, "{n}");
    }
    assert_eq!(
        (rung(&report, Rung::Fused), rung(&report, Rung::Isolated)),
        (48, 16)
    );
    assert_eq!(report.tally.commits, 1);
    assert_eq!(bed.sql("select count(*), sum(b) from t"), "64|1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_fails_and_what_follows_it_keep_their_order() {
    let mut bed = Bed::new(TABLE).await;
    bed.sql("insert into t values (5, 'old', 0)");
    let put = bed.describe(insert("t", &["id", "a"])).await;
    let cut = bed.describe(delete("t", "id")).await;
    let mut units = Vec::new();
    for source in 1..12_u64 {
        let id = source.to_string();
        units.push(unit_of(source, text(&put, &[&id, "'x'"])));
        units.push(unit_of(source, text(&cut, &[&id])));
    }
    let outcomes = bed.outcomes(&units).await;
    for (n, outcome) in outcomes.iter().enumerate() {
        match outcome {
            Ok(done) => assert_eq!(done[0].rows, 1, "{n}"),
            Err(_) => assert_eq!(n, 8),
        }
    }
    assert_eq!(bed.sql("select count(*) from t"), "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_kinds_of_statements_share_a_transaction() {
    let mut bed = Bed::new(TABLE).await;
    bed.sql("insert into t values (1, 'one', 1), (2, 'two', 2), (3, 'three', 3)");
    let put = bed.describe(insert("t", &["id", "a"])).await;
    let set = bed.describe(update("t", "b", "id")).await;
    let cut = bed.describe(delete("t", "id")).await;
    let ignore = "INSERT IGNORE INTO t (id, a) VALUES (?, ?)".to_owned();
    let ignore = bed
        .describe(conflict(insert("t", &["id", "a"]), ignore, false))
        .await;
    let units = [
        unit(text(&put, &["10", "'x'"])),
        unit(text(&set, &["5", "1"])),
        unit(prepared(&set, &["2", "2"])),
        unit(prepared(&cut, &["3"])),
        unit(text(&cut, &["99"])),
        unit(text(&put, &["11", "'x'"])),
    ];
    let (done, report) = bed.succeed(&units).await;
    let rows: Vec<_> = done.iter().map(|done| done.rows).collect();
    assert_eq!(rows, [1, 1, 0, 1, 0, 1]);
    assert_eq!(report.tally.commits, 1);
    let info = |at: usize| String::from_utf8(answer(&done[at]).info.to_vec()).unwrap();
    assert_eq!(info(1), "Rows matched: 1  Changed: 1  Warnings: 0");
    assert_eq!(info(2), "Rows matched: 1  Changed: 0  Warnings: 0");
    let units = [
        unit(text(&ignore, &["1", "'y'"])),
        unit(text(&ignore, &["20", "'y'"])),
    ];
    let (done, _) = bed.succeed(&units).await;
    assert_eq!((done[0].rows, done[1].rows), (0, 1));
    let warning = &answer(&done[0]).warnings[0];
    assert_eq!(warning.number, 1062);
    assert_eq!(
        bed.sql("select group_concat(id order by id) from t"),
        "1,2,10,11,20"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_are_found_are_counted_if_the_client_wants_it() {
    let mut bed = Bed::with(TABLE, &[], |login| login.counts_found_rows = true).await;
    bed.sql("insert into t values (1, 'one', 1)");
    let set = bed.describe(update("t", "b", "id")).await;
    let (done, _) = bed.succeed(&[unit(text(&set, &["1", "1"]))]).await;
    assert_eq!(done[0].rows, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn units_of_one_source_keep_their_order() {
    let mut bed = Bed::new(TABLE).await;
    let put = bed.describe(insert("t", &["id", "a"])).await;
    let set = bed.describe(update("t", "b", "id")).await;
    let cut = bed.describe(delete("t", "id")).await;
    let mut units = Vec::new();
    for source in 1..20_u64 {
        let id = source.to_string();
        units.push(unit_of(source, text(&put, &[&id, "'x'"])));
        units.push(unit_of(source, text(&set, &["7", &id])));
        units.push(unit_of(source, text(&cut, &[&id])));
        units.push(unit_of(source, text(&put, &[&id, "'again'"])));
    }
    let (done, report) = bed.succeed(&units).await;
    assert!(done.iter().all(|done| done.rows == 1));
    assert_eq!(rung(&report, Rung::Fused), 38);
    assert_eq!(
        bed.sql("select count(*), count(b) from t where a = 'again'"),
        "19|0"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_table_is_the_servers_own_error() {
    let mut bed = Bed::new(TABLE).await;
    let put = bed.describe(insert("t", &["id", "a"])).await;
    bed.sql("drop table t");
    let units = [
        unit(text(&put, &["1", "'x'"])),
        unit(prepared(&put, &["1", "x"])),
    ];
    for outcome in bed.outcomes(&units).await {
        assert_eq!(error(&outcome).number, 1146);
    }
}
