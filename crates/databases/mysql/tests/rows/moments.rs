//! Keys that look at the moment: rows of a batch do not share one.

use windrow_core::{Rung, Unit};

use crate::support::*;
use windrow_testkit::row;

/// The usual table of a time series.
const METRICS: &str = "create table metrics (device int, at datetime(6) default current_timestamp(6), v int,
  seen timestamp(6) not null default current_timestamp(6), primary key (device, at), check (seen >= at))";

fn rows(put: &Make, devices: i64) -> Vec<Unit> {
    (0..200).map(|n| put.of(row![n % devices, n])).collect()
}

#[tokio::test]
async fn rows_of_a_time_series_are_joined_and_all_are_stored() {
    for put in [
        insert("metrics", &["device", "v"]),
        insert("metrics", &["device", "v"])
            .ignore()
            .key(&["device", "at"]),
        insert("metrics", &["device", "v"])
            .upsert()
            .key(&["device", "at"]),
    ] {
        let mut bed = Bed::new(METRICS).await;
        let report = bed.run(&rows(&put, 4)).await;
        assert_eq!(rung(&report, Rung::Fused), 200, "{:?}", report.tally);
        for verdict in report.verdicts {
            assert_eq!(told(verdict).unwrap()[0].rows, 1);
        }
        let stored =
            "select count(*), count(distinct v), sum(seen <> at), sum(at > now(6)) from metrics";
        assert_eq!(bed.sql(stored), "200|200|0|0");
    }
}

#[tokio::test]
async fn the_moments_that_come_back_are_those_that_are_stored() {
    let mut bed = Bed::new(METRICS).await;
    let put = insert("metrics", &["device", "v"]).returning(&["v", "at"]);
    if !server(&bed).0 {
        return;
    }
    let mut told = std::collections::HashSet::new();
    for (n, done) in (0..).zip(bed.succeed(&rows(&put, 2)).await) {
        let row = &done.returned.unwrap().rows[0];
        assert_eq!(row[0], n.into());
        assert!(told.insert(row[1].clone()), "{row:?}");
    }
}

/// In one statement the second would change the first, and nobody would be told.
#[tokio::test]
async fn an_upsert_overwrites_no_row_of_the_same_batch_by_a_key_that_nobody_gave() {
    for (key, default) in [
        ("at datetime(6)", "(utc_timestamp(6) + interval 1 day)"),
        ("at timestamp(6)", "sysdate(6)"),
        ("at varchar(36)", "(uuid())"),
    ] {
        let default = match default.starts_with('(') {
            true => default.to_owned(),
            false => format!("({default})"),
        };
        let table = format!(
            "create table metrics (device int, {key} default {default}, v int, primary key (device, at))"
        );
        let mut bed = Bed::new(&table).await;
        let put = insert("metrics", &["device", "v"])
            .upsert()
            .key(&["device", "at"]);
        let units: Vec<Unit> = (0..30).map(|n| put.of(row![0, n])).collect();
        bed.succeed(&units).await;
        assert_eq!(
            bed.sql("select count(distinct v) from metrics"),
            "30",
            "{key} {default}"
        );
    }
}

#[tokio::test]
async fn a_trigger_sees_the_same_moment_in_the_row_as_on_the_clock() {
    let mut bed = Bed::new(&format!(
        "{METRICS}; create trigger b before insert on metrics for each row
           set new.v = if(new.at = now(6), new.v, -1)"
    ))
    .await;
    let put = insert("metrics", &["device", "v"]);
    bed.succeed(&rows(&put, 50)).await;
    assert_eq!(bed.sql("select count(*), min(v) from metrics"), "200|0");
}
