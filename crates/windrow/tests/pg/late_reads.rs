//! `windrow.transactions = 'late'`: queries before the first write of a transaction are executed by
//! themselves, and its writes are kept all the same.

use windrow_testkit::pgclient::backend::{self, Message};
use windrow_testkit::pgclient::{Client, frontend};

use crate::support::{Gateway, OPEN, extended, late, ok, status, value};

const TABLES: &str = "\
    create table items (id int primary key, name text, stock int not null, at timestamptz default now()); \
    create table books (id bigint primary key, title text); \
    create sequence books_seq increment by 50; \
    create function stock_of(int) returns int language sql stable as \
      'select stock from items where id = $1'; \
    create view of_today as select * from items where at >= current_date; \
    create table secured (id int); alter table secured enable row level security, \
      force row level security; create policy now on secured using (now() > '2020-01-01'); \
    create table words (id serial primary key, word text); \
    insert into items (id, name, stock) values (1, 'a', 10), (2, 'b', 20)";

fn start() -> Gateway {
    let gateway = Gateway::start();
    gateway.exec(TABLES);
    gateway
}

/// Asks for the stock of an item, in one of five ways that drivers have.
fn read(client: &mut Client, id: &str, way: usize) -> Vec<Message> {
    let sql = "select stock from items where id = $1";
    let name = ["", "named"][way % 2];
    let mut out = Vec::new();
    match way {
        0 => {
            frontend::query(
                &mut out,
                &format!("select stock from items where id = {id}"),
            );
            client.send(&out).unwrap();
            return client.until_ready().unwrap();
        }
        // Described in a segment of its own.
        1 | 2 => {
            frontend::parse(&mut out, name, sql, &[]);
            frontend::describe(&mut out, b'S', name);
            frontend::sync(&mut out);
            client.send(&out).unwrap();
            let answer = client.until_ready().unwrap();
            assert_eq!(status(&answer), 'T', "{way}");
            out.clear();
        }
        // Described, and awaited within the segment.
        _ => {
            frontend::parse(&mut out, name, sql, &[]);
            frontend::describe(&mut out, b'S', name);
            frontend::flush(&mut out);
            client.send(&out).unwrap();
            while client.receive().unwrap().unwrap().tag != b'T' {}
            out.clear();
        }
    }
    frontend::bind(&mut out, ("", name), &[], &[Some(id)], &[]);
    frontend::execute(&mut out, "", 0);
    frontend::sync(&mut out);
    if name == "named" {
        frontend::close(&mut out, b'S', name);
        frontend::sync(&mut out);
    }
    client.send(&out).unwrap();
    let answer = client.until_ready().unwrap();
    if name == "named" {
        let closed = client.until_ready().unwrap();
        assert_eq!(status(&closed), status(&answer));
    }
    answer
}

#[test]
fn a_query_before_the_first_write_opens_no_transaction() {
    let gateway = start();
    let mut client = late(&gateway);
    for way in 0..5 {
        ok(&mut client, "begin");
        for (id, stock) in [("1", "10"), ("2", "20")] {
            let answer = read(&mut client, id, way);
            assert_eq!(
                (backend::first_value(&answer).as_deref(), status(&answer)),
                (Some(stock), 'T'),
                "{way}"
            );
            assert_eq!(gateway.exec(OPEN), "0", "{way}");
        }
        let sql = "update items set name = $1 where id = 1";
        let answer = extended(&mut client, sql, &[Some(&way.to_string())]);
        assert_eq!(backend::sqlstate(&answer), None, "{answer:?}");
        assert_eq!(gateway.exec(OPEN), "0", "{way}");
        assert_eq!(status(&ok(&mut client, "commit")), 'I');
        let names = gateway.exec("select name from items where id = 1");
        assert_eq!(names, way.to_string());
    }
}

#[test]
fn a_query_after_a_write_sees_it() {
    let gateway = start();
    let mut client = late(&gateway);
    ok(&mut client, "begin");
    assert_eq!(value(&mut client, "select count(*) from books"), "0");
    ok(&mut client, "insert into books values (1, 'x')");
    assert_eq!(gateway.exec(OPEN), "0");
    assert_eq!(value(&mut client, "select count(*) from books"), "1");
    assert_eq!(gateway.exec(OPEN), "1");
    ok(&mut client, "rollback");
    assert_eq!(gateway.exec("select count(*) from books"), "0");
}

#[test]
fn a_query_that_fails_fails_its_transaction() {
    let gateway = start();
    let mut client = late(&gateway);
    for (way, state) in [(0, "22P02"), (1, "22P02"), (3, "22P02")] {
        ok(&mut client, "begin");
        ok(&mut client, "savepoint a");
        let id = if way == 0 { "'x'" } else { "x" };
        let answer = read(&mut client, id, way);
        assert_eq!(backend::sqlstate(&answer).as_deref(), Some(state));
        assert_eq!(status(&answer), 'E', "{way}");
        for sql in ["select 1", "insert into books values (1, 'x')"] {
            let answer = client.query(sql).unwrap();
            assert_eq!(backend::sqlstate(&answer).as_deref(), Some("25P02"));
        }
        ok(&mut client, "rollback to a");
        ok(&mut client, "insert into books values (1, 'x')");
        assert_eq!(gateway.exec(OPEN), "0");
        ok(&mut client, "commit");
        assert_eq!(gateway.exec("delete from books returning id"), "1");
        ok(&mut client, "begin");
        client.query("select * from missing").unwrap();
        let answer = client.query("commit").unwrap();
        assert_eq!(answer[0].command().as_deref(), Some("ROLLBACK"));
        assert_eq!(status(&answer), 'I');
    }
}

#[test]
fn what_belongs_to_its_transaction_is_executed_in_it() {
    let gateway = start();
    let mut client = late(&gateway);
    for sql in [
        "select * from items for update",
        "select * from items where id = 1 for key share",
        "select now()",
        "select current_timestamp",
        "select stock_of(1)",
        "select pg_advisory_xact_lock(1)",
        "select * from items where at < 'tomorrow'",
        "select txid_current()",
        "select * from of_today",
        "select * from secured",
    ] {
        ok(&mut client, "begin");
        assert_eq!(status(&ok(&mut client, sql)), 'T');
        assert_eq!(gateway.exec(OPEN), "1", "{sql}");
        ok(&mut client, "commit");
    }
    ok(&mut client, "begin");
    let time = value(&mut client, "select now()");
    assert_eq!(value(&mut client, "select now()"), time);
    ok(&mut client, "commit");
    // Its isolation is not changed any more.
    ok(&mut client, "begin");
    ok(&mut client, "select id from items");
    let answer = client.query("set transaction isolation level serializable");
    assert_eq!(
        backend::sqlstate(&answer.unwrap()).as_deref(),
        Some("25001")
    );
    ok(&mut client, "rollback");
    // A portal lives as long as its transaction.
    ok(&mut client, "begin");
    let mut out = Vec::new();
    let sql = "select id from items order by id";
    frontend::parse(&mut out, "", sql, &[]);
    frontend::bind::<&str>(&mut out, ("p", ""), &[], &[], &[]);
    frontend::execute(&mut out, "p", 1);
    frontend::sync(&mut out);
    client.send(&out).unwrap();
    let first = client.until_ready().unwrap();
    out.clear();
    frontend::execute(&mut out, "p", 1);
    frontend::sync(&mut out);
    client.send(&out).unwrap();
    let second = client.until_ready().unwrap();
    assert_eq!(
        [&first, &second].map(|answer| backend::first_value(answer).unwrap()),
        ["1", "2"]
    );
    ok(&mut client, "commit");
}

#[test]
fn queries_and_writes_that_come_together_are_answered_in_order() {
    let gateway = start();
    let mut client = late(&gateway);
    let mut out = Vec::new();
    frontend::query(&mut out, "begin");
    frontend::query(&mut out, "select stock from items where id = 2");
    frontend::query(&mut out, "update items set stock = 21 where id = 2");
    frontend::query(&mut out, "select stock from items where id = 2");
    frontend::query(&mut out, "commit");
    client.send(&out).unwrap();
    let answers: Vec<_> = (0..5).map(|_| client.until_ready().unwrap()).collect();
    let seen: Vec<_> = answers
        .iter()
        .map(|answer| (backend::first_value(answer), status(answer)))
        .collect();
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(
        seen,
        [
            (None, 'T'),
            (text("20"), 'T'),
            (None, 'T'),
            (text("21"), 'T'),
            (None, 'I')
        ]
    );
    // A statement of one name stands for another in the same segment.
    out.clear();
    ok(&mut client, "begin");
    for sql in [
        "select stock from items where id = 1",
        "insert into books values (7, 'x')",
    ] {
        frontend::parse(&mut out, "", sql, &[]);
        frontend::bind::<&str>(&mut out, ("", ""), &[], &[], &[]);
        frontend::execute(&mut out, "", 0);
    }
    frontend::sync(&mut out);
    client.send(&out).unwrap();
    assert_eq!(status(&client.until_ready().unwrap()), 'T');
    assert_eq!(gateway.exec("select count(*) from books"), "0");
    ok(&mut client, "rollback");
    assert_eq!(gateway.exec("select count(*) from books"), "0");
}

#[test]
fn a_value_of_a_sequence_is_taken_without_a_transaction() {
    let gateway = start();
    let mut client = late(&gateway);
    for round in 0..3 {
        ok(&mut client, "begin");
        let sql = "select nextval('books_seq')";
        let id = value(&mut client, sql);
        assert_eq!(id, (1 + 100 * round).to_string());
        assert_eq!(gateway.exec(OPEN), "0");
        let insert = format!("insert into books values ({id}, 'x')");
        ok(&mut client, &insert);
        // Another one may be needed after a write.
        value(&mut client, sql);
        assert_eq!(gateway.exec(OPEN), "0");
        ok(&mut client, "commit");
        let last = value(&mut client, "select currval('books_seq')");
        assert_eq!(last, (51 + 100 * round).to_string());
    }
    assert_eq!(gateway.exec("select count(*) from books"), "3");
    // The row before it has its number first.
    ok(&mut client, "begin");
    ok(&mut client, "insert into words (word) values ('a')");
    assert_eq!(value(&mut client, "select nextval('words_id_seq')"), "2");
    ok(&mut client, "commit");
    assert_eq!(gateway.exec("select id from words"), "1");
}

#[test]
fn a_transaction_with_one_snapshot_is_executed_at_the_server() {
    let gateway = start();
    let database = gateway.exec("select current_database()");
    let level = "default_transaction_isolation = 'repeatable read'";
    for (for_all, own) in [
        ("select 1", format!("set {level}")),
        (
            "select 1",
            "set session characteristics as transaction isolation level serializable".to_owned(),
        ),
        (
            "select 1",
            "select set_config('default_transaction_isolation', 'serializable', false)".to_owned(),
        ),
        ("alter", "select 1".to_owned()),
    ] {
        if for_all == "alter" {
            gateway.exec(&format!("alter database {database} set {level}"));
        }
        let mut client = late(&gateway);
        ok(&mut client, &own);
        for _ in 0..2 {
            ok(&mut client, "begin");
            let stock = "select stock from items where id = 1";
            let first = value(&mut client, stock);
            gateway.exec("update items set stock = stock + 1 where id = 1");
            assert_eq!(value(&mut client, stock), first, "{own}");
            ok(&mut client, "commit");
        }
    }
}
