//! Tables that are changed under way: nothing wrong is ever told or written, and statements are
//! described anew.

use std::sync::Arc;

use windrow_core::{Rung, Signature, SqlCall, Statement, Unit, Verdict};
use windrow_database::Options;

use crate::parsed::{insert, update};
use crate::support::{Bed, binary, call, fault, rung, said, unit, unit_of};

fn id(n: usize) -> String {
    n.to_string()
}

/// A call whose text is parsed at its use.
fn fresh(statement: &Arc<Statement>, values: &[&str]) -> Unit {
    unit_of([SqlCall {
        fresh: true,
        ..call(statement, values)
    }])
}

#[tokio::test]
async fn no_table_is_made_for_a_call() {
    let options = Options {
        create_tables: true,
        ..Options::default()
    };
    let mut bed = Bed::waiting("create table t (id int primary key)", &[], &[], &options).await;
    let statement = bed.describe(insert("t", "id", "$1").parsed()).await;
    bed.sql("drop table t");
    let outcomes = bed.outcomes(&[unit(&statement, &["1"])]).await;
    assert_eq!(&*fault(&outcomes[0]).code, "42P01");
    assert_eq!(bed.sql("select to_regclass('t') is null"), "t");
}

#[tokio::test]
async fn what_was_changed_is_noticed_at_once() {
    let mut bed = Bed::new("create table t (id int primary key, f float8, n int default 1); create sequence s start 500").await;
    let parsed = insert("t", "id, f", "$1, $2").parsed();
    let mut next = 0;
    for (change, expected, took) in [
        ("select 1", "0.1|1", ""),
        // A double would lose digits.
        (
            "alter table t alter f type numeric",
            "0.1234567890123456789|1",
            "",
        ),
        (
            "alter table t alter n set default 7",
            "0.1234567890123456789|7",
            "",
        ),
        (
            "alter table t alter n set default nextval('s')",
            "0.1234567890123456789|5",
            ", took 5",
        ),
        (
            "alter table t drop n; alter table t add n text default 'x'",
            "0.1234567890123456789|x",
            "",
        ),
    ] {
        for many in [1, 10] {
            let statement = bed.describe(parsed.clone()).await;
            let value = if expected.starts_with("0.1|") {
                "0.1"
            } else {
                "0.1234567890123456789"
            };
            // All is prepared and described before the change.
            let batch = |next: &mut usize| -> Vec<_> {
                *next += many;
                (*next - many..*next)
                    .map(|n| fresh(&statement, &[&id(n), value]))
                    .collect()
            };
            let before = batch(&mut next);
            bed.run(&before).await;
            bed.sql(change);
            let after = batch(&mut next);
            let (done, _) = bed.succeed(&after).await;
            for (place, done) in done.iter().enumerate() {
                let row = bed.sql(&format!(
                    "select f, n from t where id = {}",
                    next - many + place
                ));
                assert!(row.starts_with(expected), "{change}: {row}");
                assert!(
                    said(done).starts_with(&format!("1{took}")),
                    "{change}: {}",
                    said(done)
                );
                if !took.is_empty() {
                    assert!(said(done).ends_with(row.rsplit('|').next().unwrap()));
                }
            }
            assert!(
                statement.is_retired() || change == "select 1" || many == 10,
                "{change}"
            );
        }
    }
}

#[tokio::test]
async fn a_trigger_or_a_partition_that_appears_is_noticed() {
    let mut bed = Bed::new(
        "create table t (id int primary key, a text references u) ;
         create table part (id int primary key) partition by range (id); create table low partition of part for values from (0) to (1000);
         create function f() returns trigger language plpgsql as $$ begin raise notice 'seen %', new.id; return new; end $$"
            .replace("references u", "").as_str(),
    )
    .await;
    for (table, on) in [("t", "t"), ("part", "low")] {
        let statement = bed.describe(insert(table, "id", "$1").parsed()).await;
        let units: Vec<_> = (0..10).map(|n| unit(&statement, &[&id(n)])).collect();
        let (_, report) = bed.succeed(&units).await;
        assert_eq!(rung(&report, Rung::Fused), 10);
        bed.sql(&format!(
            "create trigger f before insert on {on} for each row execute function f()"
        ));
        let units: Vec<_> = (10..20).map(|n| unit(&statement, &[&id(n)])).collect();
        let (done, report) = bed.succeed(&units).await;
        assert_eq!(rung(&report, Rung::Fused), 0);
        assert!(statement.is_retired());
        for (n, done) in (10..20).zip(&done) {
            assert_eq!(said(done), format!("1, N SNOTICE; C00000; Mseen {n}"));
        }
        let anew = bed.describe(statement.parsed().clone()).await;
        let (done, _) = bed.succeed(&[unit(&anew, &["20"])]).await;
        assert_eq!(said(&done[0]), "1, N SNOTICE; C00000; Mseen 20");
    }
}

#[tokio::test]
async fn another_table_of_the_name_is_noticed() {
    let mut bed = Bed::with(
        "create schema one; create table t (id int primary key)",
        &[("search_path", "one, public")],
        &[],
    )
    .await;
    let statement = bed.describe(insert("t", "", "$1").parsed()).await;
    let units: Vec<_> = (0..10).map(|n| unit(&statement, &[&id(n)])).collect();
    bed.succeed(&units).await;
    bed.sql("create table one.t (id bigint)");
    let (done, _) = bed.succeed(&units).await;
    assert!(done.iter().all(|done| said(done) == "1"));
    assert_eq!(bed.sql("select count(*) from one.t"), "10");
    bed.sql("drop table one.t, public.t");
    let outcomes = bed.outcomes(&units[..3]).await;
    assert!(
        outcomes
            .iter()
            .all(|outcome| &*fault(outcome).code == "42P01")
    );
}

#[tokio::test]
async fn rows_keep_the_columns_that_were_told() {
    let mut bed = Bed::new("create table t (id int primary key, a text)").await;
    let all = bed
        .describe(update("t", "a = $1", "id = $2").returning("*").parsed())
        .await;
    let one = bed
        .describe(insert("t", "id", "$1").returning("id").parsed())
        .await;
    let (done, _) = bed
        .succeed(&[unit(&one, &["1"]), unit(&all, &["x", "1"])])
        .await;
    assert_eq!(said(&done[1]), "1, D 1|x");
    bed.sql("alter table t add b int default 5");
    let outcomes = bed
        .outcomes(&[unit(&one, &["2"]), unit(&all, &["y", "1"])])
        .await;
    assert_eq!(said(&outcomes[0].as_ref().unwrap()[0]), "1, D 2");
    assert_eq!(&*fault(&outcomes[1]).code, "0A000");
    let anew = bed.describe(all.parsed().clone()).await;
    let (done, _) = bed.succeed(&[unit(&anew, &["z", "1"])]).await;
    assert_eq!(said(&done[0]), "1, D 1|z|5");
}

#[tokio::test]
async fn texts_are_read_as_the_type_that_was_told() {
    let mut bed = Bed::new("create table t (id int primary key, f float8, n int)").await;
    let parsed = insert("t", "id, f, n", "$1, $2, $3")
        .returning("n")
        .parsed();
    let statement = bed.describe(parsed).await;
    bed.succeed(&[unit(&statement, &["1", "0.5", "1"])]).await;
    bed.sql("alter table t alter f type numeric, alter n type text");
    let digits = "0.1234567890123456789";
    for many in [1, 10] {
        let values: Vec<_> = (0..many).map(|n| id(100 * many + n)).collect();
        let told: Vec<_> = values
            .iter()
            .map(|id| unit(&statement, &[id, digits, "2"]))
            .collect();
        for outcome in bed.outcomes(&told).await {
            assert_eq!(&*fault(&outcome).code, "0A000");
        }
        let anew: Vec<_> = values
            .iter()
            .map(|id| fresh(&statement, &[id, digits, "2"]))
            .collect();
        let (done, _) = bed.succeed(&anew).await;
        for (done, id) in done.iter().zip(&values) {
            let signature = done.extra.as_ref().unwrap().signature.as_ref().unwrap();
            assert_eq!(*signature.parameters, [23, 1700, 25]);
            let row = bed.sql(&format!("select f, n from t where id = {id}"));
            assert_eq!(row, format!("{digits}|2"));
        }
    }
    bed.sql("alter table t alter n type int using 0");
    let (done, _) = bed.succeed(&[unit(&statement, &["2", digits, "2"])]).await;
    assert_eq!(said(&done[0]), "1, D 2");
    assert_eq!(bed.sql("select f from t where id = 2"), "0.123456789012346");
}

#[tokio::test]
async fn binary_values_keep_the_type_that_was_told() {
    let mut bed = Bed::new("create table t (id int primary key, n int)").await;
    let statement = bed.describe(insert("t", "", "$1, $2").parsed()).await;
    let one = |n: i32| {
        unit_of([binary(
            &statement,
            &[&n.to_be_bytes(), &7_i32.to_be_bytes()],
        )])
    };
    bed.succeed(&[one(1)]).await;
    bed.sql("alter table t alter n type bigint, alter id type bigint");
    let units: Vec<_> = (2..12).map(one).collect();
    bed.succeed(&units).await;
    assert_eq!(
        bed.sql("select count(*), max(id), max(n) from t"),
        "11|11|7"
    );
}

#[tokio::test]
async fn changes_while_batches_run_do_no_harm() {
    let mut bed =
        Bed::new("create table t (id int primary key, n int default 0, s text default 'a')").await;
    let url = bed.database.url().to_owned();
    let changing = tokio::task::spawn_blocking(move || {
        for round in 0..30 {
            let sql = match round % 3 {
                0 => "alter table t alter n set default 1",
                1 => "alter table t add extra int; alter table t drop extra",
                _ => "alter table t alter s type varchar(10); alter table t alter s type text",
            };
            windrow_testkit::postgres::psql(&url, sql).unwrap();
        }
    });
    let parsed = insert("t", "id", "$1").returning("id").parsed();
    let mut statement = bed.describe(parsed.clone()).await;
    let mut next = 0;
    while !changing.is_finished() {
        if statement.is_retired() {
            statement = bed.describe(parsed.clone()).await;
        }
        let units: Vec<_> = (next..next + 20)
            .map(|n| unit(&statement, &[&id(n)]))
            .collect();
        let report = bed.run(&units).await;
        for (n, verdict) in (next..).zip(report.verdicts) {
            match verdict {
                Verdict::Final(outcome) => {
                    assert_eq!(said(&outcome.unwrap()[0]), format!("1, D {n}"));
                }
                _ => {
                    assert_eq!(
                        bed.sql(&format!("select count(*) from t where id = {n}")),
                        "0"
                    );
                }
            }
        }
        next += 20;
    }
    changing.await.unwrap();
}

#[tokio::test]
async fn of_what_the_lane_knows_nothing_each_call_is_parsed_anew() {
    let mut bed = Bed::new("create table t (id int primary key, a text)").await;
    let signature = Signature {
        parameters: [23, 25].into(),
        fields: None,
    };
    let parsed = insert("t", "id, a", "$1, $2").parsed();
    let elsewhere = Arc::new(Statement::new(parsed, Arc::new(signature), Arc::new(())));
    let units: Vec<_> = [1, 2, 3, 2, 4, 5, 6, 7]
        .map(|n| unit(&elsewhere, &[&id(n), "x"]))
        .into();
    let outcomes = bed.outcomes(&units).await;
    for (place, outcome) in outcomes.iter().enumerate() {
        match place {
            3 => assert_eq!(&*fault(outcome).code, "23505"),
            _ => assert_eq!(outcome.as_ref().unwrap()[0].rows, 1),
        }
    }
    assert_eq!(bed.sql("select count(*) from t"), "7");
    // Others are joined as ever.
    let statement = bed.describe(insert("t", "id, a", "$1, $2").parsed()).await;
    let units: Vec<_> = (10..20).map(|n| unit(&statement, &[&id(n), "x"])).collect();
    let (_, report) = bed.succeed(&units).await;
    assert_eq!(rung(&report, Rung::Fused), 10);
}

/// A statement is prepared in the round trip that uses it: nothing is told or written by what the
/// server would not accept.
#[tokio::test]
async fn a_statement_that_is_not_accepted_any_more_changes_nothing() {
    let mut bed = Bed::new("create table t (id int primary key, a int, b int)").await;
    let known = bed.describe(insert("t", "id, a", "$1, $2").parsed()).await;
    for many in [1, 10] {
        let new = bed.describe(insert("t", "id, b", "$1, $2").parsed()).await;
        // The table's check is prepared, and the other statement is not.
        bed.succeed(&[unit(&known, &[&id(many), "1"])]).await;
        bed.sql("alter table t rename b to c");
        let units: Vec<_> = (100..100 + many)
            .map(|n| unit(&new, &[&id(n), "1"]))
            .collect();
        for outcome in bed.outcomes(&units).await {
            assert_eq!(&*fault(&outcome).code, "42703");
        }
        bed.sql("alter table t rename c to b");
        let new = bed.describe(insert("t", "id, b", "$1, $2").parsed()).await;
        let units: Vec<_> = (0..many)
            .map(|n| unit(&new, &[&id(200 + n), "1"]))
            .collect();
        bed.succeed(&units).await;
        let seen =
            "select count(*) filter (where b is null), count(*) filter (where id >= 100) from t";
        assert_eq!(bed.sql(seen), format!("1|{many}"));
        bed.sql("delete from t");
    }
}

/// The same of a table that is locked when a statement is prepared.
#[tokio::test]
async fn a_statement_that_waits_for_its_table_is_executed_later() {
    let mut bed = Bed::new("create table t (id int primary key, a int, b int)").await;
    let known = bed.describe(insert("t", "id, a", "$1, $2").parsed()).await;
    let new = bed.describe(insert("t", "id, b", "$1, $2").parsed()).await;
    bed.succeed(&[unit(&known, &["0", "1"])]).await;
    let (mut holder, connection) =
        tokio_postgres::connect(bed.database.url(), tokio_postgres::NoTls)
            .await
            .unwrap();
    let connection = tokio::spawn(connection);
    let held = holder.transaction().await.unwrap();
    held.execute("lock table t", &[]).await.unwrap();
    let units: Vec<_> = (1..=10).map(|n| unit(&new, &[&id(n), "1"])).collect();
    for verdict in bed.run(&units).await.verdicts {
        let waits = matches!(&verdict, Verdict::WaitsForLock(fault) if fault.code == "55P03");
        assert!(waits, "{verdict:?}");
    }
    drop(held);
    bed.succeed(&units).await;
    assert_eq!(bed.sql("select count(*) from t"), "11");
    drop(holder);
    connection.await.unwrap().unwrap();
}
