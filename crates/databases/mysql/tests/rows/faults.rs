//! Each kind of failure is told with its own class, code and constraint, to its own unit alone.

use windrow_core::{FaultClass, Unit};
use windrow_database::Driver;
use windrow_database::Options;
use windrow_mysql::Mysql;

use crate::support::*;
use windrow_testkit::row;

const TABLES: &str = "
create table parent (id int primary key);
insert into parent values (1);
create table t (
  id int primary key, email varchar(50), age smallint, name varchar(5) not null default 'x', parent int,
  twice int generated always as (age * 2) stored, at datetime,
  unique key by_email (email), constraint grown check (age >= 0), constraint to_parent foreign key (parent) references parent (id));
create table firm (id int primary key, need text not null);
create table watched (id int primary key, n int);
delimiter //
create trigger watch before insert on watched for each row
  if new.n = 3 then signal sqlstate '45000' set message_text = 'no three'; end if//
delimiter ;
";

/// What a write fails with, and how it is spelled.
struct Case {
    unit: Unit,
    class: FaultClass,
    code: &'static str,
    place: Option<&'static str>,
}

fn cases(id: i32) -> Vec<Case> {
    use FaultClass::*;
    let with = |column: &str| insert("t", &["id", column]).shape();
    let case = |unit, class, code, place| Case {
        unit,
        class,
        code,
        place,
    };
    let no_key = insert("t", &["id", "name"]).upsert().key(&["name"]).shape();
    let watched = insert("watched", &["id", "n"]).shape();
    vec![
        case(
            unit(&with("age"), row![id, -1]),
            Check,
            "23514",
            Some("grown"),
        ),
        case(
            unit(&with("parent"), row![id, 99]),
            ForeignKey,
            "23503",
            Some("to_parent"),
        ),
        case(
            unit(&with("email"), row![1, "new"]),
            Unique,
            "23505",
            Some("PRIMARY"),
        ),
        case(
            unit(&with("email"), row![id, "taken"]),
            Unique,
            "23505",
            Some("by_email"),
        ),
        case(
            unit(&with("name"), row![id, None::<&str>]),
            NotNull,
            "23502",
            Some("name"),
        ),
        case(
            unit(&insert("firm", &["id"]).shape(), row![id]),
            NotNull,
            "23502",
            Some("need"),
        ),
        case(
            unit(&with("name"), row![id, "too long"]),
            Value,
            "22001",
            Some("name"),
        ),
        case(
            unit(&with("age"), row![id, 40_000]),
            Value,
            "22003",
            Some("age"),
        ),
        case(
            unit(&with("age"), row![id, "old"]),
            Value,
            "22P02",
            Some("age"),
        ),
        case(
            unit(&with("at"), row![id, "never"]),
            Value,
            "22007",
            Some("at"),
        ),
        case(
            unit(&with("no such"), row![id, 1]),
            NoColumn,
            "42703",
            Some("no such"),
        ),
        case(
            unit(&insert("no such", &["id"]).shape(), row![id]),
            NoTable,
            "42P01",
            None,
        ),
        case(
            unit(&insert("nowhere.t", &["id"]).shape(), row![id]),
            NoTable,
            "42P01",
            None,
        ),
        case(unit(&with("twice"), row![id, 1]), Invalid, "428C9", None),
        case(unit(&no_key, row![id, "x"]), NoColumn, "42P10", None),
        case(unit(&watched, row![id, 3]), Check, "45000", None),
        case(
            unit(&delete("parent").shape(), row![1]),
            ForeignKey,
            "23503",
            Some("to_parent"),
        ),
    ]
}

fn check(case: &Case, outcome: &windrow_core::UnitOutcome) {
    let fault = fault(outcome);
    let place = fault.constraint().or(fault.column());
    assert_eq!(
        (fault.class, &*fault.code, place),
        (case.class, case.code, case.place),
        "{fault:?}"
    );
}

async fn bed() -> Bed {
    let bed = Bed::new(TABLES).await;
    bed.sql("insert into t (id, email, parent) values (1, 'taken', 1)");
    bed
}

#[tokio::test]
async fn each_failure_is_told_as_it_is() {
    let mut bed = bed().await;
    for case in cases(500) {
        let outcomes = bed.outcomes(std::slice::from_ref(&case.unit)).await;
        check(&case, &outcomes[0]);
    }
    assert_eq!(bed.sql("select count(*) from t"), "1");
}

#[tokio::test]
async fn a_batch_of_all_failures_spoils_no_healthy_write() {
    let mut bed = bed().await;
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
async fn many_of_one_failure_are_told_alike() {
    let mut bed = bed().await;
    for (at, case) in cases(0).into_iter().enumerate() {
        let shape = case.unit.writes()[0].shape.clone();
        if shape.columns.len() < 2 {
            continue;
        }
        let mut units = Vec::new();
        for n in 0..12_i32 {
            let mut row = case.unit.writes()[0].row().to_vec();
            if row[0] != 1.into() {
                row[0] = (i32::try_from(at).unwrap() * 100 + 1000 + n).into();
            }
            units.push(unit(&shape, row));
        }
        for outcome in bed.outcomes(&units).await {
            check(&case, &outcome);
        }
    }
    assert_eq!(bed.sql("select count(*) from t"), "1");
}

#[tokio::test]
async fn what_makes_no_sense_is_said_without_harm() {
    let mut bed =
        Bed::new("create table bare (a int); create table t (id int primary key, a int)").await;
    let no_pk = update("bare", &["a"]).shape();
    let few = insert("t", &["id", "a"]).shape();
    let twice = insert("t", &["id", "ID"]).shape();
    let outcomes = bed
        .outcomes(&[
            unit(&no_pk, row![1, 2]),
            unit(&few, row![1]),
            unit(&few, row![2, 2]),
            unit(&twice, row![3, 3]),
        ])
        .await;
    assert!(fault(&outcomes[0]).message.contains("no primary key"));
    assert!(
        fault(&outcomes[1])
            .message
            .contains("1 values for 2 columns")
    );
    assert_eq!(outcomes[2].as_ref().unwrap()[0].rows, 1);
    assert_eq!(&*fault(&outcomes[3]).code, "42701");
}

#[tokio::test]
async fn a_user_who_may_not_is_denied_and_one_who_may_insert_only_inserts() {
    let mut bed = Bed::new(
        "create table t (id int primary key, a int); create table closed (id int primary key)",
    )
    .await;
    let database = bed.sql("select database()");
    let clerk = format!("clerk_{}", &database[database.len().saturating_sub(8)..]);
    bed.sql(&format!(
        "create user {clerk}@'127.0.0.1'; grant insert on {database}.t to {clerk}@'127.0.0.1'"
    ));
    let (scheme, rest) = bed.database.url().split_once("://").unwrap();
    let url = format!("{scheme}://{clerk}@{}", rest.split_once('@').unwrap().1);
    let sink = Driver::open(&Mysql, &url, &Options::default())
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
    let refused = fault(&outcomes[10]).class;
    assert!(
        matches!(refused, FaultClass::Denied | FaultClass::NoTable),
        "{refused:?}"
    );
    assert!(outcomes[..10].iter().all(Result::is_ok), "{outcomes:?}");
    assert_eq!(bed.sql("select count(*) from t"), "10");
    bed.sql(&format!("drop user {clerk}@'127.0.0.1'"));
}

#[tokio::test]
async fn who_cannot_come_in_is_told_why() {
    let bed = Bed::new("select 1").await;
    let (scheme, rest) = bed.database.url().split_once("://").unwrap();
    let place = rest.split_once('@').unwrap().1;
    let host = place.split_once('/').unwrap().0;
    for (url, class) in [
        (
            format!("{scheme}://root:secret@{place}"),
            FaultClass::Denied,
        ),
        (
            format!("{scheme}://root@{host}/nowhere"),
            FaultClass::Invalid,
        ),
        (
            "mysql://root:secret@127.0.0.1:1/x".to_owned(),
            FaultClass::Unavailable,
        ),
    ] {
        let sink = Driver::open(&Mysql, &url, &Options::default())
            .await
            .unwrap();
        let fault = sink.ping().await.unwrap_err();
        assert_eq!(fault.class, class, "{fault}");
        assert!(!fault.message.contains("secret"), "{fault}");
    }
    bed.sink.ping().await.unwrap();
}

/// Values that no partition accepts, or that the character set of a column lacks.
#[tokio::test]
async fn values_that_do_not_fit_are_the_clients_errors() {
    let mut bed = Bed::new(
        "create table parts (id int primary key) partition by range (id) (partition a values less than (10));
         create table latin (s varchar(9) character set latin1 primary key)",
    )
    .await;
    let none = bed
        .one(insert("parts", &["id"]).of(row![20]))
        .await
        .unwrap_err();
    assert_eq!(
        (none.class, &*none.code),
        (FaultClass::Check, "23514"),
        "{none:?}"
    );
    let none = bed.one(get("latin").of(row!["λ"])).await.unwrap_err();
    assert_eq!(
        (none.class, &*none.code),
        (FaultClass::Value, "22021"),
        "{none:?}"
    );
    if server(&bed).0 {
        return;
    }
    bed.sql(
        "create table places (p point not null srid 4326);
             create table lists (j json, index ((cast(j->'$' as unsigned array))))",
    );
    let place = bed
        .one(insert("places", &["p"]).of(row!["AAAAAAEBAAAAAAAAAAAA8D8AAAAAAADwPw=="]))
        .await
        .unwrap_err();
    assert_eq!(
        (place.class, &*place.code),
        (FaultClass::Value, "22P02"),
        "{place:?}"
    );
    let list = bed
        .one(insert("lists", &["j"]).of(vec![json("[1,\"a\"]")]))
        .await
        .unwrap_err();
    assert_eq!(
        (list.class, &*list.code),
        (FaultClass::Value, "22P02"),
        "{list:?}"
    );
}
