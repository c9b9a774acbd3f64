//! Failures reach their own clients, with the server's own words, and nobody else.

use windrow_core::{Origin, Rung, SqlCall};

use crate::parsed::{insert, update};
use crate::support::{Bed, call, fault, messages, rung, said, unit, unit_of};

fn id(n: usize) -> String {
    n.to_string()
}

#[tokio::test]
async fn duplicates_are_told_apart_in_one_statement() {
    let mut bed = Bed::new("create table t (id int primary key, a text, s serial, check (a <> 'bad')); insert into t values (5), (50)").await;
    let statement = bed
        .describe(insert("t", "id, a", "$1, $2").returning("id, s").parsed())
        .await;
    let units: Vec<_> = (0..100)
        .map(|n| unit(&statement, &[&id(n), if n == 70 { "bad" } else { "good" }]))
        .collect();
    let report = bed.run(&units).await;
    assert_eq!(rung(&report, Rung::Fused), 97);
    // Describing what to prepare, the batch, the form that tells, and those that failed.
    assert!(
        report.tally.round_trips <= 4,
        "{}",
        report.tally.round_trips
    );
    for (n, verdict) in report.verdicts.into_iter().enumerate() {
        let outcome = crate::support::told(verdict);
        match n {
            5 | 50 => assert_eq!(&*fault(&outcome).code, "23505"),
            70 => assert_eq!(&*fault(&outcome).code, "23514"),
            _ => {
                let s = bed.sql(&format!("select s from t where id = {n}"));
                assert_eq!(
                    said(&outcome.unwrap()[0]),
                    format!("1, D {n}|{s}, took {s}")
                );
            }
        }
    }
}

#[tokio::test]
async fn errors_are_the_servers_own_messages() {
    let mut bed = Bed::new(
        "create table t (id int primary key, a text);
         create function f() returns trigger language plpgsql as $$ begin raise notice 'seen %', new.id; if new.a = 'no' then raise 'not %', new.id using hint = 'h'; end if; return new; end $$;
         create trigger f before insert on t for each row execute function f()",
    )
    .await;
    let statement = bed.describe(insert("t", "", "$1, $2").parsed()).await;
    let units: Vec<_> = (0..10)
        .map(|n| unit(&statement, &[&id(n), if n == 4 { "no" } else { "a" }]))
        .collect();
    let outcomes = bed.outcomes(&units).await;
    for (n, outcome) in outcomes.iter().enumerate() {
        if n == 4 {
            let told = messages(fault(outcome).verbatim().unwrap());
            assert_eq!(
                told,
                [
                    "2 ",
                    "N SNOTICE; C00000; Mseen 4",
                    "E SERROR; CP0001; Mnot 4; Hh"
                ]
            );
        } else {
            assert_eq!(
                said(&outcome.as_ref().unwrap()[0]),
                format!("1, N SNOTICE; C00000; Mseen {n}")
            );
        }
    }
}

#[tokio::test]
async fn an_error_points_into_the_clients_own_text() {
    let mut bed = Bed::new("create table t (id int primary key, n int)").await;
    let statement = bed
        .describe(insert("t", "id, n", "$1, 10 / $2").parsed())
        .await;
    let simple = |n: &str, by: &str| {
        let origin = format!("INSERT  INTO t(id, n) VALUES ({n}, 10 / {by}) -- mine");
        unit_of([SqlCall {
            origin: Some(Box::new(Origin {
                text: origin.into_bytes().into(),
                own: None,
            })),
            ..call(&statement, &[n, by])
        }])
    };
    let outcomes = bed
        .outcomes(&[
            simple("1", "5"),
            simple("2", "0"),
            simple("'x'", "1"),
            simple("3", "1"),
        ])
        .await;
    assert!(outcomes[0].is_ok() && outcomes[3].is_ok());
    assert_eq!(&*fault(&outcomes[1]).code, "22012");
    let told = messages(fault(&outcomes[2]).verbatim().unwrap());
    assert_eq!(
        told,
        ["E SERROR; C22P02; Minvalid input syntax for type integer: \"x\"; P31"]
    );
}

#[tokio::test]
async fn a_commit_that_fails_is_told_to_its_own_unit() {
    let mut bed = Bed::new("create table p (id int primary key); insert into p values (1); create table t (id int primary key, p int references p deferrable)").await;
    let statement = bed
        .describe(insert("t", "", "$1, $2").returning("id").parsed())
        .await;
    // Alone, a violation is reported at the commit from now on.
    bed.sql("alter table t alter constraint t_p_fkey deferrable initially deferred");
    let units: Vec<_> = (0..20)
        .map(|n| unit(&statement, &[&id(n), if n == 13 { "7" } else { "1" }]))
        .collect();
    let outcomes = bed.outcomes(&units).await;
    let failed = outcomes[13].as_ref().unwrap_err();
    assert_eq!((failed.at, &*failed.fault.code), (1, "23503"));
    assert_eq!(
        failed.before.iter().map(said).collect::<Vec<_>>(),
        ["1, D 13"]
    );
    assert_eq!(outcomes.iter().filter(|o| o.is_ok()).count(), 19);
}

#[tokio::test]
async fn a_batch_of_nothing_but_failures_takes_few_round_trips() {
    let mut bed = Bed::new("create table t (id int primary key, n int); insert into t select i, 0 from generate_series(0, 199) i").await;
    let statement = bed
        .describe(insert("t", "id, n", "$1, 1 / $2").parsed())
        .await;
    for _ in 0..3 {
        let units: Vec<_> = (0..200).map(|n| unit(&statement, &[&id(n), "0"])).collect();
        let report = bed.run(&units).await;
        assert!(
            report.tally.round_trips < 30,
            "{}",
            report.tally.round_trips
        );
        let codes = report
            .verdicts
            .into_iter()
            .map(|v| fault(&crate::support::told(v)).code.clone());
        assert!(codes.into_iter().all(|code| code == "22012"));
    }
}

#[tokio::test]
async fn a_row_that_somebody_else_holds_waits_alone() {
    let mut bed = Bed::new("create table t (id int primary key, n int default 0); insert into t select generate_series(0, 19)").await;
    let statement = bed
        .describe(update("t", "n = $1", "id = $2").parsed())
        .await;
    let (mut holder, connection) =
        tokio_postgres::connect(bed.database.url(), tokio_postgres::NoTls)
            .await
            .unwrap();
    let connection = tokio::spawn(connection);
    let held = holder.transaction().await.unwrap();
    held.execute("update t set n = -1 where id = 7", &[])
        .await
        .unwrap();
    let units: Vec<_> = (0..20).map(|n| unit(&statement, &["5", &id(n)])).collect();
    let report = bed.run(&units).await;
    for (n, verdict) in report.verdicts.iter().enumerate() {
        match verdict {
            windrow_core::Verdict::WaitsForLock(fault) => {
                assert_eq!((n, &*fault.code), (7, "55P03"));
            }
            other => assert!(
                n != 7 && matches!(other, windrow_core::Verdict::Final(Ok(_))),
                "{n} {other:?}"
            ),
        }
    }
    drop(held);
    drop(holder);
    connection.await.unwrap().unwrap();
}
