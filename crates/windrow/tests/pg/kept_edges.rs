//! Transactions that are kept, at their edges: what the client sees is what it would see alone.

use std::time::Duration;

use windrow_testkit::pgclient::backend::{self, Message};
use windrow_testkit::pgclient::{Client, frontend};
use windrow_testkit::postgres::psql;

use crate::defer::Line;
use crate::kept_forms::{Pair, Player, unnamed};
use crate::support::{OPEN, extended};

const NOTES: &str = "create table notes (id serial primary key, day date, note text, \
    at timestamptz default now()); \
    create table marks (id serial primary key, day date, note text, kind text default 'a')";

fn start() -> Pair {
    let pair = Pair::start();
    pair.both(NOTES);
    pair
}

/// Returns true for the characters of numbers and of their lengths.
fn is_number(c: char) -> bool {
    c.is_ascii_digit() || c.is_ascii_control()
}

/// Returns the first column of all rows.
fn firsts(answer: &[Message]) -> Vec<String> {
    let rows = answer.iter().filter(|message| message.tag == b'D');
    let first = |row: &Message| String::from_utf8(row.values().remove(0).unwrap()).unwrap();
    rows.map(first).collect()
}

#[test]
fn writes_that_arrive_together_have_one_time() {
    let pair = start();
    for texts in [
        &[
            "insert into notes (note) values ($1) returning at",
            "insert into orders (item) values ($1) returning at",
            "insert into notes (day, note) values ($1::date, 'a') returning at",
        ][..],
        &["insert into notes (note, at) values ($1, default), ('b', now()) returning at"],
    ] {
        pair.same_but(is_number, |player| {
            player.query("BEGIN");
            player.note(&texts.join("; "), "together");
            let answer = player.send(
                |out| {
                    for text in texts {
                        unnamed(out, text, &[], &[Some("2026-01-01")]);
                    }
                    frontend::sync(out);
                },
                1,
            );
            let mut times = firsts(answer);
            times.dedup();
            assert_eq!(times.len(), 1, "{texts:?}: {times:?}");
            if texts.len() == 3 {
                player.is_kept();
            }
            player.query("COMMIT");
        });
    }
}

#[test]
fn a_portal_of_a_name_lives_as_long_as_its_transaction() {
    let pair = start();
    pair.same(|player| {
        player.query("BEGIN");
        for _ in 0..2 {
            player.send(
                |out| {
                    let sql = "insert into orders (item) values ($1) returning id";
                    frontend::parse(out, "", sql, &[]);
                    frontend::bind(out, ("p1", ""), &[], &[Some("a")], &[]);
                    frontend::execute(out, "p1", 0);
                    frontend::sync(out);
                },
                1,
            );
        }
        player.query("COMMIT");
    });
}

#[test]
fn savepoints_are_not_kept_without_end() {
    let pair = start();
    let mut client = pair.gateway.client();
    client.query("begin").unwrap();
    for _ in 0..2_000 {
        client.query("savepoint s1").unwrap();
    }
    assert_eq!(pair.gateway.exec(OPEN), "1");
    client.query("commit").unwrap();
}

#[test]
fn an_error_that_is_not_about_the_rows_is_no_conflict() {
    let pair = start();
    let gateway = &pair.gateway;
    let begin = || {
        let mut client = gateway.client();
        for sql in [
            "begin",
            "insert into orders (item) values ('a') returning id",
        ] {
            let answer = client.query(sql).unwrap();
            assert_eq!(backend::sqlstate(&answer), None, "{answer:?}");
        }
        client
    };
    for (settings, expected) in [
        ("lock_timeout = '100ms'", "55P03"),
        // The gateway's own questions take less on any machine.
        ("statement_timeout = '1s'", "57014"),
    ] {
        gateway.exec(&format!("alter role current_user set {settings}"));
        let mut client = begin();
        gateway.exec("alter role current_user reset all");
        let mut holder = gateway.direct();
        holder.query("begin").unwrap();
        holder.query("lock table orders").unwrap();
        let answer = client.query("select 1").unwrap();
        holder.query("rollback").unwrap();
        let state = backend::sqlstate(&answer);
        assert_eq!(state.as_deref(), Some(expected), "{answer:?}");
        client.query("rollback").unwrap();
    }
}

/// Returns one of several.
fn pick<'t>(seed: &mut u64, all: &[&'t str]) -> &'t str {
    *seed = seed
        .wrapping_mul(6364136223846793005)
        .wrapping_add(1442695040888963407);
    all[usize::try_from(*seed >> 33).unwrap() % all.len()]
}

/// Texts that are sent in random order.
const STEPS: &[&str] = &[
    "insert into orders (item) values ('a') returning id, qty",
    "insert into orders (item) values ('a')",
    "insert into orders (item) values ('a') returning item",
    "insert into orders (item, qty) values ('b', 7), ('c', 8) returning id",
    "insert into orders (item, qty) values ('b', 100)",
    "insert into marks (note) values ('n') returning id, kind",
    "insert into marks (note) values ('n')",
    "insert into notes (note) values ('n')",
    "insert into notes (note) values ('n') returning id, day",
    "insert into lines (order_id) values (1)",
    "savepoint s1",
    "savepoint s1",
    "savepoint s2",
    "savepoint plain",
    "release s1",
    "release savepoint s2",
    "rollback to s1",
    "rollback to savepoint s2",
    "rollback to plain",
    "begin",
    "commit",
    "commit",
    "rollback",
    "commit and chain",
    "rollback and chain",
    "set transaction read only",
    "set local work_mem = '1MB'",
    "show transaction_isolation",
    "select count(*) from orders",
    "select item from orders order by id limit 2",
    "select 1/0",
    "update orders set qty = 3",
    "lock table orders in share mode",
    "",
    "select pg_current_xact_id_if_assigned() is null",
    "declare c cursor for select item from orders",
    "prepare x as select 1",
    "deallocate x",
    "discard all",
    "begin; insert into orders (item) values ('m')",
    "insert into orders (item) values ('m'); commit",
    "set role none",
    "nonsense",
    "abort",
    "end",
    "start transaction read write",
    "begin isolation level repeatable read",
    "values (1)",
];

/// Sends texts in random order, alone and together, by both protocols.
fn play(player: &mut Player<'_>, mut seed: u64) {
    player.query("begin");
    for _ in 0..14 {
        let count = [1, 1, 1, 2, 3][usize::try_from(seed >> 40).unwrap() % 5];
        let mut out = Vec::new();
        let mut syncs = 0;
        for _ in 0..count {
            let text = pick(&mut seed, STEPS);
            let is_query = pick(&mut seed, &["q", "q", "x", "y"]);
            player.note(text, is_query);
            match is_query {
                "x" => {
                    unnamed(&mut out, text, &[], &[]);
                    frontend::sync(&mut out);
                }
                "y" => {
                    frontend::parse(&mut out, "", text, &[]);
                    frontend::describe(&mut out, b'S', "");
                    frontend::flush(&mut out);
                    frontend::bind::<&str>(&mut out, ("", ""), &[], &[], &[]);
                    frontend::execute(&mut out, "", 0);
                    frontend::close(&mut out, b'P', "");
                    frontend::sync(&mut out);
                }
                _ => frontend::query(&mut out, text),
            }
            syncs += 1;
        }
        player.send(|to| to.extend(&out), syncs);
    }
    player.query("rollback");
    player.query("select note, kind from marks order by id");
    player.query("select count(*) from notes");
}

#[test]
fn random_transactions_are_answered_as_alone() {
    let pair = start();
    for seed in 1..=20 {
        pair.same_but(is_number, |player| play(player, seed * 7919));
    }
}

/// The same of rows that hold the time of their transaction, by statements that are prepared under
/// a name in the middle of the loop.
#[test]
fn a_loop_that_returns_times_takes_a_few_round_trips() {
    let line = Line::start(Duration::from_millis(5));
    let exec = |sql: &str| psql(&line.direct.url(), sql).unwrap();
    exec(
        "create table posts (id serial primary key, n int, qty int default 1, \
          created_at timestamptz default now(), day date not null default current_date)",
    );
    let insert = "insert into posts (n) values ($1) returning id, qty, created_at, day";
    let mut client = Client::connect(&line.address).unwrap();
    let mut last = String::new();
    // The last loop asks for as many rows as the one before has used.
    for (rows, most) in [(1, 20), (500, 7), (500, 4)] {
        let before = line.proxy.round_trips();
        client.query("begin").unwrap();
        let mut times = Vec::new();
        for n in 0..rows {
            let value = n.to_string();
            let mut out = Vec::new();
            let name = if n < 5 { "" } else { "named" };
            if n <= 5 {
                frontend::parse(&mut out, name, insert, &[0; 1][..usize::from(n == 5)]);
                frontend::sync(&mut out);
            }
            frontend::bind(&mut out, ("", name), &[], &[Some(&value)], &[]);
            frontend::execute(&mut out, "", 0);
            frontend::sync(&mut out);
            client.send(&out).unwrap();
            if n <= 5 {
                client.until_ready().unwrap();
            }
            let answer = client.until_ready().unwrap();
            let row = answer.iter().find(|message| message.tag == b'D').unwrap();
            times.push(String::from_utf8(row.values().remove(2).unwrap()).unwrap());
        }
        assert_eq!(client.query("commit").unwrap()[0].tag, b'C');
        let trips = line.proxy.round_trips() - before;
        assert!(trips <= most, "{trips} round trips for {rows} rows");
        times.dedup();
        assert_eq!(times.len(), 1, "{times:?}");
        assert!(last < times[0], "{last} {times:?}");
        last.clone_from(&times[0]);
        let stored = "select count(*), count(distinct created_at), bool_and(created_at = ";
        let stored = exec(&format!(
            "{stored}'{last}'), bool_and(day = created_at::date) from posts"
        ));
        assert_eq!(stored, format!("{rows}|1|t|t"));
        client.query("deallocate named").unwrap();
        exec("delete from posts");
    }
}

/// Over a slow line, a loop of single INSERTs takes a few round trips, whatever its length.
#[test]
fn a_loop_with_returning_takes_a_few_round_trips() {
    const ROWS: u64 = 500;
    let line = Line::start(Duration::from_millis(5));
    let exec = |sql: &str| psql(&line.direct.url(), sql).unwrap();
    exec("create table items (id bigserial primary key, n int, kind text default 'a')");
    let insert = "insert into items (n) values ($1) returning id, kind";
    for is_query in [true, false] {
        let mut client = Client::connect(&line.address).unwrap();
        let mut ids = Vec::new();
        let mut before = 0;
        for n in 0..=ROWS {
            if n <= 1 {
                // The first transaction learns of the table.
                client.query("commit").unwrap();
                before = line.proxy.round_trips();
                client.query("begin").unwrap();
            }
            let value = n.to_string();
            let answer = match is_query {
                true => client.query(&insert.replace("$1", &value)).unwrap(),
                false => extended(&mut client, insert, &[Some(&value)]),
            };
            ids.push(backend::first_value(&answer).unwrap());
        }
        assert_eq!(exec("select count(*) from items"), "1");
        client.query("commit").unwrap();
        let trips = line.proxy.round_trips() - before;
        assert!(trips < 20, "{trips} round trips, query: {is_query}");
        let stored = exec("select string_agg(id::text, ' ' order by n) from items");
        assert_eq!(stored, ids.join(" "));
        exec("truncate items");
    }
}
