//! Numbers that the server gives go to the writes whose rows have them.

use std::collections::HashSet;

use windrow_core::{Rung, Unit, Value, WriteDone};
use windrow_database::Driver;
use windrow_database::Options;
use windrow_mysql::Mysql;

use crate::support::*;
use windrow_testkit::{left_out, row};

const TABLE: &str =
    "create table t (id bigint auto_increment primary key, name varchar(50), n int)";

#[tokio::test]
async fn each_write_is_told_its_own_number() {
    let mut bed = Bed::new(TABLE).await;
    let shape = insert("t", &["name", "n"]).returning(&["id"]).shape();
    let mut told_names = HashSet::new();
    for from in [0, 1000] {
        let units: Vec<Unit> = (from..from + 300)
            .map(|n| unit(&shape, row![format!("näme {n}"), -n]))
            .collect();
        let report = bed.run(&units).await;
        if server(&bed).0 {
            assert_eq!(rung(&report, Rung::Fused), 300, "{:?}", report.tally);
        }
        for (n, verdict) in (from..).zip(report.verdicts) {
            let done = told(verdict).unwrap().remove(0);
            let Value::Int(id) = done.returned.unwrap().rows[0][0] else {
                panic!("no number");
            };
            told_names.insert(format!("{id}|näme {n}"));
        }
    }
    let stored = bed.sql("select id, name from t");
    let stored: HashSet<String> = stored.lines().map(str::to_owned).collect();
    assert_eq!(told_names, stored);
}

/// A name that MariaDB 11.6 and MySQL do not know cannot stand in a default.
#[tokio::test]
async fn rows_with_a_uuid_by_default_are_joined() {
    let mut bed = Bed::new("create table plain (id int primary key)").await;
    let (is_mariadb, version) = server(&bed);
    if !is_mariadb || version < (11, 7) {
        return left_out::note("uuid_v7(): MariaDB has it from 11.7 on");
    }
    for function in ["uuid_v7()", "uuid_v4()", "uuid()"] {
        for key in ["uuid", "varchar(36)"] {
            bed.sql(&format!(
                "create or replace table t (id {key} primary key default {function}, n int unique, note varchar(9) default 'by t')"
            ));
            let make = || insert("t", &["n"]);
            let told_id =
                |done: &WriteDone| done.returned.as_ref().map(|row| row.rows[0][0].clone());
            for (from, shape) in [
                (0, make().shape()),
                (1000, make().returning(&["id"]).shape()),
                (2000, make().ignore().key(&["n"]).shape()),
            ] {
                let units: Vec<_> = (from..from + 300).map(|n| unit(&shape, row![n])).collect();
                let report = bed.run(&units).await;
                assert_eq!(rung(&report, Rung::Fused), 300, "{function} {shape:?}");
                let done = report
                    .verdicts
                    .into_iter()
                    .map(|verdict| told(verdict).unwrap().remove(0));
                let done: Vec<WriteDone> = done.collect();
                assert!(done.iter().all(|done| done.rows == 1));
                let ids: Vec<Value> = done.iter().filter_map(told_id).collect();
                if !ids.is_empty() {
                    let stored = bed.sql(&format!("select id from t where n >= {from} order by n"));
                    let stored: Vec<Value> = stored.lines().map(Value::from).collect();
                    assert_eq!(ids, stored);
                }
            }
            let counts = "select count(*), count(distinct id), sum(note = 'by t') from t";
            assert_eq!(bed.sql(counts), "900|900|900", "{function}");
        }
    }
}

#[tokio::test]
async fn equal_rows_get_different_numbers() {
    let mut bed = Bed::new(TABLE).await;
    let shape = insert("t", &["name"]).returning(&["id"]).shape();
    let units: Vec<Unit> = (0..40)
        .map(|n| unit(&shape, row![format!("n{}", n % 3)]))
        .collect();
    let mut seen = HashSet::new();
    for done in bed.succeed(&units).await {
        assert!(seen.insert(done.returned.unwrap().rows[0][0].clone()));
    }
    assert_eq!(bed.sql("select count(*) from t"), "40");
    let empty = insert("t", &[]).returning(&["id"]).shape();
    let units: Vec<Unit> = (0..5).map(|_| unit(&empty, vec![])).collect();
    for done in bed.succeed(&units).await {
        assert!(seen.insert(done.returned.unwrap().rows[0][0].clone()));
    }
}

#[tokio::test]
async fn what_the_server_changes_while_storing_is_still_told_right() {
    let mut bed = Bed::new(
        "create table t (id bigint auto_increment primary key, d decimal(5,1), at datetime)",
    )
    .await;
    let shape = insert("t", &["d", "at"]).all().shape();
    let units: Vec<Unit> = (0..10)
        .map(|n| {
            unit(
                &shape,
                vec![
                    number(&format!("{n}.06")),
                    format!("2020-01-01 00:00:0{}.9", n % 9).into(),
                ],
            )
        })
        .collect();
    for (n, done) in (0..).zip(bed.succeed(&units).await) {
        let row = &done.returned.unwrap().rows[0];
        assert_eq!(row[1], number(&format!("{n}.1")), "{row:?}");
    }
}

#[tokio::test]
async fn upserts_tell_the_number_that_was_there() {
    let mut bed = Bed::new(
        "create table t (id bigint auto_increment primary key, mail varchar(50) unique, n int);
         insert into t (mail, n) values ('m3', 0), ('m5', 0)",
    )
    .await;
    let shape = insert("t", &["mail", "n"])
        .upsert()
        .key(&["mail"])
        .returning(&["id", "mail", "n"])
        .shape();
    let units: Vec<Unit> = (0..10)
        .map(|n| unit(&shape, row![format!("m{n}"), n]))
        .collect();
    let report = bed.run(&units).await;
    if server(&bed).0 {
        assert_eq!(rung(&report, Rung::Fused), 10, "{:?}", report.tally);
    }
    for (n, verdict) in (0..10).zip(report.verdicts) {
        let row = told(verdict).unwrap()[0].returned.clone().unwrap().rows[0].clone();
        assert_eq!((&row[1], &row[2]), (&format!("m{n}").into(), &n.into()));
        match n {
            3 => assert_eq!(row[0], 1.into()),
            5 => assert_eq!(row[0], 2.into()),
            _ => assert_ne!(row[0], 1.into()),
        }
    }
}

#[tokio::test]
async fn numbers_are_right_in_every_lock_mode() {
    for mode in ["0", "2"] {
        let server = windrow_testkit::mariadb::MariaDb::builder()
            .set("innodb-autoinc-lock-mode", mode)
            .start()
            .unwrap();
        let url = server.create_database().unwrap();
        windrow_testkit::mariadb::sql(&url, TABLE).unwrap();
        let sink = Driver::open(&Mysql, &url, &Options::default())
            .await
            .unwrap();
        let shape = insert("t", &["name", "n"])
            .returning(&["id", "name"])
            .shape();
        let run = async |who: i32| {
            let mut executor = sink
                .connect(windrow_core::sink::Purpose::Batches)
                .await
                .unwrap();
            let mut names = Vec::new();
            for batch in 0..10 {
                let units: Vec<Unit> = (0..32)
                    .map(|n| unit(&shape, row![format!("{who} {batch} {n}"), n]))
                    .collect();
                for (n, verdict) in (0..).zip(executor.execute(&units).await.verdicts) {
                    let row = told(verdict).unwrap()[0].returned.clone().unwrap().rows[0].clone();
                    assert_eq!(row[1], format!("{who} {batch} {n}").into());
                    names.push(row);
                }
            }
            names
        };
        let (one, two) = tokio::join!(run(1), run(2));
        let all = windrow_testkit::mariadb::sql(&url, "select id, name from t").unwrap();
        let all: HashSet<&str> = all.lines().collect();
        for row in one.into_iter().chain(two) {
            let (Value::Int(id), Value::Text(name)) = (&row[0], &row[1]) else {
                panic!("{row:?}")
            };
            assert!(all.contains(&*format!("{id}|{name}")), "{mode}: {row:?}");
        }
    }
}
