//! Kinds of tables: with triggers, partitions, views, odd names.

use windrow_core::{FaultClass, Rung, Unit};

use crate::support::*;
use windrow_testkit::row;

#[tokio::test]
async fn triggers_that_drop_change_or_refuse_rows_act_on_their_own_write() {
    let mut bed = Bed::new(
        "create table t (id int primary key, a text not null);
         create function hook() returns trigger language plpgsql as $$ begin
           if new.id % 10 = 1 then return null; end if;
           if new.id % 10 = 2 then raise exception 'refused %', new.id using errcode = 'P0001', constraint = 'rule'; end if;
           if new.id % 10 = 3 then new.id := new.id + 1000; end if;
           new.a := coalesce(new.a, 'filled'); return new; end $$;
         create trigger hook before insert on t for each row execute function hook()",
    )
    .await;
    let shape = insert("t", &["id", "a"]).shape();
    let returning = insert("t", &["id", "a"]).returning(&["id", "a"]).shape();
    let units: Vec<Unit> = (0..40)
        .map(|n| unit(&shape, row![n, None::<&str>]))
        .collect();
    let outcomes = bed.outcomes(&units).await;
    for (n, outcome) in outcomes.iter().enumerate() {
        match n % 10 {
            1 => assert_eq!(outcome.as_ref().unwrap()[0].rows, 0),
            2 => {
                let fault = fault(outcome);
                assert_eq!(
                    (fault.class, fault.constraint()),
                    (FaultClass::Check, Some("rule"))
                );
                assert_eq!(&*fault.message, format!("refused {n}"));
            }
            _ => assert_eq!(outcome.as_ref().unwrap()[0].rows, 1),
        }
    }
    let units: Vec<Unit> = (43..44)
        .chain(53..54)
        .map(|n| unit(&returning, row![n, "x"]))
        .collect();
    let dones = bed.succeed(&units).await;
    assert_eq!(
        *dones[1].returned.as_ref().unwrap().rows[0],
        *row![1053, "x"]
    );
    assert_eq!(bed.sql("select count(*) from t where a = 'filled'"), "32");
}

#[tokio::test]
async fn a_trigger_that_appears_later_never_makes_a_lie() {
    let mut bed = Bed::new("create table t (id int primary key)").await;
    let shape = insert("t", &["id"]).shape();
    let returning = insert("t", &["id"]).returning(&["id"]).shape();
    let batch = |shape, from: i32| -> Vec<Unit> {
        (from..from + 20).map(|n| unit(shape, row![n])).collect()
    };
    bed.succeed(&batch(&shape, 0)).await;
    bed.succeed(&batch(&returning, 20)).await;
    bed.sql(
        "create function hook() returns trigger language plpgsql as $$ begin
           if new.id % 2 = 1 then return null; end if; return new; end $$;
         create trigger hook before insert on t for each row execute function hook()",
    );
    for (shape, from) in [(&shape, 100), (&returning, 200)] {
        let dones = bed.succeed(&batch(shape, from)).await;
        let counts: Vec<u64> = dones.iter().map(|d| d.rows).collect();
        assert_eq!(counts, [1, 0].repeat(10));
    }
}

#[tokio::test]
async fn partitioned_tables_views_and_self_references() {
    let mut bed = Bed::new(
        "create table p (id int, at date, primary key (id, at)) partition by range (at);
         create table p1 partition of p for values from ('2020-01-01') to ('2021-01-01');
         create table p2 partition of p for values from ('2021-01-01') to ('2022-01-01');
         create table base (id int primary key, a int);
         create view v as select * from base where a < 10 with check option;
         create table tree (id int primary key, up int references tree)",
    )
    .await;
    let parted = insert("p", &["id", "at"]).shape();
    let year = |n: i32| {
        if n == 5 {
            "2030-01-01"
        } else {
            if n % 2 == 0 {
                "2020-05-05"
            } else {
                "2021-05-05"
            }
        }
    };
    let units: Vec<Unit> = (0..20).map(|n| unit(&parted, row![n, year(n)])).collect();
    let outcomes = bed.outcomes(&units).await;
    assert_eq!(outcomes.iter().filter(|o| o.is_ok()).count(), 19);
    assert_eq!(fault(&outcomes[5]).code, "23514");
    let more: Vec<Unit> = (20..40).map(|n| unit(&parted, row![n, year(n)])).collect();
    let report = bed.run(&more).await;
    assert_eq!(rung(&report, Rung::Fused), 20);

    let view = insert("v", &["id", "a"]).shape();
    let units: Vec<Unit> = (0..12).map(|n| unit(&view, row![n, n])).collect();
    let outcomes = bed.outcomes(&units).await;
    assert_eq!(outcomes.iter().filter(|o| o.is_ok()).count(), 10);
    assert_eq!(fault(&outcomes[11]).code, "44000");

    let tree = insert("tree", &["id", "up"]).shape();
    let units: Vec<Unit> = (0..10)
        .map(|n| unit(&tree, row![n, if n == 0 { None } else { Some(n - 1) }]))
        .chain([unit(&tree, row![50, 51]), unit(&tree, row![51, 0])])
        .collect();
    let outcomes = bed.outcomes(&units).await;
    assert_eq!(fault(&outcomes[10]).class, FaultClass::ForeignKey);
    assert_eq!(outcomes.iter().filter(|o| o.is_ok()).count(), 11);
}

#[tokio::test]
async fn names_with_quotes_cases_and_semicolons() {
    let mut bed = Bed::new(
        r#"create schema "S;x"; create table "S;x"."Ta""b; drop table x; --" ("I d" int primary key, "sel""ect" text, "windrow" int, "ord" int, "w" int, "p1" int, "g0" int)"#,
    )
    .await;
    let table = r#""S;x"."Ta""b; drop table x; --""#;
    let columns = ["I d", "sel\"ect", "windrow", "ord", "w", "p1", "g0"];
    for (from, shape) in [
        (0, insert(table, &columns).shape()),
        (100, insert(table, &columns).upsert().all().shape()),
        (200, insert(table, &columns).ignore().all().shape()),
    ] {
        for count in [1, 2, 10] {
            let units: Vec<Unit> = (0..count)
                .map(|n| unit(&shape, row![from + n, "'; --", 1, 2, 3, 4, 5]))
                .collect();
            bed.outcomes(&units).await;
        }
    }
    let set = update(table, &["ord"]).all().shape();
    let units: Vec<Unit> = (0..10).map(|n| unit(&set, row![n, n])).collect();
    let dones = bed.succeed(&units).await;
    assert_eq!(
        *dones[3].returned.as_ref().unwrap().rows[0],
        *row![3, "'; --", 1, 3, 3, 4, 5]
    );
    let lower = insert("\"S;x\".\"ta\"", &["x"]).shape();
    let outcomes = bed.outcomes(&[unit(&lower, row![1])]).await;
    assert_eq!(fault(&outcomes[0]).class, FaultClass::NoTable);
}

#[tokio::test]
async fn rows_of_nothing_but_defaults() {
    let mut bed = Bed::new("create table t (id serial primary key, a text default 'x')").await;
    let shape = insert("t", &[]).returning(&["id", "a"]).shape();
    let units: Vec<Unit> = (0..6).map(|_| unit(&shape, vec![])).collect();
    let dones = bed.succeed(&units).await;
    assert_eq!(*dones[5].returned.as_ref().unwrap().rows[0], *row![6, "x"]);
}
