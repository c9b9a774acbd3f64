//! Transactions whose inserts are certain: answered at once, and committed as one unit.

use windrow_testkit::pgclient::Client;
use windrow_testkit::pgclient::backend;

use crate::support::{Gateway, OPEN, extended, ok, status, tags, value};

const TABLES: &str = "\
    create table orders (id bigint generated always as identity primary key, \
      item varchar(20) not null, qty int default 1 check (qty < 100), at timestamptz default now()); \
    create table lines (id serial primary key, order_id bigint not null references orders, note text); \
    create table codes (code text primary key, v int)";

fn start() -> Gateway {
    let gateway = Gateway::start();
    gateway.exec(TABLES);
    gateway
}

#[test]
fn a_certain_transaction_is_open_nowhere_until_its_commit() {
    let gateway = start();
    let mut client = gateway.client();
    for sync in ["", "sync"] {
        assert_eq!(status(&ok(&mut client, "begin")), 'T');
        let answer = match sync {
            "" => ok(
                &mut client,
                "insert into orders (item) values ('hay') returning id, qty",
            ),
            _ => {
                let sql = "insert into orders (item) values ($1) returning id, qty";
                extended(&mut client, sql, &[Some("hay")])
            }
        };
        assert_eq!(status(&answer), 'T');
        assert_eq!(backend::sqlstate(&answer), None, "{answer:?}");
        let id = backend::first_value(&answer).unwrap();
        let line = format!("insert into lines (order_id, note) values ({id}, 'a') returning id");
        assert_eq!(status(&ok(&mut client, &line)), 'T');
        assert_eq!(gateway.exec(OPEN), "0");
        assert_eq!(gateway.exec("select count(*) from orders"), "0");
        let answer = ok(&mut client, "commit");
        assert_eq!((tags(&answer).as_str(), status(&answer)), ("CZ", 'I'));
        let rows = "select o.id, o.item, o.qty, o.at is not null, l.note \
            from orders o join lines l on l.order_id = o.id";
        assert_eq!(gateway.exec(rows), format!("{id}|hay|1|t|a"));
        gateway.exec("truncate orders, lines");
    }
}

#[test]
fn all_columns_of_a_transaction_have_one_time() {
    let gateway = start();
    let mut client = gateway.client();
    ok(&mut client, "begin");
    let insert = "insert into orders (item) values ('a') returning at";
    let first = value(&mut client, insert);
    assert_eq!(value(&mut client, insert), first);
    assert_eq!(gateway.exec(OPEN), "0");
    ok(&mut client, "commit");
    assert_eq!(gateway.exec("select count(distinct at) from orders"), "1");
    ok(&mut client, "begin");
    assert_ne!(value(&mut client, insert), first);
}

#[test]
fn another_statement_sees_what_was_kept() {
    let gateway = start();
    let mut client = gateway.client();
    for end in ["commit", "rollback"] {
        ok(&mut client, "begin");
        let id = value(
            &mut client,
            "insert into orders (item) values ('hay') returning id",
        );
        ok(&mut client, "savepoint s1");
        ok(&mut client, "insert into orders (item) values ('straw')");
        assert_eq!(gateway.exec(OPEN), "0");
        let seen = format!("select id = {id} from orders where item = 'hay'");
        assert_eq!(value(&mut client, &seen), "t");
        assert_eq!(value(&mut client, "select count(*) from orders"), "2");
        ok(&mut client, "rollback to s1");
        assert_eq!(value(&mut client, "select count(*) from orders"), "1");
        ok(&mut client, "insert into orders (item) values ('oats')");
        ok(&mut client, end);
        let left = if end == "commit" { "hay,oats" } else { "" };
        let sql = "select coalesce(string_agg(item, ',' order by item), '') from orders";
        assert_eq!(gateway.exec(sql), left);
        gateway.exec("truncate orders, lines");
    }
}

#[test]
fn savepoints_move_a_mark_in_what_is_kept() {
    let gateway = start();
    let mut client = gateway.client();
    let insert = |client: &mut Client, item: &str| {
        ok(
            client,
            &format!("insert into orders (item) values ('{item}')"),
        );
    };
    ok(&mut client, "begin");
    insert(&mut client, "a");
    ok(&mut client, "savepoint \"S1\"");
    insert(&mut client, "b");
    ok(&mut client, "savepoint s2");
    insert(&mut client, "c");
    ok(&mut client, "rollback to savepoint s2");
    insert(&mut client, "d");
    ok(&mut client, "release savepoint \"S1\"");
    insert(&mut client, "e");
    assert_eq!(gateway.exec(OPEN), "0");
    // Both are gone: only the server says so.
    let answer = client.query("rollback to s2").unwrap();
    assert_eq!(backend::sqlstate(&answer).as_deref(), Some("3B001"));
    assert_eq!(status(&answer), 'E');
    ok(&mut client, "rollback");
    ok(&mut client, "begin");
    insert(&mut client, "a");
    ok(&mut client, "savepoint s1");
    insert(&mut client, "b");
    ok(&mut client, "rollback to s1");
    insert(&mut client, "c");
    ok(&mut client, "commit");
    let sql = "select string_agg(item, ',' order by id) from orders";
    assert_eq!(gateway.exec(sql), "a,c");
}

#[test]
fn savepoints_of_prepared_statements_are_kept() {
    let gateway = start();
    let mut client = gateway.client();
    for sql in [
        "begin",
        "insert into orders (item) values ('a')",
        "savepoint a",
        "insert into orders (item) values ('b')",
        "rollback to a",
        "insert into orders (item) values ('c')",
        "release a",
    ] {
        let answer = extended(&mut client, sql, &[]);
        assert_eq!((tags(&answer).as_str(), status(&answer)), ("12nCZ", 'T'));
        assert_eq!(gateway.exec(OPEN), "0", "{sql}");
    }
    extended(&mut client, "commit", &[]);
    let sql = "select string_agg(item, ',' order by id) from orders";
    assert_eq!(gateway.exec(sql), "a,c");
}

#[test]
fn a_row_that_is_refused_is_refused_at_once_in_the_servers_words() {
    let gateway = start();
    gateway.exec("insert into codes values ('x', 1)");
    let (mut client, mut direct) = (gateway.client(), gateway.direct());
    for sql in [
        "insert into orders (item, qty) values ('a', 100) returning id",
        "insert into orders (item) values (null) returning id",
        "insert into orders (item) values ('a text of more than twenty') returning id",
        "insert into orders (item, qty) values ('a', 'many')",
        "insert into lines (order_id) values (77)",
        "insert into codes values ('x', 2)",
    ] {
        for _ in 0..3 {
            let mut said = Vec::new();
            for client in [&mut client, &mut direct] {
                ok(client, "begin");
                ok(
                    client,
                    "insert into orders (item) values ('before') returning at",
                );
                let answer = client.query(sql).unwrap();
                let error = answer.iter().find(|m| m.tag == b'E').unwrap();
                let fields = b"CMDHtcnP".map(|field| error.field(field));
                let ids = |text: String| text.replace(|c: char| c.is_ascii_digit(), "");
                said.push((fields.map(|field| field.map(ids)), status(&answer)));
                let next = client
                    .query("insert into orders (item) values ('after')")
                    .unwrap();
                assert_eq!(backend::sqlstate(&next).as_deref(), Some("25P02"));
                ok(client, "rollback");
            }
            assert!(said[0] == said[1], "{sql}: {said:?}");
        }
    }
    assert_eq!(gateway.exec("select count(*) from orders"), "0");
}

#[test]
fn nothing_is_left_of_a_client_that_leaves() {
    let gateway = start();
    for rolls_back in [true, false] {
        let mut client = gateway.client();
        ok(&mut client, "begin");
        ok(
            &mut client,
            "insert into orders (item) values ('hay') returning id",
        );
        if rolls_back {
            ok(&mut client, "rollback");
        }
    }
    let mut client = gateway.client();
    ok(&mut client, "begin");
    ok(
        &mut client,
        "insert into orders (item) values ('oats') returning id",
    );
    ok(&mut client, "commit");
    assert_eq!(
        gateway.exec("select string_agg(item, ',') from orders"),
        "oats"
    );
}

#[test]
fn a_table_that_is_altered_meanwhile_fails_the_transaction() {
    let gateway = start();
    let mut client = gateway.client();
    for (change, back) in [
        (
            "alter table orders drop column qty",
            "alter table orders add qty int default 1",
        ),
        (
            "alter table orders rename item to thing",
            "alter table orders rename thing to item",
        ),
        (
            "create rule r as on insert to orders do instead nothing",
            "drop rule r on orders",
        ),
        (
            "create or replace function drops() returns trigger language plpgsql as 'begin return null; end'; \
             create trigger d before insert on orders for each row execute function drops()",
            "drop trigger d on orders",
        ),
        (
            "create or replace function changes() returns trigger language plpgsql as \
             'begin new.qty := 7; return new; end'; \
             create trigger c before insert on orders for each row execute function changes()",
            "drop trigger c on orders",
        ),
        (
            "alter table orders alter item type char(20)",
            "alter table orders alter item type varchar(20)",
        ),
    ] {
        // The server keeps it in mind that a table once had a rule or trigger.
        for replays in [false, true, false] {
            ok(&mut client, "begin");
            ok(
                &mut client,
                "insert into orders (item) values ('hay') returning id, qty",
            );
            assert_eq!(gateway.exec(OPEN), "0");
            gateway.exec(change);
            let sql = if replays {
                "select count(*) from codes"
            } else {
                "commit"
            };
            let answer = client.query(sql).unwrap();
            let failed = backend::sqlstate(&answer);
            assert_eq!(failed.as_deref(), Some("40001"), "{change}: {answer:?}");
            ok(&mut client, "rollback");
            assert_eq!(gateway.exec("select count(*) from orders"), "0");
            gateway.exec(back);
            ok(&mut client, "insert into orders (item) values ('hay')");
            gateway.exec("truncate orders, lines");
        }
    }
}

#[test]
fn transactions_of_many_clients_are_whole() {
    let gateway = start();
    std::thread::scope(|scope| {
        for n in 0..16 {
            let gateway = &gateway;
            scope.spawn(move || {
                let mut client = gateway.client();
                for round in 0..20 {
                    ok(&mut client, "begin");
                    let sql = "insert into orders (item) values ($1) returning id";
                    let item = format!("{n}-{round}");
                    let answer = extended(&mut client, sql, &[Some(&item)]);
                    let id = backend::first_value(&answer).unwrap();
                    let sql = "insert into lines (order_id, note) values ($1, $2)";
                    extended(&mut client, sql, &[Some(&id), Some(&item)]);
                    ok(&mut client, "commit");
                }
            });
        }
    });
    let same =
        "select count(*) from orders o join lines l on l.order_id = o.id and l.note = o.item";
    assert_eq!(gateway.exec(same), "320");
}

#[test]
fn a_transaction_that_is_repeated_after_a_change_of_its_table_succeeds() {
    let gateway = start();
    for mode in ["exact", "late"] {
        let mut client = gateway.client();
        ok(&mut client, &format!("set windrow.transactions = {mode}"));
        gateway.exec("create table plain (a text, b int)");
        let mut run = |sql: &[&str]| {
            let mut states = sql.iter().map(|sql| client.query(sql).unwrap());
            states.find_map(|answer| backend::sqlstate(&answer))
        };
        let insert = "insert into plain values ('1', 2)";
        let repeated = ["begin", insert, "select 1", "commit"];
        assert_eq!(run(&repeated), None);
        gateway.exec("drop table plain; create table plain (a int, b int)");
        let first = run(&repeated);
        assert!(
            matches!(first.as_deref(), None | Some("40001")),
            "{first:?}"
        );
        run(&["rollback"]);
        assert_eq!(run(&repeated), None, "{mode}");
        gateway.exec("delete from plain; alter table plain add check (b > 2)");
        let first = run(&repeated);
        let states = ["40001", "23514"];
        assert!(states.contains(&first.as_deref().unwrap()), "{first:?}");
        run(&["rollback"]);
        assert_eq!(run(&repeated).as_deref(), Some("23514"), "{mode}");
        run(&["rollback"]);
        gateway.exec("drop table plain");
    }
}

#[test]
fn a_transaction_has_begun_although_its_writes_were_rolled_back() {
    let gateway = start();
    let (mut client, mut direct) = (gateway.client(), gateway.direct());
    for then in [
        "set transaction isolation level serializable",
        "set transaction read only",
        "select 1",
    ] {
        let run = |client: &mut Client| {
            for sql in [
                "begin",
                "savepoint a",
                "insert into orders (item) values ('hay')",
                "rollback to a",
                "release a",
            ] {
                ok(client, sql);
            }
            let state = backend::sqlstate(&client.query(then).unwrap());
            ok(client, "rollback");
            state
        };
        assert_eq!(run(&mut client), run(&mut direct), "{then}");
    }
}
