//! What is changed about a table by others is noticed by the next write, also by one that is alone
//! in its batch; and as long as nothing is changed, nothing is looked at.

use std::sync::Arc;

use windrow_core::Statement;

use crate::parsed::{insert, update};
use crate::support::{Bed, unit};

/// Writes a row by itself; says in how many round trips.
async fn write(bed: &mut Bed, statement: &mut Arc<Statement>, n: i32) -> u32 {
    if statement.is_retired() {
        *statement = bed.describe(insert("t", "id", "$1").parsed()).await;
    }
    let (_, report) = bed.succeed(&[unit(statement, &[&n.to_string()])]).await;
    report.tally.round_trips
}

/// A bed that has written rows until one takes a single round trip.
async fn settled(sql: &str) -> (Bed, Arc<Statement>, i32) {
    settle(Bed::new(sql).await).await
}

async fn settle(mut bed: Bed) -> (Bed, Arc<Statement>, i32) {
    let mut statement = bed.describe(insert("t", "id", "$1").parsed()).await;
    for n in 0..5 {
        if write(&mut bed, &mut statement, n).await == 1 {
            return (bed, statement, n);
        }
    }
    panic!("it is never settled");
}

const TABLES: &str = "create domain word as text;
    create table t (id int primary key, a text default 'a', n int default 0, w word);
    create table other (id int primary key);
    create function harmless() returns trigger language plpgsql as $$ begin return new; end $$";

#[tokio::test]
async fn whatever_is_changed_is_noticed_by_a_write_alone() {
    let (mut bed, mut statement, mut n) = settled(TABLES).await;
    for change in [
        "create trigger seen before insert on t for each row execute function harmless()",
        "create or replace function harmless() returns trigger language plpgsql as $$ begin new.a := 'b'; return new; end $$",
        "alter table t disable trigger seen",
        "alter table t enable always trigger seen",
        "alter trigger seen on t rename to found",
        "drop trigger found on t",
        "alter table t alter a set default 'b'",
        "alter table t alter a drop default",
        "alter table t alter id set default 7",
        "alter table t alter id drop default",
        "update t set a = ''; alter table t alter a set not null, alter a set default ''",
        "alter table t add check (n < 100)",
        "alter table t rename n to number",
        "alter table t alter number type bigint",
        "alter table t add further int",
        "alter table t drop further",
        "create unique index on t (id, a)",
        "drop index t_id_a_idx",
        "create index concurrently by_number on t (number)",
        "alter table other add t int references t",
        "alter table other drop t",
        "alter domain word add check (value <> '')",
        "alter domain word set default 'w'",
        "create table heir () inherits (t)",
        "drop table heir",
        "create table heir () inherits (t)",
        "create table heir2 () inherits (t)",
        "drop table heir, heir2",
        "alter table t add g int generated always as identity",
        "alter table t enable row level security",
        "alter table t disable row level security",
    ] {
        bed.sql(change);
        n += 1;
        // A child that is gone is none that a write could have reached.
        let matters = !change.starts_with("drop table heir");
        let took = write(&mut bed, &mut statement, n).await;
        assert_eq!(took > 1, matters, "{took} round trips: {change}");
        for _ in 0..3 {
            n += 1;
            write(&mut bed, &mut statement, n).await;
        }
        n += 1;
        assert_eq!(
            write(&mut bed, &mut statement, n).await,
            1,
            "unsettled: {change}"
        );
    }
}

/// The question for what a write took from a sequence is one with the check.
#[tokio::test]
async fn whatever_is_changed_is_noticed_by_a_write_that_takes_from_a_sequence() {
    let (mut bed, mut statement, mut n) =
        settled("create table t (id int primary key, s serial, a text)").await;
    for (change, first) in [
        ("alter table t alter a set default 'x'", false),
        ("truncate t", true),
        (
            "alter table t alter s drop default, alter s drop not null",
            false,
        ),
        (
            "alter table t alter s set default nextval('t_s_seq') + 1000",
            false,
        ),
    ] {
        bed.sql(change);
        n += 1;
        let took = write(&mut bed, &mut statement, n).await;
        assert_eq!(took == 1, first, "{took} round trips: {change}");
        for _ in 0..4 {
            n += 1;
            write(&mut bed, &mut statement, n).await;
        }
    }
    let (done, _) = bed.succeed(&[unit(&statement, &["5000"])]).await;
    let last = bed.sql("select s from t where id = 5000");
    let told = done[0].extra.as_ref().unwrap().generated.as_ref();
    assert_eq!(
        told.map(|taken| (taken.value + 1000).to_string()),
        Some(last)
    );
}

#[tokio::test]
async fn a_sequence_that_gets_the_name_of_another_is_not_taken_for_it() {
    for of in [
        "bigserial",
        "bigint generated by default as identity",
        "bigint default nextval('\"it''s\"')",
    ] {
        let mut bed = Bed::new(&format!(
            "create sequence \"it's\"; create table t (n {of} primary key, id int)"
        ))
        .await;
        let statement = bed.describe(insert("t", "id", "$1").parsed()).await;
        for (place, name) in ["t_n_seq", "\"it's\""].into_iter().enumerate() {
            bed.sql(&format!(
                "alter sequence if exists {name} rename to before{place}"
            ));
            bed.sql(&format!("create sequence {name} start 1000"));
        }
        let units: Vec<_> = (0..20)
            .map(|n| unit(&statement, &[&n.to_string()]))
            .collect();
        bed.succeed(&units).await;
        assert_eq!(bed.sql("select min(n), max(n) from t"), "1|20", "{of}");
    }
}

#[tokio::test]
async fn another_table_of_the_name_is_noticed() {
    let path = ["SET search_path = first, public"];
    let sql = "create schema first; create table t (id int primary key)";
    let (mut bed, mut statement, n) = settle(Bed::with(sql, &[], &path).await).await;
    bed.sql("create table first.t (id int primary key, a text default 'new')");
    assert!(write(&mut bed, &mut statement, n + 1).await > 1);
    assert_eq!(
        bed.sql(&format!("select a from first.t where id = {}", n + 1)),
        "new"
    );
}

#[tokio::test]
async fn changes_of_partitions_are_noticed() {
    let (mut bed, mut statement, n) = settled(
        "create table t (id int primary key, a text) partition by range (id);
         create table low partition of t for values from (0) to (1000);
         create table high partition of t for values from (1000) to (2000);
         create function harmless() returns trigger language plpgsql as $$ begin new.a := 'seen'; return new; end $$",
    )
    .await;
    bed.sql("create trigger seen before insert on low for each row execute function harmless()");
    assert!(write(&mut bed, &mut statement, n + 1).await > 1);
    for more in 2..5 {
        write(&mut bed, &mut statement, n + more).await;
    }
    bed.sql("alter table low alter a set default 'x'");
    assert!(write(&mut bed, &mut statement, n + 6).await > 1);
}

#[tokio::test]
async fn an_heir_of_an_heir_is_noticed_by_an_update() {
    let mut bed = Bed::new(&format!("{TABLES}; create table heir () inherits (t)")).await;
    let by_key = || update("t", "a = $2", "id = $1").parsed();
    let mut statement = bed.describe(by_key()).await;
    let mut took = Vec::new();
    for change in [
        "insert into t values (1)",
        "",
        "",
        "create table grandchild () inherits (heir)",
    ] {
        bed.sql(change);
        if statement.is_retired() {
            statement = bed.describe(by_key()).await;
        }
        let (_, report) = bed.succeed(&[unit(&statement, &["1", "x"])]).await;
        took.push(report.tally.round_trips);
    }
    assert_eq!(took[2], 1);
    assert!(took[3] > 1, "{took:?}");
}

/// The server tells of more changes than matter: everything is looked at once, within the write's
/// own round trip, and the check is prepared anew before the next.
#[tokio::test]
async fn what_does_not_matter_costs_one_look() {
    let (mut bed, mut statement, mut n) = settled(TABLES).await;
    for change in ["analyze t", "vacuum t"] {
        bed.sql(change);
        for (place, expected) in [1, 2, 1].into_iter().enumerate() {
            n += 1;
            let took = write(&mut bed, &mut statement, n).await;
            assert_eq!(took, expected, "{change}, write {place} behind it");
        }
    }
    // A statement is not retired by the way: what it was described as is still true.
    assert!(!statement.is_retired());
}

#[tokio::test]
async fn a_session_in_the_zone_of_checks_looks_at_everything() {
    for zone in [
        "<windrow>-15:59",
        "XXX-15:059",
        "XXX-15:58:60",
        "15.98333333333",
    ] {
        let set = format!("SET TimeZone = '{zone}'");
        let sql = "create table t (id int primary key, a text)";
        let mut bed = Bed::with(sql, &[], &[set.as_str()]).await;
        let mut statement = bed.describe(insert("t", "id", "$1").parsed()).await;
        for n in 0..4 {
            write(&mut bed, &mut statement, n).await;
        }
        bed.sql("alter table t alter a set default 'x'");
        assert!(write(&mut bed, &mut statement, 10).await > 1, "{zone}");
    }
}
