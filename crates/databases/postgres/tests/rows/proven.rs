//! Only what is proven is joined; what is not is a statement and a transaction of its own, and
//! leaves nothing behind.

use windrow_core::{Rung, Unit};

use crate::support::{Bed, delete, fault, insert, rung, told, unit, update};
use windrow_testkit::row;

const MANY: i64 = 24;

/// One insert of each number.
fn inserts(table: &str, column: &str) -> Vec<Unit> {
    let shape = insert(table, &[column]).shape();
    (0..MANY).map(|n| unit(&shape, row![n])).collect()
}

/// Runs a batch on a connection that may be used up by it, and gives how many succeeded.
async fn successes(bed: &mut Bed, units: &[Unit]) -> usize {
    let report = bed.run(units).await;
    if !report.usable {
        bed.executor = bed.connect().await;
    }
    let outcomes = report.verdicts.into_iter().map(told);
    outcomes.filter(Result::is_ok).count()
}

#[tokio::test]
async fn deferred_constraints_are_checked_for_each_write_by_itself() {
    let mut bed = Bed::new(
        "create table ring (id int primary key, next int references ring deferrable initially deferred);
         create table uniq (id int primary key, a int unique deferrable initially deferred);
         insert into uniq select n, n from generate_series(0, 23) n;
         create table a (id int primary key); create table b (id int primary key references a deferrable initially deferred);
         alter table a add foreign key (id) references b deferrable initially deferred",
    )
    .await;
    let ring = insert("ring", &["id", "next"]).shape();
    let units: Vec<_> = (0..MANY)
        .map(|n| unit(&ring, row![n, (n + 1) % MANY]))
        .collect();
    assert_eq!(successes(&mut bed, &units).await, 0);
    assert_eq!(bed.sql("select count(*) from ring").trim(), "0");
    // Values change places: alone, none of them may.
    let swap = update("uniq", &["a"]).shape();
    let units: Vec<_> = (0..MANY)
        .map(|n| unit(&swap, row![(n + 1) % MANY, n]))
        .collect();
    assert_eq!(successes(&mut bed, &units).await, 0);
    let (a, b) = (insert("a", &["id"]).shape(), insert("b", &["id"]).shape());
    let both = [unit(&a, row![1]), unit(&b, row![1])];
    assert_eq!(successes(&mut bed, &both).await, 0);
}

#[tokio::test]
async fn what_a_trigger_leaves_behind_is_met_by_nobody() {
    let mut bed = Bed::new(
        "create table t (id int primary key, seen text, who text default current_user, depth text);
         create function f() returns trigger language plpgsql as $$ begin
             new.seen := current_setting('app.last', true);
             new.depth := current_setting('lock_timeout');
             perform set_config('app.last', new.id::text, false); set lock_timeout = '7s';
             perform pg_advisory_lock(4711); create temp table left_behind ();
             return new; end $$;
         create trigger f before insert on t for each row execute function f()",
    )
    .await;
    for _ in 0..2 {
        let report = bed.run(&inserts("t", "id")).await;
        assert!(!report.usable, "the connection is not as new");
        assert_eq!(u32::try_from(MANY).unwrap(), report.tally.commits);
        let all = report.verdicts.into_iter().map(told);
        assert!(all.collect::<Vec<_>>().iter().all(Result::is_ok));
        bed.batches.executor.close().await;
        let sink = &bed.batches.sink;
        bed.batches.executor = sink.connect(windrow_core::Purpose::Batches).await.unwrap();
        let said = "select count(seen), count(distinct depth) from t where depth <> '7s'";
        assert_eq!(bed.sql(said).trim(), "0|1");
        bed.sql("truncate t");
    }
}

/// An error that looks like one of ours is the statement's own, wherever it comes from: a trigger,
/// a policy, a function that the server runs while it plans.
#[tokio::test]
async fn errors_that_code_raises_are_told_as_they_are() {
    let mut bed = Bed::new(
        "create function gone(int) returns int language plpgsql immutable as
             $$ begin raise exception 'gone' using errcode = '26000'; end $$;
         create table planned (id int primary key, v int default gone(1));
         create table run (id int primary key);
         create function missing() returns trigger language plpgsql as $$ begin execute 'execute nothing'; end $$;
         create trigger missing before insert on run for each row execute function missing();
         create table unset (id int primary key, v text default current_setting('app.unset'));
         create table checked (id int primary key, check (id > current_setting('app.unset')::int));
         create table plain (id int primary key)",
    )
    .await;
    let plain = insert("plain", &["id"]).shape();
    for (table, code) in [
        ("planned", "26000"),
        ("run", "26000"),
        ("unset", "42704"),
        ("checked", "42704"),
    ] {
        let mut units = inserts(table, "id");
        assert_eq!(fault(&bed.outcomes(&units[..1]).await[0]).code, code);
        bed.executor = bed.connect().await;
        units.push(unit(&plain, row![1]));
        let report = bed.run(&units).await;
        let mut outcomes: Vec<_> = report.verdicts.into_iter().map(told).collect();
        assert!(outcomes.pop().is_some_and(|o| o.is_ok()), "{table}");
        assert!(outcomes.iter().all(|o| fault(o).code == code), "{table}");
        bed.executor = bed.connect().await;
        bed.sql("truncate plain");
    }
}

/// What a stranger's row took from a sequence is none of a trigger's.
#[tokio::test]
async fn numbers_that_others_were_given_are_not_seen_by_triggers() {
    let mut bed = Bed::new(
        "create table numbered (id serial primary key, v int);
         create table t (id int primary key, latest bigint);
         create function f() returns trigger language plpgsql as $$ begin
             new.latest := lastval(); return new; exception when object_not_in_prerequisite_state then return new; end $$;
         create trigger f before insert on t for each row execute function f()",
    )
    .await;
    let (number, put) = (
        insert("numbered", &["v"]).shape(),
        insert("t", &["id"]).shape(),
    );
    let mut units: Vec<Unit> = (0..MANY).map(|n| unit(&number, row![n])).collect();
    assert_eq!(successes(&mut bed, &units).await, 24);
    for id in 0..MANY {
        units.push(unit(&put, row![id]));
        units.push(unit(&number, row![id]));
    }
    assert_eq!(successes(&mut bed, &units).await, 72);
    let seen = bed.sql("select count(*), count(latest) from t");
    assert_eq!(seen.trim(), "24|0");
}

#[tokio::test]
async fn each_write_is_told_its_own_transaction() {
    let mut bed = Bed::new(
        "create table t (id int primary key, x bigint default txid_current());
         create function few() returns bool language plpgsql stable as $$ begin return (select count(*) < 10 from s); end $$;
         create table s (id int primary key, check (few()))",
    )
    .await;
    assert_eq!(successes(&mut bed, &inserts("t", "id")).await, 24);
    assert_eq!(bed.sql("select count(distinct x) from t").trim(), "24");
    assert_eq!(successes(&mut bed, &inserts("s", "id")).await, 10);
}

#[tokio::test]
async fn notifications_are_as_many_as_writes() {
    let mut bed = Bed::new(
        "create table t (id int primary key); create table heard (n int);
         create function f() returns trigger language plpgsql as $$ begin -- it's told
             perform \"pg_notify\"('x', txid_current()::text); insert into heard values (txid_current() % 1000000); return new; end $$;
         create trigger f after insert on t for each row execute function f()",
    )
    .await;
    assert_eq!(successes(&mut bed, &inserts("t", "id")).await, 24);
    assert_eq!(bed.sql("select count(distinct n) from heard").trim(), "24");
}

#[tokio::test]
async fn a_harmless_trigger_is_joined_and_one_that_turns_bad_is_not() {
    let mut bed = Bed::new(
        "create table t (id int primary key, n int not null, at timestamptz, x bigint);
         create function f() returns trigger language plpgsql as $$ begin new.at := now(); new.n = coalesce(new.n, 5); return new; end $$;
         create trigger f before insert or update on t for each row execute function f()",
    )
    .await;
    let report = bed.run(&inserts("t", "id")).await;
    assert_eq!((rung(&report, Rung::Fused), report.usable), (24, true));
    assert_eq!(
        bed.sql("select count(*) from t where n = 5 and at is not null")
            .trim(),
        "24"
    );
    // A body that is replaced is noticed by the next batch.
    bed.sql(
        "create or replace function f() returns trigger language plpgsql as $$ begin new.x := txid_current(); new.n := 1; return new; end $$",
    );
    let again = update("t", &["n"]).shape();
    let units: Vec<_> = (0..MANY).map(|n| unit(&again, row![1, n])).collect();
    assert_eq!(successes(&mut bed, &units).await, 24);
    assert_eq!(bed.sql("select count(distinct x) from t").trim(), "24");
}

#[tokio::test]
async fn what_is_proven_no_longer_is_noticed_by_the_next_batch() {
    let mut bed = Bed::new(
        "create table ring (id int primary key, next int references ring deferrable); create table t (id int primary key, v text default lower('A'));
         create function odd(text) returns text immutable language sql as 'select txid_current()::text';
         create function bad() returns trigger language plpgsql as $$ begin new.v := txid_current(); return new; end $$;
         create domain d as int; create table dom (id int primary key, d d default 1)",
    )
    .await;
    let mut next = 0_i64;
    for (change, check) in [
        (
            "alter table t alter v set default odd('x')",
            "select count(distinct v) from t",
        ),
        (
            "alter table t alter v drop default; create trigger bad before insert on t for each row execute function bad()",
            "select count(distinct v) from t",
        ),
    ] {
        bed.sql("truncate t");
        let shape = insert("t", &["id"]).shape();
        let mut batch = || -> Vec<_> {
            next += MANY;
            (next - MANY..next).map(|n| unit(&shape, row![n])).collect()
        };
        let (before, after) = (batch(), batch());
        assert_eq!(successes(&mut bed, &before).await, 24);
        bed.sql("truncate t");
        bed.sql(change);
        assert_eq!(successes(&mut bed, &after).await, 24);
        assert_eq!(bed.sql(check).trim(), "24", "{change}");
    }
    let ring = insert("ring", &["id", "next"]).shape();
    let round: Vec<_> = (0..MANY)
        .map(|n| unit(&ring, row![n, (n + 1) % MANY]))
        .collect();
    let own: Vec<_> = (0..MANY).map(|n| unit(&ring, row![n, n])).collect();
    assert_eq!(successes(&mut bed, &own).await, 24);
    bed.sql("truncate ring; alter table ring alter constraint ring_next_fkey deferrable initially deferred");
    assert_eq!(successes(&mut bed, &round).await, 0);
    let many = inserts("dom", "id");
    assert_eq!(successes(&mut bed, &many).await, 24);
    bed.sql(
        "truncate dom; create function notes(int) returns bool language plpgsql as $$ begin return (select count(*) < 10 from dom); end $$;
         alter domain d add check (notes(value))",
    );
    assert_eq!(successes(&mut bed, &many).await, 10);
}

#[tokio::test]
async fn rows_are_inserted_again_once_a_rule_is_gone() {
    let mut bed = Bed::new(
        "create table t (id int primary key); create rule r as on insert to t do instead nothing",
    )
    .await;
    let shape = insert("t", &["id"]).shape();
    for n in 0..3 {
        let done = bed.succeed(&[unit(&shape, row![n])]).await;
        assert_eq!(done[0].rows, 0);
    }
    bed.sql("drop rule r on t");
    let done = bed.succeed(&[unit(&shape, row![9])]).await;
    assert_eq!(done[0].rows, 1);
    assert_eq!(bed.sql("select count(*) from t").trim(), "1");
}

#[tokio::test]
async fn numbers_start_again_with_the_sequence() {
    let mut bed =
        Bed::new("create table t (id int generated always as identity primary key, n int)").await;
    let shape = insert("t", &["n"]).returning(&["id"]).shape();
    for many in [1, 24] {
        for round in 0..3 {
            let units: Vec<_> = (0..many).map(|n| unit(&shape, row![n])).collect();
            bed.succeed(&units).await;
            let said = bed.sql("select min(id), max(id) from t");
            assert_eq!(said.trim(), format!("1|{many}"), "{round}");
            bed.sql("truncate t restart identity");
        }
    }
    // What changes with the table's row is noticed behind a TRUNCATE too.
    bed.sql("create function one(int) returns bool immutable language plpgsql as $$ begin return (select count(*) < 10 from t); end $$");
    let units: Vec<_> = (0..24).map(|n| unit(&shape, row![n])).collect();
    bed.succeed(&units).await;
    bed.sql("truncate t; alter table t add check (one(n))");
    assert_eq!(successes(&mut bed, &units).await, 10);
}

#[tokio::test]
async fn a_policy_is_asked_for_each_write_by_itself() {
    let mut bed = Bed::new(
        "create table t (id int primary key); alter table t enable row level security; alter table t force row level security;
         create policy p on t using (true) with check ((select count(*) < 10 from t))",
    )
    .await;
    // The owner may be a superuser, whom no policy holds.
    let held = bed.sql("select pg_catalog.row_security_active('t')");
    let expected = if held.trim() == "t" { 10 } else { 24 };
    assert_eq!(successes(&mut bed, &inserts("t", "id")).await, expected);
}

#[tokio::test]
async fn functions_that_the_operator_answers_for_are_joined() {
    let sql = "create table t (id int primary key, n int, check (fine(n)));
         create trigger f before insert on t for each row execute function touches()";
    let functions = "create function fine(int) returns bool language sql as 'select $1 is null or $1 > 0';
         create function touches() returns trigger language plpgsql as $$ begin perform 1; return new; end $$;";
    let options = windrow_database::Options {
        trusted_functions: vec!["public.fine".into(), "public.touches".into()],
        ..windrow_database::Options::default()
    };
    for (options, joined) in [(windrow_database::Options::default(), 0), (options, 24)] {
        let mut bed = Bed::with(&format!("{functions}{sql}"), &options).await;
        let report = bed.run(&inserts("t", "id")).await;
        let grouped = rung(&report, Rung::Fused) + rung(&report, Rung::Grouped);
        assert_eq!(grouped, joined);
        assert_eq!(bed.sql("select count(*) from t").trim(), "24");
    }
}

#[tokio::test]
async fn the_others_of_a_batch_are_not_disturbed() {
    let mut bed = Bed::new(
        "create table plain (id int primary key); create table wild (id int primary key);
         create function f() returns trigger language plpgsql as $$ begin set role none; if new.id = 3 then raise 'no'; end if; return new; end $$;
         create trigger f before insert on wild for each row execute function f()",
    )
    .await;
    let mut units = inserts("plain", "id");
    units.extend(inserts("wild", "id"));
    let gone = delete("plain").shape();
    units.extend((0..MANY).map(|n| unit(&gone, row![n])));
    let report = bed.run(&units).await;
    let outcomes: Vec<_> = report.verdicts.into_iter().map(told).collect();
    let failed: Vec<_> = outcomes.iter().filter(|outcome| outcome.is_err()).collect();
    assert_eq!(failed.len(), 1);
    assert_eq!(&*fault(failed[0]).code, "P0001");
    assert_eq!(bed.sql("select count(*) from plain").trim(), "0");
    assert_eq!(bed.sql("select count(*) from wild").trim(), "23");
}

/// An extension, a type of it, a value, and an index that its tables usually have.
const EXTENSIONS: [[&str; 4]; 11] = [
    ["citext", "citext", "Word", "btree (v)"],
    ["hstore", "hstore", "a=>1", "gin (v)"],
    ["ltree", "ltree", "top.next", "gist (v)"],
    ["cube", "cube", "(1, 2)", "gist (v)"],
    ["pg_trgm", "text", "words", "gin (v gin_trgm_ops)"],
    ["btree_gist", "timestamptz", "2026-01-01", "gist (v)"],
    [
        "postgis",
        "geometry(Point, 4326)",
        "SRID=4326;POINT(1 2)",
        "gist (v)",
    ],
    [
        "postgis",
        "geometry",
        "LINESTRING(1 2, 3 4)",
        "gist (v) where v is not null",
    ],
    ["postgis", "geography(Point)", "POINT(1 2)", "gist (v)"],
    ["vector", "vector(3)", "[1,2,3]", "hnsw (v vector_l2_ops)"],
    [
        "vector",
        "vector(3)",
        "[1,2,3]",
        "btree (id) where v is not null",
    ],
];

/// Such tables are where single rows come from: they are joined as any other. What is not installed
/// here is left out.
#[tokio::test]
async fn columns_of_extensions_are_joined() {
    let mut bed = Bed::new("create schema own").await;
    for (place, [extension, of, value, index]) in EXTENSIONS.into_iter().enumerate() {
        let known =
            format!("select count(*) from pg_available_extensions where name = '{extension}'");
        if bed.sql(&known).trim() == "0" {
            eprintln!("the extension {extension} is not installed: its type {of} is not tried");
            continue;
        }
        let name = format!("t{place}");
        bed.sql(&format!(
            "create extension if not exists {extension};
             create table {name} (id int primary key, v {of} default '{value}', at timestamptz default now());
             create index on {name} using {index}"
        ));
        let put = insert(&name, &["id", "v"]).shape();
        let short = insert(&name, &["id"]).all().shape();
        let set = update(&name, &["v"]).shape();
        let one = |n: i64| unit(&put, row![n, value]);
        let mut units: Vec<Unit> = (0..MANY).map(one).collect();
        units.extend((0..MANY).map(|n| unit(&short, row![100 + n])));
        units.extend((0..MANY).map(|n| unit(&set, row![value, n])));
        units.extend((0..MANY).map(|n| unit(&delete(&name).shape(), row![n])));
        let report = bed.run(&units).await;
        assert_eq!(rung(&report, Rung::Fused), 96, "{of}: {:?}", report.tally);
        assert!(
            report
                .verdicts
                .into_iter()
                .all(|verdict| told(verdict).is_ok())
        );
        let left = format!("select count(*), count(v) from {name}");
        assert_eq!(bed.sql(&left).trim(), "24|24", "{of}");
    }
}

/// A hypertable is the usual table of a time series. Left out if TimescaleDB is not installed.
#[tokio::test]
async fn hypertables_are_joined() {
    let mut bed = Bed::new("create schema own").await;
    let known = "select count(*) from pg_available_extensions where name = 'timescaledb'";
    if bed.sql(known).trim() == "0" {
        eprintln!("the extension timescaledb is not installed: hypertables are not tried");
        return;
    }
    bed.sql(
        "create extension timescaledb;
         create table t (device int, at timestamptz, v float8, primary key (device, at));
         select create_hypertable('t', 'at')",
    );
    let put = insert("t", &["device", "at", "v"]).shape();
    let one = |n: i64, second: &str| {
        let moment = format!("2026-01-{:02} 00:00:{second}+00", n + 1);
        unit(&put, row![n, moment.as_str(), 1.5])
    };
    let batch = |second: &str| (0..MANY).map(|n| one(n, second)).collect::<Vec<_>>();
    // Makes the chunks, which changes the table while it is written to.
    bed.run(&batch("00")).await;
    let report = bed.run(&batch("01")).await;
    assert_eq!(rung(&report, Rung::Fused), 24, "{:?}", report.tally);
    let left = bed.sql("select count(*), count(distinct at) from t");
    assert_eq!(left.trim(), "48|48");
}
