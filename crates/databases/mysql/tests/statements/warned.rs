//! Warnings: each client gets those of its own statement.

use windrow_core::Rung;

use crate::support::*;

const TABLE: &str = "create table t (id int primary key, a varchar(3), n int not null)";

#[tokio::test(flavor = "multi_thread")]
async fn each_client_gets_its_own_warnings() {
    let mut bed = Bed::with(TABLE, &[("sql_mode", "")], |_| {}).await;
    let put = bed.describe(insert("t", &["id", "a", "n"])).await;
    for (round, from) in [(0, 0), (1, 100)] {
        for is_text in [true, false] {
            let from = from + if is_text { 0 } else { 50 };
            let call = |n: i32| {
                let a = if n % 5 == 3 { "long text" } else { "x" };
                match is_text {
                    true => unit(text(&put, &[&n.to_string(), &format!("'{a}'"), "1"])),
                    false => unit(prepared(&put, &[&n.to_string(), a, "1"])),
                }
            };
            let units: Vec<_> = (from..from + 16).map(call).collect();
            let (done, report) = bed.succeed(&units).await;
            for (n, done) in (from..).zip(&done) {
                let answer = answer(done);
                assert_eq!(answer.warning_count, u16::from(n % 5 == 3), "{round} {n}");
                if n % 5 == 3 {
                    let message = String::from_utf8_lossy(&answer.warnings[0].message);
                    assert_eq!(message, "Data truncated for column 'a' at row 1");
                    let info = String::from_utf8_lossy(&answer.info);
                    assert_eq!(info, "");
                }
            }
            // A statement that warns is not tried in vain.
            assert!(
                is_text && round == 0 || report.tally.round_trips <= 4,
                "{report:?}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn null_for_a_column_that_must_have_a_value_is_an_error_of_one_row() {
    let mut bed = Bed::with(TABLE, &[("sql_mode", "")], |_| {}).await;
    let put = bed.describe(insert("t", &["id", "a", "n"])).await;
    let units = [
        unit(text(&put, &["1", "'a'", "1"])),
        unit(text(&put, &["2", "'a'", "NULL"])),
        unit(text(&put, &["3", "'a'", "1"])),
    ];
    let outcomes = bed.outcomes(&units).await;
    assert!(outcomes[0].is_ok() && outcomes[2].is_ok());
    assert_eq!(error(&outcomes[1]).number, 1048);
    assert_eq!(bed.sql("select count(*) from t"), "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_alone_gets_its_warnings() {
    let mut bed = Bed::with(TABLE, &[("sql_mode", "")], |_| {}).await;
    let put = bed.describe(insert("t", &["id", "a", "n"])).await;
    let mut trips = Vec::new();
    // The table is checked now and then.
    while trips.len() < 2 || trips.last() != Some(&1) {
        let id = trips.len().to_string();
        let call = unit(text(&put, &[&id, "'long'", "1"]));
        let (done, report) = bed.succeed(&[call]).await;
        assert_eq!(answer(&done[0]).warnings[0].number, 1265);
        trips.push(report.tally.round_trips);
        assert!(trips.len() < 1000, "{trips:?}");
    }
    assert!(trips[0] > 1, "nobody expects the first warning: {trips:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_warned_long_ago_is_joined_again() {
    let mut bed = Bed::with(TABLE, &[("sql_mode", "")], |_| {}).await;
    let put = bed.describe(insert("t", &["id", "a", "n"])).await;
    bed.succeed(&[unit(text(&put, &["-1", "'long'", "1"]))])
        .await;
    for n in 0..600 {
        bed.succeed(&[unit(text(&put, &[&n.to_string(), "'x'", "1"]))])
            .await;
    }
    let call = |n: i32| unit(text(&put, &[&n.to_string(), "'x'", "1"]));
    let (_, report) = bed
        .succeed(&(1000..1010).map(call).collect::<Vec<_>>())
        .await;
    assert_eq!(rung(&report, Rung::Fused), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_fails_has_its_warnings_too() {
    let mut bed = Bed::with(TABLE, &[("sql_mode", "")], |_| {}).await;
    bed.sql("insert into t values (1, 'a', 1)");
    let put = bed.describe(insert("t", &["id", "a", "n"])).await;
    let fails = || unit(text(&put, &["1", "'long text'", "1"]));
    let call = |n: i32| unit(text(&put, &[&n.to_string(), "'x'", "1"]));
    let batches = [
        vec![fails()],
        vec![call(10), fails(), call(11)],
        vec![call(12), fails()],
    ];
    for units in batches {
        let outcomes = bed.outcomes(&units).await;
        let failed = outcomes.iter().find(|outcome| outcome.is_err()).unwrap();
        let warnings = failure(failed).warnings;
        let numbers: Vec<_> = warnings.iter().map(|warning| warning.number).collect();
        assert_eq!(numbers, [1265, 1062]);
        assert_eq!(error(failed).number, 1062);
    }
    assert_eq!(bed.sql("select count(*) from t"), "4");
}
