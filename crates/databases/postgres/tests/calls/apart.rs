//! What is not joined, and why.

use windrow_core::{Described, Describer as _, Sink as _};
use windrow_postgres::StatementSink;

use crate::parsed::{delete, insert, update};
use crate::support::Bed;

#[tokio::test]
async fn what_cannot_be_joined_truly_is_told_apart() {
    let bed = Bed::new(
        "create table t (id int primary key, a text, n int, unique (a, n));
         create unique index on t (n) where n > 5;
         create table loose (a int unique deferrable);
         create view v as select * from t;
         create materialized view mv as select * from t;
         create table ruled (a int); create rule r as on insert to ruled do also notify x;
         create sequence s;
         create table odd (a text default 'A' || currval('s'), b int);
         create table many (a serial, b serial, c int);
         create function bump() returns int language plpgsql as $$ begin return nextval('s'); end $$;
         create table foul (a int default bump(), b int);
         create function mine(int) returns int immutable language sql as 'select $1';
         create function round(float8, int) returns float8 immutable language sql as 'select $1';
         create function audit() returns trigger language plpgsql as $$ begin insert into many (c) values (1); return new; end $$;
         create table audited (id int primary key); create trigger audit after insert on audited for each row execute function audit();
         create function tells() returns trigger language plpgsql as $$ begin notify x; return new; end $$;
         create table telling (id int primary key); create trigger t after insert on telling for each row execute function tells();
         create table heir () inherits (t);",
    )
    .await;
    let one = |made: crate::parsed::Make| bed.apart(made.parsed());
    assert_eq!(
        one(insert("nowhere", "", "$1")).await,
        "the server refuses it"
    );
    assert_eq!(
        one(insert("t", "id, id", "$1, $2")).await,
        "the server refuses it"
    );
    assert_eq!(one(insert("v", "id", "$1")).await, "a view");
    assert_eq!(one(insert("ruled", "", "$1")).await, "a table with rules");
    assert_eq!(
        one(insert("t", "id", "nextval('s')").calls(&["nextval"])).await,
        "a function of sequences"
    );
    assert_eq!(
        one(insert("t", "id", "mine($1)").calls(&["mine"])).await,
        "a function that is not proven"
    );
    assert_eq!(
        one(insert("t", "id", "public.mine($1)").calls(&["public.mine"])).await,
        "a function that is not proven"
    );
    assert_eq!(
        one(insert("t", "id", "round($1::float8, 2)").calls(&["round"])).await,
        "a function that is not proven"
    );
    assert_eq!(
        one(insert("t", "id", "pg_backend_pid()").calls(&["pg_backend_pid"])).await,
        "a function of the session or transaction"
    );
    assert_eq!(
        one(insert("t", "id", "lastval()").calls(&["lastval"])).await,
        "a function of sequences"
    );
    assert_eq!(
        one(update("t", "a = $1", "n = $2")).await,
        "not a unique key"
    );
    assert_eq!(
        one(update("t", "a = $1", "a = $2")).await,
        "not a unique key"
    );
    assert_eq!(one(delete("loose", "a = $1")).await, "not a unique key");
    assert_eq!(
        one(update("t", "id = lower($1)::int", "id = $2").calls(&["lower", "nowhere"])).await,
        "a function that is not known"
    );
    assert_eq!(
        one(insert("odd", "b", "$1")).await,
        "a function of sequences"
    );
    assert_eq!(
        one(insert("many", "c", "$1")).await,
        "several generated columns"
    );
    assert_eq!(
        one(insert("foul", "b", "$1")).await,
        "a function that is not proven"
    );
    assert_eq!(
        one(insert("audited", "", "$1")).await,
        "a trigger that is not proven harmless"
    );
    assert_eq!(
        one(insert("telling", "", "$1")).await,
        "a trigger that is not proven harmless"
    );
    let several = insert("many", "a, b, c", "")
        .whole("insert into many (a, b, c) values (default, 1, 1), (2, 2, 2)");
    assert_eq!(one(several).await, "several rows with generated values");
    for made in [
        insert("t", "id", "gen_random_uuid()::text::int").calls(&["gen_random_uuid"]),
        insert("t", "id, a", "coalesce($1, 5), lower($2)").calls(&["coalesce", "lower"]),
        insert("many", "a, c", "$1, $2"),
        // Of a table that others inherit from.
        delete("t", "id = $1"),
        insert("odd", "a, b", "$1, $2"),
        insert("foul", "a, b", "1, $1"),
    ] {
        bed.describe(made.parsed()).await;
    }
}

#[tokio::test]
async fn the_tables_and_settings_are_those_of_the_lane() {
    let sql = "create schema one; create table one.t (id int primary key, at timestamptz); create table t (id text primary key)";
    let mut bed = Bed::with(
        sql,
        &[("search_path", "one, public")],
        &["set timezone = 'Asia/Tokyo'"],
    )
    .await;
    let statement = bed
        .describe(insert("t", "", "$1, $2").returning("at").parsed())
        .await;
    assert_eq!(statement.parameters(), [23, 1184]);
    let units: Vec<_> = (0..8)
        .map(|n| crate::support::unit(&statement, &[&n.to_string(), "2020-01-01 00:00"]))
        .collect();
    let (done, _) = bed.succeed(&units).await;
    for done in &done {
        assert_eq!(crate::support::said(done), "1, D 2020-01-01 00:00:00+09");
    }
    let bed = Bed::with(
        "create table t (id int)",
        &[],
        &["set search_path = public, pg_catalog"],
    )
    .await;
    assert_eq!(
        bed.apart(insert("t", "", "$1").parsed()).await,
        "pg_catalog is not searched first"
    );
    let bed = Bed::with(
        "create table t (id int)",
        &[],
        &["set default_transaction_read_only = on"],
    )
    .await;
    assert_eq!(
        bed.apart(insert("t", "", "$1").parsed()).await,
        "a read-only session"
    );
}

#[tokio::test]
async fn a_setting_that_the_server_refuses_is_told() {
    let database = windrow_testkit::postgres::shared().unwrap();
    let sink = StatementSink::new(
        windrow_pgwire::Target::parse(database.url()).unwrap(),
        Vec::new(),
        vec!["set work_mem = 'nonsense'".to_owned()],
        &windrow_database::Options::default(),
    );
    let refused = windrow_core::Describer::describe(&*sink, &insert("t", "", "$1").parsed()).await;
    let fault = refused.unwrap_err();
    assert_eq!(&*fault.code, "22023");
    assert!(fault.verbatim().is_some());
}

#[tokio::test]
async fn statements_for_cockroachdb_go_by_themselves() {
    let behind = windrow_testkit::cockroachdb::StandIn::builder()
        .start()
        .await
        .unwrap();
    behind.exec("create table t (id int primary key)").unwrap();
    let target = windrow_pgwire::Target::parse(behind.url()).unwrap();
    let options = windrow_database::Options::default();
    let sink = StatementSink::new(target, Vec::new(), Vec::new(), &options);
    for _ in 0..2 {
        let described = sink.describe(&insert("t", "", "$1").parsed()).await;
        let Described::Apart(apart) = described.unwrap() else {
            panic!("joined")
        };
        assert!(apart.phrase.contains("CockroachDB"), "{apart}");
    }
    assert_eq!(sink.profile().name, "CockroachDB");
    assert_eq!(behind.refused(), []);
}
