//! Tables and columns that are made from the rows that name them.

use windrow_core::sink::Purpose;
use windrow_core::{FaultClass, Unit, Value, Verdict};
use windrow_database::Options;

use crate::support::*;
use windrow_testkit::row;

async fn bed(sql: &str) -> Bed {
    let options = Options {
        create_tables: true,
        ..Options::default()
    };
    Bed::with(sql, &options).await
}

const TYPES: &str =
    "select string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' order by attname)
  from pg_attribute where attrelid = 't'::regclass and attnum > 0 and not attisdropped";

#[tokio::test]
async fn a_table_is_made_from_its_first_rows() {
    let mut bed = bed("select 1").await;
    let columns = ["id", "b", "n", "s", "j", "by", "later"];
    let shape = insert("t", &columns).shape();
    let make = |id: i32, n: Value| {
        let bytes = Value::Bytes([1, 2].into());
        let mut row = row![id, true];
        row.extend([n, "text".into(), json("{}"), bytes, Value::Null]);
        unit(&shape, row)
    };
    let mut units: Vec<Unit> = (0..6).map(|id| make(id, 5.into())).collect();
    units.push(make(6, number("1.50")));
    bed.succeed(&units).await;
    assert_eq!(
        bed.sql(TYPES),
        "b boolean, by bytea, id bigint, j jsonb, later text, n numeric, s text"
    );
    let twice = bed.outcomes(&[make(6, 1.into())]).await;
    assert_eq!(fault(&twice[0]).constraint(), Some("t_pkey"));
    assert_eq!(bed.sql("select n from t where id = 6"), "1.50");
}

#[tokio::test]
async fn columns_are_added_and_given_a_type_when_a_value_comes() {
    let mut bed = bed("select 1").await;
    let shape = insert("t", &["id", "a", "later"]).shape();
    bed.succeed(&[unit(&shape, row![1, 5, None::<i32>])]).await;
    bed.succeed(&[unit(&shape, row![2, None::<i32>, 7])]).await;
    assert_eq!(bed.sql(TYPES), "a numeric, id bigint, later numeric");
    let wider = insert("t", &["id", "a", "more"]).shape();
    bed.succeed(&[unit(&wider, row![20, 6, true])]).await;
    let set = update("t", &["note"]).shape();
    bed.succeed(&[unit(&set, row!["hello", 20])]).await;
    assert_eq!(
        bed.sql("select a, later, more, note from t where id in (1, 2, 20) order by id"),
        "5|||\n|7||\n6||t|hello"
    );
}

#[tokio::test]
async fn a_column_of_nulls_that_another_session_filled_is_not_made_again() {
    let mut bed = bed("select 1").await;
    let shape = insert("t", &["id", "later"]).shape();
    bed.succeed(&[unit(&shape, row![1, None::<i32>])]).await;
    bed.sql("update t set later = 'kept'");
    bed.succeed(&[unit(&shape, row![2, 7])]).await;
    assert_eq!(bed.sql(TYPES), "id bigint, later text");
    assert_eq!(bed.sql("select * from t order by id"), "1|kept\n2|7");
}

#[tokio::test]
async fn a_column_keeps_its_type_and_refuses_what_it_would_not_keep() {
    let mut bed = bed("select 1").await;
    let columns = ["id", "n", "x", "b", "d", "at"];
    let shape = insert("t", &columns).shape();
    let row = |id: i32| row![id, 5, 1.5, true, "2024-01-05", "2024-01-05T10:00:00Z"];
    bed.succeed(&[unit(&shape, row(1))]).await;
    let types = "at timestamp with time zone, b boolean, d date, id bigint, n numeric, x numeric";
    assert_eq!(bed.sql(TYPES), types);
    let mut units = vec![unit(&shape, row(2))];
    for (place, value) in [
        (0, Value::from("abc")),
        (0, number("21.5")),
        (1, "n/a".into()),
        (2, "n/a".into()),
        (3, "yes".into()),
        (4, "2024-01-05T10:00:00".into()),
        (5, "now".into()),
    ] {
        let mut row = row(100);
        row[place] = value;
        units.push(unit(&shape, row));
    }
    units.push(unit(&shape, row(3)));
    let outcomes = bed.outcomes(&units).await;
    for (place, outcome) in outcomes.iter().enumerate() {
        if place == 0 || place == units.len() - 1 {
            assert!(outcome.is_ok(), "{outcome:?}");
            continue;
        }
        let fault = fault(outcome);
        assert_eq!(
            (fault.class, &*fault.code),
            (FaultClass::Value, "22P02"),
            "{place}"
        );
        assert!(
            fault
                .hint()
                .is_some_and(|hint| hint.contains("never changes the type"))
        );
    }
    assert_eq!(bed.sql(TYPES), types);
    assert_eq!(bed.sql("select count(*) from t"), "3");
}

#[tokio::test]
async fn tables_of_others_are_left_alone_unless_that_is_asked_for() {
    let table = "create table t (id int primary key, a int)";
    let mut bed = bed(table).await;
    let shape = insert("t", &["id", "a", "new"]).shape();
    let plain = insert("t", &["id", "a"]).shape();
    let outcomes = bed
        .outcomes(&[
            unit(&shape, row![1, 1, 1]),
            unit(&plain, row![2, 2]),
            unit(&plain, row![3, "word"]),
        ])
        .await;
    assert_eq!(fault(&outcomes[0]).class, FaultClass::NoColumn);
    let hint = fault(&outcomes[0]).hint();
    assert!(hint.is_some_and(|hint| hint.contains("extend_tables")));
    assert!(outcomes[1].is_ok());
    assert_eq!(fault(&outcomes[2]).class, FaultClass::Value);
    assert_eq!(bed.sql(TYPES), "a integer, id integer");
    let extending = Options {
        create_tables: true,
        extend_tables: true,
        ..Options::default()
    };
    let mut bed = Bed::with(table, &extending).await;
    bed.succeed(&[unit(&shape, row![1, 1, 1])]).await;
    assert_eq!(bed.sql(TYPES), "a integer, id integer, new numeric");
}

#[tokio::test]
async fn a_primary_key_counts_as_soon_as_it_is_made() {
    let mut bed = bed("create table t (id int not null, a int)").await;
    let set = update("t", &["a"]).shape();
    let outcomes = bed.outcomes(&[unit(&set, row![1, 1])]).await;
    assert!(fault(&outcomes[0]).message.contains("no primary key"));
    bed.sql("alter table t add primary key (id)");
    assert!(bed.outcomes(&[unit(&set, row![1, 1])]).await[0].is_ok());
}

#[tokio::test]
async fn a_named_key_is_the_primary_key() {
    let mut bed = bed("select 1").await;
    let shape = insert("t", &["station", "at", "v"])
        .upsert()
        .key(&["station", "at"])
        .shape();
    let units: Vec<Unit> = (0..20).map(|n| unit(&shape, row!["s", n % 5, n])).collect();
    bed.succeed(&units).await;
    assert_eq!(bed.sql("select count(*), sum(v) from t"), "5|85");
}

#[tokio::test]
async fn several_connections_make_the_same_table_at_once() {
    let bed = bed("select 1").await;
    let shape = insert("t", &["id", "a"]).shape();
    let mut tasks = Vec::new();
    for n in 0..6 {
        let mut executor = bed.connect().await;
        let units: Vec<Unit> = (0..10)
            .map(|i| unit(&shape, vec![(n * 100 + i).into(), "x".into()]))
            .collect();
        let mut alone = bed.sink.connect(Purpose::LockWait).await.unwrap();
        tasks.push(tokio::spawn(async move {
            let verdicts = executor.execute(&units).await.verdicts;
            for (unit, verdict) in units.iter().zip(verdicts) {
                // Who waits too long for the others' tables is run by itself, as a lane does.
                let waits = matches!(verdict, Verdict::WaitsForLock(_));
                let verdict = match waits {
                    true => alone
                        .execute(std::slice::from_ref(unit))
                        .await
                        .verdicts
                        .remove(0),
                    false => verdict,
                };
                let outcome = told(verdict);
                assert!(outcome.is_ok(), "{outcome:?}");
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(bed.sql("select count(*) from t"), "60");
    assert_eq!(bed.sql(TYPES), "a text, id bigint");
}

#[tokio::test]
async fn without_the_option_nothing_is_made() {
    let mut bed = Bed::new("select 1").await;
    let shape = insert("t", &["id"]).shape();
    let outcomes = bed.outcomes(&[unit(&shape, row![1])]).await;
    assert_eq!(fault(&outcomes[0]).class, FaultClass::NoTable);
}
