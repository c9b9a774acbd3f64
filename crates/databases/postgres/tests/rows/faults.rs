//! Each kind of failure is told with its own class, code and constraint, to its own unit alone.

use windrow_core::{FaultClass, Unit};
use windrow_database::Driver;
use windrow_postgres::Postgres;

use crate::support::*;
use windrow_testkit::row;

const TABLES: &str = "
create table parent (id int primary key);
insert into parent values (1);
create type mood as enum ('ok', 'meh');
create table t (
  id int primary key, email text unique, age smallint check (age >= 0), name varchar(5) not null default 'x',
  parent int references parent, at timestamptz, amount numeric(5,2), by bytea, j jsonb, m mood, u uuid,
  always int generated always as identity, twice int generated always as (age * 2) stored);
create table strict (id int primary key, need text not null);";

/// What a write fails with, and how it is spelled.
struct Case {
    unit: Unit,
    class: FaultClass,
    code: &'static str,
    constraint: Option<&'static str>,
}

fn case(unit: Unit, class: FaultClass, code: &'static str) -> Case {
    Case {
        unit,
        class,
        code,
        constraint: None,
    }
}

fn cases(from: i32) -> Vec<Case> {
    let with = |column: &str| insert("t", &["id", column]).shape();
    let id = from;
    let value = |column: &str, value: windrow_core::Value, code| {
        let unit = unit(&with(column), vec![id.into(), value]);
        case(unit, FaultClass::Value, code)
    };
    let mut cases = vec![
        value("age", 40_000.into(), "22003"),
        value("age", "old".into(), "22P02"),
        value("age", number("99999999999999999999"), "22003"),
        value("name", "too long".into(), "22001"),
        value("at", "never ever".into(), "22007"),
        value("at", "2023-02-29T00:00:00Z".into(), "22008"),
        value("amount", number("1234.5"), "22003"),
        value("m", "no such".into(), "22P02"),
        value("u", "no uuid".into(), "22P02"),
        value("by", "no base64!".into(), "22P02"),
        value("j", json("{\"a\": \"\\u0000\"}"), "22P05"),
        value("j", json("{not json"), "22P02"),
        value("email", "zero \0 byte".into(), "22021"),
    ];
    let mut broken = |unit, class, code, constraint| {
        cases.push(Case {
            unit,
            class,
            code,
            constraint,
        });
    };
    broken(
        unit(&with("age"), row![id, -1]),
        FaultClass::Check,
        "23514",
        Some("t_age_check"),
    );
    broken(
        unit(&with("parent"), row![id, 99]),
        FaultClass::ForeignKey,
        "23503",
        Some("t_parent_fkey"),
    );
    broken(
        unit(&with("email"), row![1, "new"]),
        FaultClass::Unique,
        "23505",
        Some("t_pkey"),
    );
    broken(
        unit(&with("email"), row![id, "taken"]),
        FaultClass::Unique,
        "23505",
        Some("t_email_key"),
    );
    broken(
        unit(&with("name"), row![id, None::<&str>]),
        FaultClass::NotNull,
        "23502",
        None,
    );
    broken(
        unit(&insert("strict", &["id"]).shape(), row![id]),
        FaultClass::NotNull,
        "23502",
        None,
    );
    broken(
        unit(&with("no such"), row![id, 1]),
        FaultClass::NoColumn,
        "42703",
        None,
    );
    broken(
        unit(&insert("no such", &["id"]).shape(), row![id]),
        FaultClass::NoTable,
        "42P01",
        None,
    );
    broken(
        unit(&insert("nowhere.t", &["id"]).shape(), row![id]),
        FaultClass::NoTable,
        "42P01",
        None,
    );
    broken(
        unit(&with("always"), row![id, 1]),
        FaultClass::Invalid,
        "428C9",
        None,
    );
    broken(
        unit(&with("twice"), row![id, 1]),
        FaultClass::Invalid,
        "428C9",
        None,
    );
    let no_key = insert("t", &["id", "name"]).upsert().key(&["name"]).shape();
    broken(
        unit(&no_key, row![id, "x"]),
        FaultClass::NoColumn,
        "42P10",
        None,
    );
    cases
}

fn check(case: &Case, outcome: &windrow_core::UnitOutcome) {
    let fault = fault(outcome);
    assert_eq!(
        (fault.class, &*fault.code, fault.constraint()),
        (case.class, case.code, case.constraint),
        "{fault:?}"
    );
}

#[tokio::test]
async fn each_failure_is_told_as_it_is() {
    let mut bed = Bed::new(TABLES).await;
    bed.sql("insert into t (id, email) values (1, 'taken')");
    for case in cases(500) {
        let outcomes = bed.outcomes(std::slice::from_ref(&case.unit)).await;
        check(&case, &outcomes[0]);
    }
    assert_eq!(bed.sql("select count(*) from t"), "1");
}

#[tokio::test]
async fn a_batch_of_all_failures_spoils_no_healthy_write() {
    let mut bed = Bed::new(TABLES).await;
    bed.sql("insert into t (id, email) values (1, 'taken')");
    let healthy = insert("t", &["id", "name", "age"]).shape();
    let cases = cases(500);
    let mut units = Vec::new();
    for (place, case) in (1000..).zip(&cases) {
        units.push(unit(&healthy, row![place, "fine", 1]));
        units.push(case.unit.clone());
    }
    let outcomes = bed.outcomes(&units).await;
    for (case, pair) in cases.iter().zip(outcomes.chunks(2)) {
        assert_eq!(pair[0].as_ref().unwrap()[0].rows, 1);
        check(case, &pair[1]);
    }
    let expected = cases.len() + 1;
    assert_eq!(bed.sql("select count(*) from t"), expected.to_string());
}

#[tokio::test]
async fn what_makes_no_sense_is_said_without_harm() {
    let mut bed =
        Bed::new("create table bare (a int); create table t (id int primary key, a int)").await;
    let no_pk = update("bare", &["a"]).shape();
    let few = insert("t", &["id", "a"]).shape();
    let system = insert("t", &["id"]).returning(&["ctid"]).shape();
    let outcomes = bed
        .outcomes(&[
            unit(&no_pk, row![1, 2]),
            unit(&few, row![1]),
            unit(&few, row![2, 2]),
            unit(&system, row![3]),
        ])
        .await;
    assert!(fault(&outcomes[0]).message.contains("no primary key"));
    assert!(
        fault(&outcomes[1])
            .message
            .contains("1 values for 2 columns")
    );
    assert_eq!(outcomes[2].as_ref().unwrap()[0].rows, 1);
    assert!(fault(&outcomes[3]).message.contains("ctid"));
}

#[tokio::test]
async fn a_role_that_may_not_is_denied_and_one_that_may_insert_only_inserts() {
    let mut bed = Bed::new(
        "create table t (id int primary key, a int); create table closed (id int primary key);
         drop role if exists windrow_clerk; create role windrow_clerk login; grant insert on t to windrow_clerk;",
    )
    .await;
    let (scheme, rest) = bed.database.url().split_once("://").unwrap();
    let host = rest.split_once('@').unwrap().1;
    let url = format!("{scheme}://windrow_clerk@{host}");
    let sink = Driver::open(&Postgres, &url, &windrow_database::Options::default())
        .await
        .unwrap();
    bed.executor = sink
        .connect(windrow_core::sink::Purpose::Batches)
        .await
        .unwrap();
    let open = insert("t", &["id", "a"]).shape();
    let mut units: Vec<_> = (0..10).map(|n| unit(&open, row![n, n])).collect();
    units.push(unit(&insert("closed", &["id"]).shape(), row![1]));
    let outcomes = bed.outcomes(&units).await;
    assert_eq!(fault(&outcomes[10]).class, FaultClass::Denied);
    assert!(outcomes[..10].iter().all(Result::is_ok), "{outcomes:?}");
    assert_eq!(bed.sql("select count(*) from t"), "10");
    bed.sql("drop owned by windrow_clerk; drop role windrow_clerk");
}
