//! Tables and columns that are made from the rows that name them.

use windrow_core::sink::Purpose;
use windrow_core::{FaultClass, RowWrite, Unit, Value, Verdict};
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
    let mut units: Vec<Unit<RowWrite>> = (0..6).map(|id| make(id, 5.into())).collect();
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
async fn columns_are_added_widened_and_given_a_type_when_a_value_comes() {
    let mut bed = bed("select 1").await;
    let shape = insert("t", &["id", "a", "later"]).shape();
    bed.succeed(&[unit(&shape, row![1, 5, None::<i32>])]).await;
    bed.succeed(&[unit(&shape, row![2, None::<i32>, 7])]).await;
    assert_eq!(bed.sql(TYPES), "a bigint, id bigint, later bigint");
    let batch: Vec<Unit<RowWrite>> = (3..20)
        .map(|n| {
            let a = if n == 9 {
                number("0.25")
            } else {
                Value::from(n)
            };
            unit(&shape, vec![n.into(), a, Value::Null])
        })
        .collect();
    bed.succeed(&batch).await;
    assert_eq!(bed.sql(TYPES), "a numeric, id bigint, later bigint");
    let wider = insert("t", &["id", "a", "more"]).shape();
    bed.succeed(&[unit(&wider, row![20, "word", true])]).await;
    assert_eq!(
        bed.sql(TYPES),
        "a text, id bigint, later bigint, more boolean"
    );
    let set = update("t", &["note"]).shape();
    bed.succeed(&[unit(&set, row!["hello", 20])]).await;
    assert_eq!(
        bed.sql("select a, later, more, note from t where id in (1, 2, 9, 20) order by id"),
        "5|||\n|7||\n0.25|||\nword||t|hello"
    );
}

#[tokio::test]
async fn keys_keep_their_types() {
    let mut bed = bed("select 1").await;
    let shape = insert("t", &["id", "a"]).shape();
    bed.succeed(&[unit(&shape, row![1, 5])]).await;
    let outcomes = bed
        .outcomes(&[
            unit(&shape, row!["abc", 2]),
            unit(&shape, row!["3", "word"]),
        ])
        .await;
    assert_eq!(fault(&outcomes[0]).class, FaultClass::Value);
    assert!(outcomes[1].is_ok());
    assert_eq!(bed.sql(TYPES), "a text, id bigint");
    assert_eq!(bed.sql("select * from t order by id"), "1|5\n3|word");
}

#[tokio::test]
async fn the_users_own_columns_keep_their_types() {
    let mut bed = bed("create table t (id int primary key, a int)").await;
    let shape = insert("t", &["id", "a", "new"]).shape();
    let outcomes = bed
        .outcomes(&[
            unit(&shape, row![1, 1, 1]),
            unit(&shape, row![2, "word", 2]),
        ])
        .await;
    assert!(outcomes[0].is_ok());
    assert_eq!(fault(&outcomes[1]).class, FaultClass::Value);
    assert_eq!(bed.sql(TYPES), "a integer, id integer, new bigint");
}

#[tokio::test]
async fn a_named_key_is_the_primary_key() {
    let mut bed = bed("select 1").await;
    let shape = insert("t", &["station", "at", "v"])
        .upsert()
        .key(&["station", "at"])
        .shape();
    let units: Vec<Unit<RowWrite>> = (0..20).map(|n| unit(&shape, row!["s", n % 5, n])).collect();
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
        let units: Vec<Unit<RowWrite>> = (0..10)
            .map(|i| {
                let a = match n % 3 {
                    0 => Value::from(i),
                    1 => number("1.5"),
                    _ => Value::text("x"),
                };
                unit(&shape, vec![(n * 100 + i).into(), a])
            })
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
