//! What runs code of which nothing is proven shares nothing with others.

use windrow_core::{FaultClass, Level, Rung, Unit, UnitOutcome};
use windrow_database::Driver;
use windrow_database::Options;
use windrow_mysql::Mysql;

use crate::support::*;
use windrow_testkit::{left_out, row};

#[tokio::test]
async fn a_trigger_that_only_gives_values_keeps_no_write_from_a_statement_for_many() {
    let mut bed = Bed::new(
        "create table t (id int primary key, v varchar(9), low varchar(9), at datetime);
         create trigger b before insert on t for each row set new.low = lower(new.v), new.at = now();
         create trigger u before update on t for each row set new.at = now(), new.low = lower(new.v)",
    )
    .await;
    let put = insert("t", &["id", "v"]).all().shape();
    let set = update("t", &["v"]).shape();
    let units: Vec<Unit> = (0..30)
        .map(|id| unit(&put, row![id, format!("V{id}")]))
        .collect();
    let report = bed.run(&units).await;
    if server(&bed).0 {
        assert_eq!(rung(&report, Rung::Fused), 30, "{:?}", report.tally);
    }
    for (id, verdict) in report.verdicts.into_iter().enumerate() {
        let row = &told(verdict).unwrap()[0].returned.clone().unwrap().rows[0];
        assert_eq!(row[2], format!("v{id}").into());
    }
    let units: Vec<Unit> = (0..30)
        .map(|id| unit(&set, row![format!("W{id}"), id]))
        .collect();
    let report = bed.run(&units).await;
    assert_eq!(rung(&report, Rung::Fused), 30, "{:?}", report.tally);
    let all = "select count(*) from t where low = concat('w', id) and at is not null";
    assert_eq!(bed.sql(all), "30");
}

/// Rows could be taken for each other's where a trigger changes what they are told apart by.
#[tokio::test]
async fn a_trigger_that_changes_what_was_given_makes_no_row_another_ones() {
    let mut bed = Bed::new(
        "create table t (id int auto_increment primary key, v int, w int);
         create trigger b before insert on t for each row set new.v = 1 - new.v",
    )
    .await;
    let put = insert("t", &["v"]).returning(&["id", "v"]).shape();
    let units: Vec<Unit> = (0..20).map(|n| unit(&put, row![n % 2])).collect();
    for (n, done) in (0..).zip(bed.succeed(&units).await) {
        assert_eq!(done.returned.unwrap().rows[0][1], (1 - n % 2).into());
    }
}

#[tokio::test]
async fn what_a_trigger_leaves_behind_is_met_by_nobody() {
    let mut bed = Bed::new(
        "create table t (id int primary key, n int, l int);
         create table plain (id int primary key, n int);
         create table given (id int primary key, n int);
         create trigger b before insert on t for each row
           set @n = coalesce(@n, 0) + 1, new.n = @n, new.l = get_lock('windrow_test', 0), sql_mode = ''",
    )
    .await;
    if server(&bed).0 {
        bed.sql("alter table given modify n int default (@n)");
    } else {
        left_out::note("defaults of user variables: MySQL has none");
    }
    let (put, plain) = (
        insert("t", &["id"]).shape(),
        insert("plain", &["id", "n"]).shape(),
    );
    let given = insert("given", &["id"]).shape();
    let mut units = Vec::new();
    for id in 0..20 {
        units.push(unit(&put, row![id]));
        units.push(unit(&plain, row![id, if id % 5 == 0 { "x" } else { "1" }]));
        units.push(unit(&given, row![id]));
    }
    units.push(Unit::of([write(&put, row![100]), write(&put, row![101])]));
    let outcomes = bed.outcomes(&units).await;
    for (n, outcome) in outcomes.iter().enumerate() {
        match n < 60 && n % 3 == 1 && n / 3 % 5 == 0 {
            true => assert_eq!(fault(outcome).class, FaultClass::Value, "{n}"),
            false => assert!(outcome.is_ok(), "{n}: {outcome:?}"),
        }
    }
    assert_eq!(bed.sql("select id, n from t where n <> 1"), "101|2");
    assert_eq!(bed.sql("select count(*), max(l), min(l) from t"), "22|1|1");
    assert_eq!(bed.sql("select count(*), count(n) from given"), "20|0");
    assert_eq!(bed.sql("select is_free_lock('windrow_test')"), "1");
    let told = bed.sink.standings();
    let of = |table: &str| {
        let mut of = told.iter().filter(|s| s.table.to_string() == table);
        of.next().map(|s| {
            (
                s.level,
                s.why.clone().map_or(String::new(), |w| w.to_string()),
            )
        })
    };
    assert_eq!(of("plain"), Some((Level::Fused, String::new())));
    let (level, why) = of("t").unwrap();
    assert_eq!(level, Level::Apart);
    assert!(why.contains("trigger b on t"), "{why}");
}

/// A number that the server gave to a stranger's row is none of a trigger's.
#[tokio::test]
async fn numbers_that_others_were_given_are_not_seen_by_triggers() {
    let mut bed = Bed::new(
        "create table numbered (id int auto_increment primary key, v int);
         create table t (id int primary key, latest bigint);
         create trigger b before insert on t for each row set new.latest = last_insert_id()",
    )
    .await;
    let (number, put) = (
        insert("numbered", &["v"]).shape(),
        insert("t", &["id"]).shape(),
    );
    for round in 0..3 {
        let mut units = Vec::new();
        for id in 0..8 {
            units.push(unit(&number, row![id]));
            units.push(unit(&put, row![round * 100 + id]));
        }
        bed.succeed(&units).await;
    }
    assert_eq!(bed.sql("select count(*), max(latest) from t"), "24|0");
}

fn failed(outcomes: &[UnitOutcome]) -> usize {
    outcomes.iter().filter(|outcome| outcome.is_err()).count()
}

#[tokio::test]
async fn a_unit_whose_trigger_writes_to_a_table_without_transactions_is_tried_once() {
    let mut bed = Bed::new(
        "create table t (id int primary key, n int check (n < 10));
         create table audit (id int) engine = myisam;
         create trigger a before insert on t for each row insert into audit values (new.id)",
    )
    .await;
    let put = insert("t", &["id", "n"]).shape();
    let mut units = Vec::new();
    for id in 0..20 {
        let rows = [
            row![id * 3, 1],
            row![id * 3 + 1, 1],
            row![id * 3 + 2, 1 + id % 2 * 10],
        ];
        units.push(Unit::of(rows.map(|row| write(&put, row))));
        units.push(unit(&put, row![1000 + id, 10 * (id % 2)]));
    }
    let outcomes = bed.outcomes(&units).await;
    assert_eq!(failed(&outcomes), 20);
    for outcome in &outcomes {
        assert!(outcome.is_ok() || fault(outcome).class == FaultClass::Check);
    }
    assert_eq!(bed.sql("select count(*) from t"), "40");
    // The check of a column comes before the trigger in some servers and behind it in others.
    let once = "select count(*) from (select id from audit group by id having count(*) > 1) x";
    assert_eq!(bed.sql(once), "0");
    let audited: u32 = bed.sql("select count(*) from audit").parse().unwrap();
    assert!((60..=80).contains(&audited), "{audited}");
}

#[tokio::test]
async fn a_table_that_becomes_one_without_transactions_is_told_truly() {
    let mut bed = Bed::new("create table t (id int primary key, n int)").await;
    let put = insert("t", &["id", "n"]).shape();
    let batch =
        |from: i32| -> Vec<Unit> { (from..from + 6).map(|id| unit(&put, row![id, 1])).collect() };
    bed.succeed(&batch(0)).await;
    bed.succeed(&batch(10)).await;
    bed.sql("alter table t engine = myisam");
    // The fourth row is there already: those before it are written, whatever is told.
    let outcomes = bed.outcomes(&batch(7)).await;
    for (id, outcome) in (7..).zip(&outcomes) {
        let stored = bed.sql(&format!("select count(*) from t where id = {id}")) == "1";
        match outcome {
            Ok(_) => assert!(stored, "{id}"),
            Err(fault) if fault.fault.class == FaultClass::Unknown => {}
            Err(fault) => assert!(
                id >= 10 && fault.fault.class == FaultClass::Unique,
                "{id}: {fault:?}"
            ),
        }
    }
    let before = bed.sql("select count(*) from t");
    let body = Unit::of([write(&put, row![100, 1]), write(&put, row![10, 1])]);
    let outcomes = bed.outcomes(&[body]).await;
    assert_eq!(fault(&outcomes[0]).class, FaultClass::Unsupported);
    assert_eq!(bed.sql("select count(*) from t"), before);
}

#[tokio::test]
async fn an_atomic_unit_meets_the_engine_of_its_moment() {
    let mut bed = Bed::new("create table t (id int primary key, n int)").await;
    let put = insert("t", &["id", "n"]).shape();
    let body = |id: i32| Unit::of([write(&put, row![id, 1]), write(&put, row![1, 1])]);
    bed.succeed(&[Unit::of([write(&put, row![1, 1])])]).await;
    assert_eq!(
        fault(&bed.outcomes(&[body(2)]).await[0]).class,
        FaultClass::Unique
    );
    let engine = if server(&bed).0 { "aria" } else { "myisam" };
    bed.sql(&format!("alter table t engine = {engine}"));
    assert_eq!(
        fault(&bed.outcomes(&[body(3)]).await[0]).class,
        FaultClass::Unsupported
    );
    assert_eq!(bed.sql("select group_concat(id) from t"), "1");
}

#[tokio::test]
async fn a_key_that_comes_between_upserts_makes_none_change_another_row() {
    let mut bed = Bed::new("create table t (id int primary key, mail varchar(20), n int)").await;
    let put = insert("t", &["id", "mail", "n"]).upsert().shape();
    let batch = |from: i32, mail: i32, n: i32| -> Vec<Unit> {
        let ids = (from..from + 6).zip(mail..);
        ids.map(|(id, mail)| unit(&put, row![id, format!("m{mail}"), n]))
            .collect()
    };
    bed.succeed(&batch(0, 0, 1)).await;
    bed.sql("alter table t add unique mail (mail)");
    let outcomes = bed.outcomes(&batch(100, 3, 2)).await;
    for (n, outcome) in outcomes.iter().enumerate() {
        match n {
            0..3 => assert_eq!(fault(outcome).constraint(), Some("mail")),
            _ => assert!(outcome.is_ok(), "{outcome:?}"),
        }
    }
    assert_eq!(
        bed.sql("select count(*), sum(n), min(id) from t where n = 2"),
        "3|6|103"
    );
}

/// Who may not see the triggers of a table gets the same answers.
#[tokio::test]
async fn triggers_that_cannot_be_seen_are_reckoned_with() {
    let server = windrow_testkit::mariadb::MariaDb::start().unwrap();
    let url = server.create_database().unwrap();
    let sql = |text: &str| windrow_testkit::mariadb::sql(&url, text).unwrap();
    sql("create table t (id int primary key, n int);
         create trigger b before insert on t for each row set @n = coalesce(@n, 0) + 1, new.n = @n;
         create user app@'%'; grant select, insert, update, delete on *.* to app@'%'");
    let own = url.replace("root@", "app@");
    let sink = Driver::open(&Mysql, &own, &Options::default())
        .await
        .unwrap();
    let purpose = windrow_core::sink::Purpose::Batches;
    let mut executor = sink.connect(purpose).await.unwrap();
    let put = insert("t", &["id"]).shape();
    let units: Vec<Unit> = (0..10).map(|id| unit(&put, row![id])).collect();
    for verdict in executor.execute(&units).await.verdicts {
        assert_eq!(told(verdict).unwrap()[0].rows, 1);
    }
    assert_eq!(sql("select count(*), max(n) from t"), "10|1");
    assert!(
        sink.standings()[0]
            .why
            .as_ref()
            .unwrap()
            .advice
            .contains("TRIGGER")
    );
}
