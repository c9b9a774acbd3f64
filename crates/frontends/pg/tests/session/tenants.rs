//! A session's `search_path` and role, changed by code that the session ran: no other session gets
//! them, and the session itself keeps them.

use windrow_testkit::pgclient::Client;
use windrow_testkit::pgclient::backend::{first_value, sqlstate};
use windrow_testkit::pgclient::frontend;

use crate::support::{Stand, segment};

/// The `search_path`, and 'own' where the session acts as the role that it came in as.
const STATE: &str = "select pg_catalog.concat_ws(' ', pg_catalog.current_setting('search_path'), \
     case when current_user operator(pg_catalog.=) session_user then 'own' else current_user end)";

const NEW: &str = "\"$user\", public own";

const SETUP: &[&str] = &[
    "create schema acme; create schema util; create table acme.orders (note text); \
     insert into acme.orders values ('secret'); create table orders (note text)",
    "create function set_tenant(t text) returns text language plpgsql as \
     $$ begin return set_config('search_path', t, false); end $$",
    "create function \"Set Tenant\"(t text) returns text language plpgsql as \
     $$ begin return set_config('search_path', t, false); end $$",
    "create function util.set_tenant(t text) returns text language plpgsql as \
     $$ begin return set_config('search_path', t, false); end $$",
    "create function become(r text) returns text language plpgsql as \
     $$ begin return set_config('role', r, false); end $$",
    "create function dressed(t text) returns text language plpgsql security definer set work_mem = '8MB' as \
     $$ begin return set_config('search_path', t, false); end $$",
    "create function sets() returns trigger language plpgsql as \
     $$ begin perform set_config('search_path', 'acme', false); return new; end $$",
    "create function vanishes() returns text language plpgsql as \
     $$ begin perform set_config('search_path', 'acme', false); drop function public.vanishes(); return ''; end $$",
    "create procedure enter(t text) language plpgsql as \
     $$ begin perform set_config('search_path', t, false); end $$",
    "create function is_tenant(t text) returns boolean language plpgsql as \
     $$ begin perform set_config('search_path', t, false); return true; end $$",
    "create view entered as select set_tenant('acme') as tenant",
    "create view above as select * from entered",
    "create table fired (id int)",
    "create trigger sets before insert on fired for each row execute function sets()",
    "create table defaults (id int, tenant text default set_tenant('acme'))",
    "create operator public.~~> (rightarg = text, function = set_tenant)",
    "create type tenant as (name text)",
    "create function to_tenant(t text) returns tenant language plpgsql as \
     $$ begin perform set_config('search_path', t, false); return row(t)::public.tenant; end $$",
    "create cast (text as tenant) with function to_tenant(text)",
    "create domain tenant_name as text check (is_tenant(value))",
    "create function entering(o orders) returns text language plpgsql as \
     $$ begin return set_config('search_path', 'acme', false); end $$",
    "insert into orders values ('public')",
];

/// Ways to change the `search_path` or the role: messages of the simple protocol.
const WAYS: &[&[&str]] = &[
    &["select set_tenant('acme')"],
    &["select set_tenant('')"],
    &["select \"Set Tenant\"('acme')"],
    &["select util.set_tenant('acme')"],
    &["select public.set_tenant('acme') from orders"],
    &["select become('pg_monitor')"],
    &["select dressed('acme')"],
    &["select * from above"],
    &["select o.entering from orders o"],
    &["select ~~> 'acme'"],
    &["select 'acme'::text::tenant"],
    &["select 'acme'::tenant_name"],
    &["select vanishes()"],
    &["call enter('acme')"],
    &["do $$ begin perform set_tenant('acme'); end $$"],
    &["insert into fired values (1)"],
    &["insert into defaults (id) values (1)"],
    &["copy (select set_tenant('acme')) to stdout"],
    &[
        "prepare p as select public.set_tenant('acme')",
        "execute p",
        "deallocate p",
    ],
    &[
        "begin",
        "declare c cursor for select set_tenant('acme')",
        "fetch c",
        "close c",
        "commit",
    ],
    &[
        "begin",
        "select set_tenant('acme')",
        "drop function public.set_tenant cascade",
        "commit",
    ],
    &["begin; select set_tenant('acme'); drop function public.set_tenant cascade; commit"],
    &[
        "begin",
        "select set_tenant('acme')",
        "alter function public.set_tenant rename to other",
        "commit",
    ],
    &[
        "begin",
        "select set_tenant('acme')",
        "alter function public.set_tenant set schema util2",
        "commit",
    ],
    &[
        "begin",
        "select util.set_tenant('acme')",
        "alter schema util rename to tools",
        "commit",
    ],
    &[
        "begin",
        "select set_tenant('acme')",
        "create or replace function public.set_tenant(t text) returns text language internal immutable as 'lower'",
        "commit",
    ],
    &[
        "begin",
        "create view passing as select set_tenant('acme')",
        "select * from passing",
        "drop view public.passing",
        "commit",
    ],
    &[
        "begin",
        "insert into fired values (1)",
        "drop trigger sets on public.fired",
        "commit",
    ],
    &[
        "begin",
        "insert into defaults (id) values (1)",
        "alter table public.defaults alter tenant drop default",
        "commit",
    ],
    &[
        "begin",
        "create temp table passing (id int, tenant text default set_tenant('acme')) on commit drop",
        "insert into passing (id) values (1)",
        "commit",
    ],
    &[
        "begin",
        "create function passing() returns text language plpgsql as \
         $$ begin perform pg_try_advisory_lock(1); return set_config('search_path', 'acme', false); end $$",
        "select passing()",
        "select set_config('app.seen', 'x', false)",
        "drop function public.passing",
        "commit",
    ],
    &[
        "begin",
        "select set_tenant('acme')",
        "savepoint a",
        "select 1/0",
        "rollback to a",
        "commit",
    ],
    &["set search_path = util", "select set_tenant('acme')"],
    &[
        "begin",
        "set local search_path = util",
        "select set_tenant('acme')",
        "commit",
    ],
];

fn state(client: &mut Client) -> String {
    first_value(&client.query(STATE).unwrap()).unwrap()
}

fn stand(join: bool) -> Stand {
    let stand = Stand::with(
        |config| {
            config.databases[0].join = join;
            config.max_server_connections = 2;
        },
        64 << 20,
    );
    for sql in SETUP {
        stand.executes(sql);
    }
    stand
}

fn prepare(stand: &Stand) {
    stand.executes("drop schema if exists acme, util, tools, util2, public cascade");
    stand.executes("create schema public; create schema util2");
    for sql in SETUP {
        stand.executes(sql);
    }
}

#[test]
fn no_other_session_gets_them_and_the_session_keeps_them() {
    keeps_apart(false);
}

#[test]
fn nor_where_writes_are_joined() {
    keeps_apart(true);
}

fn keeps_apart(join: bool) {
    let stand = stand(join);
    stand.executes("create schema util2");
    let changing = ["create", "alter", "drop", "vanishes"];
    let changes = |sql: &&str| changing.iter().any(|word| sql.contains(word));
    // The lanes of these tests execute whatever they are given.
    let is_plain = |way: &[&str]| !way.iter().any(changes) && !way[0].starts_with("insert");
    for way in WAYS.iter().filter(|way| !join || is_plain(way)) {
        let mut alone = stand.direct();
        for sql in *way {
            alone.query(sql).unwrap();
        }
        let expected = state(&mut alone);
        assert_ne!(expected, NEW, "{way:?}");
        let is_spoilt = way.iter().any(changes);
        if is_spoilt {
            prepare(&stand);
        }
        let mut client = stand.client();
        for sql in *way {
            client.query(sql).unwrap();
        }
        // The other one has the next connection, and again when the first has left.
        let mut other = stand.client();
        assert_eq!(state(&mut other), NEW, "{way:?}");
        assert_eq!(state(&mut client), expected, "{way:?}");
        assert_eq!(state(&mut other), NEW, "{way:?}");
        drop(client);
        for _ in 0..3 {
            let mut later = stand.client();
            assert_eq!(state(&mut later), NEW, "{way:?}");
            assert_eq!(
                first_value(&later.query("select note from orders").unwrap()).as_deref(),
                Some("public"),
                "{way:?}"
            );
        }
        assert_eq!(state(&mut other), NEW, "{way:?}");
        drop(other);
        if is_spoilt {
            prepare(&stand);
        }
    }
}

#[test]
fn the_same_by_the_extended_protocol() {
    let stand = stand(false);
    let run = |client: &mut Client, name: &str, (sql, value): (&str, Option<&str>)| {
        let values: Vec<_> = value.into_iter().map(Some).collect();
        let answer = segment(client, |out| {
            frontend::parse(out, name, sql, &[]);
            frontend::bind(out, ("", name), &[], &values, &[]);
            frontend::execute(out, "", 0);
        });
        (sqlstate(&answer), first_value(&answer), state(client))
    };
    for statement in [
        ("select set_tenant($1)", Some("acme")),
        ("select become($1)", Some("pg_monitor")),
        ("insert into fired values ($1)", Some("1")),
        ("select $1::text::tenant_name", Some("acme")),
        ("select $1::tenant_name", Some("acme")),
        ("select set_tenant('acme')", None),
    ] {
        for name in ["", "s"] {
            let expected = run(&mut stand.direct(), name, statement);
            let mut client = stand.client();
            assert_eq!(run(&mut client, name, statement), expected, "{statement:?}");
            let mut other = stand.client();
            assert_eq!(state(&mut other), NEW, "{statement:?}");
            drop(client);
            assert_eq!(state(&mut stand.client()), NEW, "{statement:?}");
            assert_eq!(state(&mut other), NEW, "{statement:?}");
        }
    }
}

#[test]
fn a_segment_that_takes_away_what_it_has_run_is_no_way_around_it() {
    let stand = stand(false);
    let mut client = stand.client();
    let answer = segment(&mut client, |out| {
        for sql in [
            "select set_tenant('acme')",
            "drop function public.set_tenant cascade",
        ] {
            frontend::parse(out, "", sql, &[]);
            frontend::bind::<&str>(out, ("", ""), &[], &[], &[]);
            frontend::execute(out, "", 0);
        }
    });
    assert_eq!(sqlstate(&answer), None);
    assert_eq!(state(&mut client), "acme own");
    assert_eq!(state(&mut stand.client()), NEW);
    drop(client);
    assert_eq!(state(&mut stand.client()), NEW);
}

/// A setting that nobody can ask for is no better.
#[test]
fn a_setting_of_no_module_is_met_by_nobody() {
    let stand = stand(false);
    stand.executes(
        "create function hides() returns int language plpgsql as \
         $$ begin perform set_config('app.tenant', 'acme', false); return 1; end $$",
    );
    let seen = "select current_setting('app.tenant', true)";
    for way in [
        &["begin", "select hides()", "drop function hides", "commit"][..],
        &["begin; select hides(); drop function hides; commit"],
        &[
            "begin",
            "select hides()",
            "alter function hides rename to hidden",
            "commit",
        ],
        &[
            "begin",
            "create function made() returns int language plpgsql as \
             $$ begin perform pg_advisory_lock(5); return hides(); end $$",
            "select made()",
            "select 1/0",
            "rollback",
        ],
        &[
            "begin",
            "savepoint a",
            "create function made() returns int language plpgsql as \
             $$ begin perform pg_advisory_lock(5); return hides(); end $$",
            "select made()",
            "rollback to a",
            "commit",
        ],
    ] {
        stand.executes(
            "drop function if exists hides, hidden; create function hides() returns int language plpgsql as \
             $$ begin perform set_config('app.tenant', 'acme', false); return 1; end $$",
        );
        let mut client = stand.client();
        for sql in way {
            client.query(sql).unwrap();
        }
        let mut other = stand.client();
        assert_eq!(first_value(&other.query(seen).unwrap()), None, "{way:?}");
        let locks =
            "select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()";
        assert_eq!(
            first_value(&other.query(locks).unwrap()).as_deref(),
            Some("0"),
            "{way:?}"
        );
        drop(client);
        for _ in 0..3 {
            let mut later = stand.client();
            assert_eq!(first_value(&later.query(seen).unwrap()), None, "{way:?}");
            assert_eq!(
                first_value(&later.query(locks).unwrap()).as_deref(),
                Some("0"),
                "{way:?}"
            );
        }
    }
}

/// Proven statements keep no connection: one is enough for all sessions.
#[test]
fn migrations_and_plain_reads_share_a_connection() {
    let stand = Stand::with(|config| config.max_server_connections = 1, 64 << 20);
    let (mut one, mut other) = (stand.client(), stand.client());
    for sql in [
        "create table versions (id int primary key, at timestamptz default now())",
        "begin",
        "create table made (id int primary key, v text)",
        "insert into made values (1, 'a')",
        "alter table made add w text default upper('b')",
        "update made set v = lower(w)",
        "create index on made (lower(v))",
        "alter table made alter w set not null",
        "drop index made_lower_idx",
        "insert into versions values (1)",
        "commit",
        "begin",
        "insert into versions values (2)",
        "savepoint a",
        "insert into versions values (2)",
        "rollback to a",
        "commit",
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < 3) select * from n as x (y)",
        "drop table made",
    ] {
        one.query(sql).unwrap();
        if sql == "commit" {
            assert_eq!(state(&mut other), NEW, "{sql}");
        }
    }
    assert_eq!(state(&mut other), NEW);
    assert_eq!(state(&mut one), NEW);
    assert_eq!(
        first_value(&one.query("select count(*) from versions").unwrap()).as_deref(),
        Some("2")
    );
}

/// Several SETs in one text, as some drivers begin with, keep no connection.
#[test]
fn several_settings_in_one_text_are_followed() {
    let stand = Stand::with(|config| config.max_server_connections = 1, 64 << 20);
    let (mut one, mut other) = (stand.client(), stand.client());
    let show = "select current_setting('standard_conforming_strings') || current_setting('TimeZone') \
         || current_setting('client_min_messages') || current_setting('work_mem')";
    let show = |client: &mut Client| first_value(&client.query(show).unwrap()).unwrap();
    let before = show(&mut other);
    let start = "SET standard_conforming_strings=on;SET client_min_messages TO warning;\n\
         SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE -- the end\n; ";
    one.query(start).unwrap();
    one.query("set work_mem = '7MB'; select 1").unwrap();
    for _ in 0..2 {
        let mine = show(&mut one);
        assert!(mine.contains("<+00>-00warning7MB"), "{mine}");
        assert_eq!(show(&mut other), before);
    }
    // What fails or is undone changes nothing.
    one.query("set work_mem = '9MB'; select 1/0").unwrap();
    one.query("begin; set work_mem = '9MB'; rollback").unwrap();
    one.query("begin").unwrap();
    one.query("set work_mem = '9MB'; set timezone = 'Asia/Tokyo'")
        .unwrap();
    one.query("rollback").unwrap();
    let mine = show(&mut one);
    assert!(mine.contains("<+00>-00warning7MB"), "{mine}");
    one.query("reset work_mem; reset timezone; set client_min_messages to default")
        .unwrap();
    assert_eq!(show(&mut one), before);
    assert_eq!(show(&mut other), before);
}
