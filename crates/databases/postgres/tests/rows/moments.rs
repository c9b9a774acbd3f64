//! Each row has a moment of its own, as it would have had alone.

use windrow_core::{Rung, SourceId, Value};
use windrow_testkit::row;

use crate::support::{Bed, fault, insert, rung, unit};

const METRICS: &str = "create table metrics (device int, time timestamptz default now(), v int, \
     primary key (device, time)); create table begun as select clock_timestamp() at";

/// Counts rows and moments, and says if all lie between two others.
const MOMENTS: &str = "select count(*), count(distinct time), \
     bool_and(time between (select at from begun) and clock_timestamp()) from metrics";

#[tokio::test]
async fn rows_of_one_device_have_different_times() {
    let make = || insert("metrics", &["device", "v"]);
    let upsert = make().upsert().shape();
    let others = [
        make().shape(),
        make().ignore().key(&["device", "time"]).shape(),
        make().returning(&["time", "v"]).shape(),
    ];
    let with = |key| others.iter().map(move |shape| (key, shape));
    let all = with("primary key").chain(with("unique"));
    for (key, shape) in all.chain([("primary key", &upsert)]) {
        let mut bed = Bed::new(&METRICS.replace("primary key", key)).await;
        let units: Vec<_> = (0..40).map(|n| unit(shape, row![n % 4, n])).collect();
        let report = bed.run(&units).await;
        assert_eq!(rung(&report, Rung::Fused), 40, "{key}: {shape:?}");
        let done = bed.succeed(&units[..3]).await;
        assert!(done.iter().all(|done| done.rows == 1), "{shape:?}");
        assert_eq!(bed.sql(MOMENTS).trim(), "43|43|t", "{shape:?}");
    }
}

#[tokio::test]
async fn rows_without_a_device_run_by_themselves() {
    let mut bed = Bed::new(&METRICS.replace("primary key", "unique")).await;
    let shape = insert("metrics", &["device", "v"])
        .ignore()
        .key(&["device", "time"])
        .shape();
    let units: Vec<_> = (0..40)
        .map(|n| match n % 8 {
            3 => unit(&shape, row![Value::Null, n]),
            _ => unit(&shape, row![1, n]),
        })
        .collect();
    let report = bed.run(&units).await;
    assert_eq!(rung(&report, Rung::Fused), 35);
    assert_eq!(bed.sql(MOMENTS).trim(), "40|40|t");
}

#[tokio::test]
async fn a_duplicate_leaves_its_neighbours_their_moments() {
    let mut bed = Bed::new(
        "create table metrics (id int unique, device int, time timestamptz default now(), v int, \
         primary key (device, time)); create table begun as select clock_timestamp() at",
    )
    .await;
    let shape = insert("metrics", &["id", "device", "v"]).shape();
    let units: Vec<_> = (0_i64..20)
        .map(|n| {
            let mut unit = unit(&shape, row![n / 2, 1, n]);
            unit.hand_over(SourceId(n.unsigned_abs() % 3));
            unit
        })
        .collect();
    for _ in 0..3 {
        bed.sql("delete from metrics");
        let outcomes = bed.outcomes(&units).await;
        let failed = outcomes.iter().filter(|outcome| outcome.is_err());
        let codes: Vec<_> = failed
            .map(|outcome| fault(outcome).code.to_string())
            .collect();
        assert_eq!(codes, vec!["23505"; 10]);
        assert_eq!(bed.sql(MOMENTS).trim(), "10|10|t");
    }
}

#[tokio::test]
async fn the_default_of_a_domain_is_a_moment_of_its_own() {
    let mut bed = Bed::new(
        "create domain stamp as timestamptz default now(); \
         create table metrics (device int, time stamp, v int, primary key (device, time)); \
         create table begun as select clock_timestamp() at",
    )
    .await;
    let shape = insert("metrics", &["device", "v"]).shape();
    let units: Vec<_> = (0..40).map(|n| unit(&shape, row![n % 4, n])).collect();
    let done = bed.succeed(&units).await;
    assert!(done.iter().all(|done| done.rows == 1));
    assert_eq!(bed.sql(MOMENTS).trim(), "40|40|t");
}

#[tokio::test]
async fn what_compares_the_time_by_itself_is_told_the_truth() {
    for check in ["check (time <= now())", "check (time = now())"] {
        let mut bed = Bed::new(&format!(
            "create table metrics (id int primary key, time timestamptz default now() {check})"
        ))
        .await;
        let shape = insert("metrics", &["id"]).shape();
        let units: Vec<_> = (0..20).map(|n| unit(&shape, row![n])).collect();
        let done = bed.succeed(&units).await;
        assert!(done.iter().all(|done| done.rows == 1));
        let moments = bed.sql("select count(distinct time) from metrics");
        assert_eq!(moments.trim(), "20");
    }
}

#[tokio::test]
async fn a_value_that_says_now_is_its_own_moment() {
    let mut bed = Bed::new(
        "create table metrics (device int, time timestamptz, at time, primary key (device, time)); \
         create table begun as select clock_timestamp() at",
    )
    .await;
    let shape = insert("metrics", &["device", "time", "at"])
        .ignore()
        .shape();
    let units: Vec<_> = (0..8)
        .map(|_| unit(&shape, row![1, "now", "now"]))
        .collect();
    let done = bed.succeed(&units).await;
    assert!(done.iter().all(|done| done.rows == 1));
    assert_eq!(bed.sql(MOMENTS).trim(), "8|8|t");
    assert_eq!(
        bed.sql("select count(distinct at) from metrics").trim(),
        "8"
    );
}

#[tokio::test]
async fn a_constant_in_the_key_is_no_moment() {
    let mut bed = Bed::new("create table t (id int default 0 primary key, v int)").await;
    let shape = insert("t", &["v"]).ignore().shape();
    let units: Vec<_> = (0..12).map(|n| unit(&shape, row![n])).collect();
    let done = bed.succeed(&units).await;
    let rows: u64 = done.iter().map(|done| done.rows).sum();
    assert_eq!(rows, 1);
}
