//! `SHOW BYPASS` says of each transaction that goes to a server connection why, and what to do.

use std::collections::BTreeMap;

use windrow_testkit::pgclient::backend::{self, Message};
use windrow_testkit::pgclient::{Address, Client};

use crate::support::{Gateway, extended};

const TABLES: &str = "\
    create table orders (id bigint generated always as identity primary key, item text); \
    create table lines (id serial primary key, order_id bigint not null references orders); \
    create table codes (code text primary key); \
    create table pairs (a int, b int, id serial, foreign key (a, b) references given, check (a > 0)); \
    create table stamped (id serial primary key, at timestamptz); \
    create function stamp() returns trigger language plpgsql as \
      $$ begin new.at := now(); return new; end $$; \
    create trigger stamp before insert on stamped for each row execute function stamp(); \
    create table parts (id serial, v int) partition by list (v); \
    create table part1 partition of parts for values in (1); \
    create table folded (id serial primary key, word text); \
    create unique index on folded (lower(word)); \
    create table plain (id int primary key, v int)";

/// Transactions: their statements, and the reason that is counted for each.
const CASES: &[(&[&str], &str)] = &[
    (&["update plain set v = 1 where id = 1"], "an UPDATE"),
    (&["delete from plain where id = 1"], "a DELETE"),
    (
        &["select 1", "update plain set v = 1 where id = 1"],
        "a SELECT before the first write",
    ),
    (
        &["insert into orders (item) values ('a')", "select 1"],
        "a SELECT after a write",
    ),
    (
        &[
            "set local work_mem = '4MB'",
            "insert into orders (item) values ('a')",
        ],
        "a setting",
    ),
    (
        &[
            "insert into orders (item) values ('a')",
            "update plain set v = 1 where id = 1",
        ],
        "an UPDATE",
    ),
    (
        &["lock table plain", "insert into orders (item) values ('a')"],
        "a statement that is not joined in autocommit either",
    ),
    (
        &["insert into stamped default values"],
        "a table with triggers",
    ),
    (
        &["insert into parts (v) values (1)"],
        "a partitioned table or a view",
    ),
    (
        &["insert into codes values ('a')"],
        "a unique key that is not generated",
    ),
    (
        &["insert into folded (word) values ('a')"],
        "an index that is partial or over an expression",
    ),
    (
        &["insert into lines (order_id) values (1)"],
        "a foreign key to a row of another transaction",
    ),
    (
        &["insert into pairs (a, b) values (1, 1)"],
        "a foreign key that is not one number or uuid",
    ),
    (
        &["insert into orders (item) values (repeat('x', 2000000000))"],
        "a row that the server may refuse",
    ),
    (
        &["insert into orders (item) values ('a') returning id + 1"],
        "an INSERT of a form that is not computed beforehand",
    ),
];

const OF_SESSIONS: &[(&str, &str, &str)] = &[
    (
        "",
        "begin isolation level serializable",
        "SERIALIZABLE, REPEATABLE READ or other modes",
    ),
    ("set windrow.join = off", "begin", "windrow.join is off"),
];

fn run(client: &mut Client, sql: &str) -> Vec<Message> {
    client.query(sql).unwrap()
}

/// Returns the counts of transactions by reason. Each has advice.
fn reasons(gateway: &Gateway) -> BTreeMap<String, u64> {
    let console = Address {
        database: "windrow".to_owned(),
        ..gateway.address.clone()
    };
    let answer = run(&mut Client::connect(&console).unwrap(), "show bypass");
    let rows = answer.iter().filter(|message| message.tag == b'D');
    let text = |value: Option<Vec<u8>>| String::from_utf8(value.unwrap_or_default()).unwrap();
    let rows = rows.map(|row| row.values().into_iter().map(text).collect::<Vec<_>>());
    let counts = rows.filter_map(|row| {
        let reason = row[0].strip_prefix("in a transaction: ")?.to_owned();
        assert!(!row[4].is_empty(), "{row:?}");
        Some((reason, row[1].parse().unwrap()))
    });
    counts.collect()
}

fn start() -> Gateway {
    let gateway = Gateway::start();
    gateway.exec(
        "create table given (a int, b int, primary key (a, b)); insert into given values (1, 1)",
    );
    gateway.exec(TABLES);
    gateway.exec("insert into orders (item) values ('first'); insert into plain values (1, 0)");
    gateway
}

#[test]
fn each_transaction_is_counted_once_by_its_reason_with_advice() {
    let gateway = start();
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    for (statements, reason) in CASES {
        let mut client = gateway.client();
        run(&mut client, "begin");
        for sql in *statements {
            run(&mut client, sql);
        }
        run(&mut client, "rollback");
        *expected.entry((*reason).to_owned()).or_default() += 1;
        assert_eq!(reasons(&gateway), expected, "{statements:?}");
    }
}

#[test]
fn sessions_that_keep_nothing_say_why() {
    let gateway = start();
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    for (before, begin, reason) in OF_SESSIONS {
        let mut client = gateway.client();
        run(&mut client, before);
        run(&mut client, begin);
        for _ in 0..3 {
            run(&mut client, "insert into orders (item) values ('a')");
        }
        run(&mut client, "commit");
        *expected.entry((*reason).to_owned()).or_default() += 1;
        assert_eq!(reasons(&gateway), expected, "{begin}");
    }
}

/// A transaction that is kept is counted nowhere; nor is one that writes nothing.
#[test]
fn what_is_joined_or_reads_only_has_no_reason() {
    let gateway = start();
    let mut client = gateway.client();
    for statement in ["insert into orders (item) values ('a')", "select 1"] {
        run(&mut client, "begin");
        let answer = extended(&mut client, statement, &[]);
        assert_eq!(backend::sqlstate(&answer), None);
        run(&mut client, "commit");
    }
    assert_eq!(reasons(&gateway), BTreeMap::new());
}
