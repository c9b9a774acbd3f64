//! What may be asked for, and what makes no sense.

use crate::support::{move_rows, postgres, sql};

#[test]
fn only_what_is_asked_for_is_moved() {
    let db = postgres();
    sql(&db, "create table pending (id int primary key, tenant text, ready bool);
        create table final (like pending); insert into pending select i, 't', i % 2 = 0 from generate_series(1, 100) i");
    move_rows(
        db.url(),
        "pending",
        "final",
        &["--where", "ready -- only those"],
    )
    .ends(0);
    assert_eq!(
        sql(&db, "select count(*), bool_and(ready) from final"),
        "50|t"
    );
    let few = ["--limit", "7", "--batch", "3", "--jobs", "2"];
    move_rows(db.url(), "pending", "final", &few).ends(0);
    assert_eq!(sql(&db, "select count(*) from final"), "57");
    // The first in the key's order.
    move_rows(db.url(), "pending", "final", &["--limit", "1"]).ends(0);
    assert_eq!(sql(&db, "select count(*) from pending where id < 15"), "0");
}

#[test]
fn a_dry_run_tells_and_changes_nothing() {
    let db = postgres();
    sql(&db, "create table pending (id int primary key, tenant text); create table final_a (like pending); create table final_c (id int);
        insert into pending values (1, 'a'), (2, 'a'), (3, 'b'), (4, null), (5, 'c')");
    let told = move_rows(db.url(), "pending", "final_{tenant}", &["--dry-run"]).ends(3);
    let lines: Vec<&str> = told.out.lines().map(str::trim).collect();
    assert_eq!(lines[0], "2  final_a");
    assert!(
        lines[1].starts_with("1  final_b  (to the dead letters"),
        "{}",
        lines[1]
    );
    assert!(
        lines[2].starts_with("1  final_c")
            && lines[2].contains("lacks columns of the source: tenant"),
        "{}",
        lines[2]
    );
    assert!(
        lines[3].starts_with("1  -  (to the dead letters"),
        "{}",
        lines[3]
    );
    assert_eq!(lines[4], "5  rows in all; nothing was changed");
    let told = move_rows(
        db.url(),
        "pending",
        "final_{tenant}",
        &["--dry-run", "--create"],
    )
    .ends(3);
    assert!(
        told.out.contains("final_b  (would be made)"),
        "{}",
        told.out
    );
    assert_eq!(
        sql(
            &db,
            "select (select count(*) from pending), to_regclass('final_b'), to_regclass('windrow_rejected')"
        ),
        "5||"
    );
}

#[test]
fn what_makes_no_sense_is_said_in_one_line() {
    let db = postgres();
    sql(&db, "create table pending (id int primary key, tenant text, more text, code int not null unique, maybe int unique);
        create table bare (id int); create view seen as select * from pending; create table narrow (id int, more text);
        create table other (id int, tenant text, more text, code text[], maybe int);
        insert into pending values (1, 'a', 'b', 1, 1)");
    let url = db.url();
    let fails = |source: &str, destination: &str, more: &[&str], text: &str| {
        move_rows(url, source, destination, more).fails_with(text);
    };
    fails("nothing", "final", &[], "there is no table nothing");
    fails("pending", "final", &[], "there is no table final");
    fails("bare", "pending", &[], "the table bare has no primary key");
    fails("seen", "pending", &[], "is no table");
    fails("pending", "pending", &[], "is the source itself");
    fails("pending", "public.pending", &[], "is the source itself");
    fails(
        "pending",
        "narrow",
        &[],
        "lacks columns of the source: tenant, code, maybe",
    );
    fails("pending", "other", &[], "column \"code\" is of type text[]");
    fails(
        "pending",
        "narrow",
        &["--key", "more"],
        "does not tell the rows of pending apart",
    );
    fails(
        "pending",
        "narrow",
        &["--key", "maybe"],
        "does not tell the rows of pending apart",
    );
    fails(
        "pending",
        "narrow",
        &["--key", "nope"],
        "has no column nope",
    );
    fails("pending", "f_{nope}", &[], "has no column nope");
    fails("pending", "f_{", &[], "a brace that stands alone");
    fails(
        "pending",
        "final",
        &["--route-by", "tenant"],
        "does not say where its value goes",
    );
    fails(
        "pending",
        "narrow",
        &["--where", "no_such_column = 1", "--dry-run"],
        "no_such_column",
    );
    assert_eq!(sql(&db, "select count(*) from pending"), "1");
    move_rows("cratedb://127.0.0.1:1/x", "a", "b", &[]).fails_with("it can only be a destination");
    move_rows(
        url,
        "pending",
        "f_{}",
        &["--route-by", "tenant", "--create", "--key", "code,tenant"],
    )
    .ends(0);
    assert_eq!(sql(&db, "select count(*) from f_a"), "1");
}

#[tokio::test]
async fn rows_that_others_hold_are_passed_over() {
    let db = tokio::task::spawn_blocking(postgres).await.unwrap();
    sql(
        &db,
        "create table pending (id int primary key); create table final (id int); insert into pending select generate_series(1, 10)",
    );
    let (client, connection) = tokio_postgres::connect(db.url(), tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    let hold = "begin; select from pending where id <= 6 for update";
    client.batch_execute(hold).await.unwrap();
    let url = db.url().to_owned();
    let told = tokio::task::spawn_blocking(move || {
        move_rows(&url, "pending", "final", &["--limit", "4", "--batch", "3"])
    });
    told.await.unwrap().ends(0);
    let moved = sql(&db, "select min(id), count(*) from final");
    assert_eq!(moved, "7|4");
    client.batch_execute("rollback").await.unwrap();
    let url = db.url().to_owned();
    let told = tokio::task::spawn_blocking(move || move_rows(&url, "pending", "final", &[]));
    told.await.unwrap().ends(0);
    assert_eq!(sql(&db, "select count(*) from final"), "10");
}
