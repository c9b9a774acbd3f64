//! Code of which nothing is proven: what it leaves behind is met by nobody else.

use std::collections::BTreeMap;
use std::sync::Arc;

use windrow_pg::{Unproven, UnprovenConfig};
use windrow_testkit::pgclient::Client;
use windrow_testkit::pgclient::backend::{first_value, sqlstate};

use crate::support::Stand;

fn ask(client: &mut Client, sql: &str) -> Option<String> {
    let answer = client.query(sql).unwrap();
    assert_eq!(sqlstate(&answer), None, "{sql}");
    first_value(&answer)
}

fn pid(client: &mut Client) -> String {
    ask(client, "select pg_backend_pid()").unwrap()
}

/// What a session is like, as far as another one could have changed it. An unknown setting is NULL,
/// never empty.
const STATE: &str = "select concat_ws('|', current_user = session_user, current_setting('statement_timeout'), \
     coalesce(current_setting('app.last', true), 'null'), \
     (select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()), \
     (select count(*) from pg_class where relnamespace = pg_my_temp_schema()), \
     (select count(*) from pg_prepared_statements where from_sql))";

const NEW: &str = "t|0|null|0|0|0";

const DO_ALL: &str = "set app.last = 'x'; set statement_timeout = '7s'; set role pg_monitor; \
     perform pg_advisory_lock(7); create temp table if not exists mine (id serial); \
     insert into mine default values; execute 'deallocate all'; execute 'prepare p as select 1';";

fn hostile() -> Stand {
    let stand = Stand::with(|config| config.databases[0].join = false, 64 << 20);
    for sql in [
        &format!(
            "create function evil() returns int language plpgsql as $f$ begin {DO_ALL} return 1; end $f$"
        ),
        &format!(
            "create function fires() returns trigger language plpgsql as $f$ begin {DO_ALL} return new; end $f$"
        ),
        &format!("create procedure proc() language plpgsql as $f$ begin {DO_ALL} end $f$"),
        "create table fired (id int)",
        "create trigger fire before insert on fired for each row execute function fires()",
        "create table parent (id int primary key)",
        "create table child (id int references parent on delete cascade)",
        "create trigger fire after delete on child for each row execute function fires()",
        "insert into parent values (1), (2), (3); insert into child values (1), (2), (3)",
        "create view seen as select evil() as it",
        "create view above as select * from seen",
        "create table defaults (id int, it int default evil())",
        "create operator === (leftarg = int, rightarg = int, function = int4eq)",
        "create schema other",
        "create function other.lower(int) returns int language sql as 'select evil()'",
    ] {
        stand.executes(sql);
    }
    stand
}

const WAYS: [&str; 12] = [
    "insert into fired values (1)",
    "begin; insert into fired values (1); commit",
    "select evil()",
    "select it from above",
    "call proc()",
    "do $$ begin perform evil(); end $$",
    "insert into defaults (id) values (1)",
    "copy (select * from seen) to stdout",
    "delete from parent where id = (select min(id) from parent)",
    "explain analyze select * from seen",
    "create table made as select evil()",
    "select other.lower(1)",
];

#[test]
fn what_unproven_code_leaves_behind_is_met_by_nobody() {
    let stand = hostile();
    let mut first = stand.client();
    assert_eq!(ask(&mut first, STATE).unwrap(), NEW);
    drop(first);
    for way in WAYS {
        let mut client = stand.client();
        let answer = client.query(way).unwrap();
        assert_eq!(sqlstate(&answer), None, "{way}");
        // It keeps what it has done, on the connection that it was done on.
        let own = pid(&mut client);
        let state = ask(&mut client, STATE).unwrap();
        assert!(state.starts_with("f|7s|x|1|"), "{way}: {state}");
        let mut other = stand.client();
        assert_eq!(ask(&mut other, STATE).unwrap(), NEW, "{way}");
        assert_ne!(pid(&mut other), own, "{way}");
        drop(client);
        for _ in 0..3 {
            let mut later = stand.client();
            assert_eq!(ask(&mut later, STATE).unwrap(), NEW, "{way}");
            assert_ne!(pid(&mut later), own, "{way}");
        }
        stand.executes("drop table if exists made");
    }
}

#[test]
fn the_extended_protocol_is_no_way_around_it() {
    use windrow_testkit::pgclient::frontend;
    let stand = hostile();
    let mut client = stand.client();
    let answer = crate::support::segment(&mut client, |out| {
        frontend::parse(out, "s", "select $1::int + it from above", &[]);
        frontend::bind(out, ("", "s"), &[], &[Some("1")], &[]);
        frontend::execute(out, "", 0);
    });
    assert_eq!(sqlstate(&answer), None);
    assert!(ask(&mut client, STATE).unwrap().starts_with("f|7s|x|1|"));
    assert_eq!(ask(&mut stand.client(), STATE).unwrap(), NEW);
    drop(client);
    assert_eq!(ask(&mut stand.client(), STATE).unwrap(), NEW);
}

/// Prepares a statement by the protocol, under the name `p`.
fn prepare(client: &mut Client, sql: &str) {
    use windrow_testkit::pgclient::frontend;
    let answer = crate::support::segment(client, |out| frontend::parse(out, "p", sql, &[]));
    assert_eq!(sqlstate(&answer), None, "{sql}");
}

#[test]
fn a_statement_that_is_executed_by_its_name_leaves_nothing_to_others() {
    let stand = Stand::with(|config| config.databases[0].join = false, 64 << 20);
    stand.executes(
        "create function leaves() returns int language plpgsql as $f$ begin \
         perform set_config('app.last', 'x', false), pg_advisory_lock(7); return 1; end $f$",
    );
    stand.executes("create view left_by as select leaves() as it");
    for sql in [
        "select leaves()",
        "select it from left_by",
        "select pg_advisory_lock(7)",
        "select set_config('app.last', 'x', false)",
        "select set_config('statement_timeout', '7s', false)",
        "set app.last = 'x'",
    ] {
        for execute in [
            "execute p",
            "begin; execute p; commit",
            "explain (analyze, costs off, timing off) execute p",
        ] {
            let run = |client: &mut Client| {
                prepare(client, sql);
                let answer = client.query(execute).unwrap();
                (sqlstate(&answer), ask(client, STATE))
            };
            let alone = run(&mut stand.direct());
            let mut client = stand.client();
            assert_eq!(run(&mut client), alone, "{execute}: {sql}");
            assert_eq!(ask(&mut stand.client(), STATE).unwrap(), NEW, "{sql}");
            drop(client);
            assert_eq!(ask(&mut stand.client(), STATE).unwrap(), NEW, "{sql}");
        }
    }
}

#[test]
fn a_seed_that_is_set_by_a_prepared_statement_is_met_by_nobody() {
    let stand = Stand::new();
    let (seed, random) = ("select setseed(0.5)", "select random()");
    let mut direct = stand.direct();
    direct.query(seed).unwrap();
    let seeded = ask(&mut direct, random);
    for execute in ["execute p", "prepare q as select setseed(0.5); execute q"] {
        let mut client = stand.client();
        prepare(&mut client, seed);
        client.query(execute).unwrap();
        assert_ne!(ask(&mut stand.client(), random), seeded, "{execute}");
        assert_eq!(ask(&mut client, random), seeded, "{execute}");
    }
}

#[test]
fn settings_that_end_with_the_transaction_leave_no_trace_for_others() {
    let stand = Stand::new();
    for change in [
        "begin; set local app.tenant = '5'; commit",
        "begin; set local app.tenant = '5'; rollback",
        "select set_config('app.tenant', '5', true)",
        "select set_config('app.tenant', '5', true), 1",
        "set app.tenant = '5'; reset app.tenant",
        "set app.tenant = '5'; reset all",
        "set app.tenant = '5'; discard all",
    ] {
        let mut client = stand.client();
        for sql in change.split_inclusive(';') {
            client.query(sql).unwrap();
        }
        let question = "select current_setting('app.tenant', true) is null, \
             coalesce(current_setting('app.tenant', true), 'null')";
        // Once known, a setting reads as an empty text: for its own session only.
        assert_eq!(ask(&mut client, question).unwrap(), "f", "{change}");
        for _ in 0..2 {
            assert_eq!(ask(&mut stand.client(), question).unwrap(), "t", "{change}");
        }
        assert_eq!(ask(&mut client, question).unwrap(), "f", "{change}");
    }
}

#[test]
fn an_update_of_pg_settings_is_a_set() {
    let stand = Stand::with(|config| config.databases[0].join = false, 64 << 20);
    let mut client = stand.client();
    client
        .query("update pg_settings set setting = '7s' where name = 'statement_timeout'")
        .unwrap();
    assert_eq!(ask(&mut client, "show statement_timeout").unwrap(), "7s");
    assert_eq!(
        ask(&mut stand.client(), "show statement_timeout").unwrap(),
        "0"
    );
    drop(client);
    assert_eq!(
        ask(&mut stand.client(), "show statement_timeout").unwrap(),
        "0"
    );
}

#[test]
fn rows_of_another_are_not_seen_under_row_security() {
    let stand = Stand::with(|config| config.databases[0].join = false, 64 << 20);
    for sql in [
        "create table secret (owner text, note text)",
        "alter table secret enable row level security",
        "alter table secret force row level security",
        "create policy own on secret using (owner = current_setting('app.me', true))",
        "insert into secret values ('a', 'of a')",
        "create function login(who text) returns text language plpgsql as \
         $f$ begin perform set_config('app.me', who, false); return who; end $f$",
        "create view login_a as select login('a') as me",
        "create role reader; grant select on secret, login_a to reader",
        "grant reader to current_user",
    ] {
        stand.executes(sql);
    }
    let mut first = stand.client();
    for sql in ["set role reader", "begin", "select me from login_a"] {
        assert_eq!(sqlstate(&first.query(sql).unwrap()), None, "{sql}");
    }
    assert_eq!(
        ask(&mut first, "select note from secret").as_deref(),
        Some("of a")
    );
    first.query("commit").unwrap();
    let mut second = stand.client();
    second.query("set role reader").unwrap();
    assert_eq!(ask(&mut second, "select note from secret"), None);
    // Its own settings stay with it, transaction after transaction.
    assert_eq!(
        ask(&mut first, "select note from secret").as_deref(),
        Some("of a")
    );
    stand.executes("revoke reader from current_user");
    stand.executes("drop owned by reader; drop role reader");
}

#[test]
fn plain_reads_and_transactions_still_share_a_connection() {
    let stand = Stand::with(|config| config.max_server_connections = 1, 64 << 20);
    stand.executes("create table child (id int references t, at timestamptz default now())");
    stand.executes("create index on t (lower(v))");
    let mut clients: Vec<_> = (0..4).map(|_| stand.client()).collect();
    for round in 0..3 {
        for (at, client) in clients.iter_mut().enumerate() {
            let id = round * 10 + at;
            for sql in [
                "select count(*), max(lower(v)) from t where v like 'a%' group by id",
                "begin",
                &format!("insert into t values ({id}, 'b')"),
                &format!("insert into child values ({id})"),
                &format!("update t set v = upper(v) where id = {id}"),
                "commit",
                "select t.id, c.at from t join child c using (id) order by c.at limit 1",
                "select c.relname, pg_get_expr(d.adbin, d.adrelid) from pg_class c \
                 left join pg_attrdef d on d.adrelid = c.oid where pg_table_is_visible(c.oid) limit 1",
            ] {
                assert_eq!(sqlstate(&client.query(sql).unwrap()), None, "{sql}");
            }
        }
    }
}

#[test]
fn what_the_operator_answers_for_keeps_no_connection() {
    let stand = Stand::with(
        |config| {
            let functions = ["public.total", "public.fills"];
            config.databases[0].trusted = Arc::new(functions.into_iter().collect());
            config.max_server_connections = 1;
        },
        64 << 20,
    );
    for sql in [
        "create function total(a int, b int) returns int language plpgsql as $f$ begin return a + b; end $f$",
        "create function fills() returns trigger language plpgsql as \
         $f$ begin new.n := total(new.n, nextval('numbers')::int); return new; end $f$",
        "create sequence numbers; create table filled (n int)",
        "create trigger fill before insert or update on filled for each row execute function fills()",
    ] {
        stand.executes(sql);
    }
    let (mut client, mut other) = (stand.client(), stand.client());
    for sql in [
        "select total(1, 2)",
        "begin; insert into filled values (1); commit",
        "update filled set n = total(n, 1)",
    ] {
        assert_eq!(sqlstate(&client.query(sql).unwrap()), None, "{sql}");
        assert_eq!(sqlstate(&other.query("select 1").unwrap()), None, "{sql}");
    }
    // Whatever it takes from sequences, nobody else hears of it.
    let asked = "select lastval()";
    assert_eq!(ask(&mut client, asked).as_deref(), Some("2"));
    let of_others = other.query(asked).unwrap();
    assert_eq!(sqlstate(&of_others).as_deref(), Some("55000"));
}

#[test]
fn a_trigger_that_comes_later_is_noticed() {
    let stand = hostile();
    stand.executes("create table later (id int)");
    let mut client = stand.client();
    ask(&mut client, "insert into later values (1)");
    // Through here it is noticed at once.
    let mut admin = stand.client();
    ask(
        &mut admin,
        "create trigger fire before insert on later for each row execute function fires()",
    );
    ask(&mut client, "insert into later values (2)");
    assert!(ask(&mut client, STATE).unwrap().starts_with("f|7s|x|1|"));
    assert_eq!(ask(&mut stand.client(), STATE).unwrap(), NEW);
    assert_eq!(ask(&mut admin, STATE).unwrap(), NEW);
}

#[test]
fn a_connection_may_be_reset_instead() {
    let reset = |config: UnprovenConfig, keeps: bool| {
        let stand = hostile_with(config);
        let mut client = stand.client();
        ask(&mut client, "set time zone 'Asia/Tokyo'");
        ask(&mut client, "insert into fired values (1)");
        let state = ask(&mut client, STATE).unwrap();
        assert_eq!(state.starts_with("f|7s|x|1|"), keeps, "{state}");
        // What the session has set itself stays.
        assert_eq!(ask(&mut client, "show timezone").unwrap(), "Asia/Tokyo");
        let other = ask(&mut stand.client(), STATE).unwrap();
        assert!(
            other.starts_with("t|0|") && other.ends_with("|0|0|0"),
            "{other}"
        );
    };
    let one = |name: &str| BTreeMap::from([(name.to_owned(), Unproven::Reset)]);
    let database = UnprovenConfig {
        database: Unproven::Reset,
        ..UnprovenConfig::default()
    };
    reset(database, false);
    let object = UnprovenConfig {
        objects: one("public.fired"),
        ..UnprovenConfig::default()
    };
    reset(object, false);
    let role = UnprovenConfig {
        roles: one("nobody"),
        ..UnprovenConfig::default()
    };
    reset(role, true);
}

fn hostile_with(unproven: UnprovenConfig) -> Stand {
    let stand = Stand::with(
        |config| {
            config.databases[0].join = false;
            config.databases[0].unproven = unproven;
        },
        64 << 20,
    );
    for sql in [
        &format!(
            "create function fires() returns trigger language plpgsql as $f$ begin {DO_ALL} return new; end $f$"
        ),
        "create table fired (id int)",
        "create trigger fire before insert on fired for each row execute function fires()",
    ] {
        stand.executes(sql);
    }
    stand
}
