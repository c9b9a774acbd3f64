//! `windrow.transactions = 'late'`: a transaction's writes are kept although keys may refuse them,
//! and their errors come at COMMIT.

use std::time::{Duration, Instant};

use windrow_testkit::pgclient::backend::{self, Message};
use windrow_testkit::pgclient::{Address, Client};

use crate::support::{Gateway, OPEN, extended, late, ok, status, tags, value};

const TABLES: &str = "\
    create table customers (id int primary key, name text); \
    create table orders (id bigint generated always as identity primary key, code text unique, \
      customer_id int not null references customers, qty int default 1 check (qty < 100), \
      at timestamptz default now()); \
    create table tags (order_id bigint references orders, tag text, primary key (order_id, tag)); \
    insert into customers values (1, 'a'), (2, 'b')";

const CODES: &str = "select coalesce(string_agg(code, ',' order by code), '') from orders";

fn start() -> Gateway {
    let gateway = Gateway::start();
    gateway.exec(TABLES);
    gateway
}

/// Inserts an order, by a simple query or with parameters, with RETURNING or without.
fn order(client: &mut Client, code: &str, customer: &str, form: usize) -> Vec<Message> {
    let returning = ["", " returning id"][form % 2];
    let answer = match form / 2 {
        0 => {
            let sql = format!(
                "insert into orders (code, customer_id) values ('{code}', {customer}){returning}"
            );
            client.query(&sql).unwrap()
        }
        _ => {
            let sql = format!("insert into orders (code, customer_id) values ($1, $2){returning}");
            extended(client, &sql, &[Some(code), Some(customer)])
        }
    };
    assert_eq!(backend::sqlstate(&answer), None, "{answer:?}");
    assert_eq!(status(&answer), 'T');
    answer
}

fn error(answer: &[Message]) -> &Message {
    answer.iter().find(|m| m.tag == b'E').unwrap()
}

#[test]
fn writes_are_kept_although_keys_may_refuse_them() {
    let gateway = start();
    let mut client = late(&gateway);
    for form in 0..4 {
        ok(&mut client, "begin");
        order(&mut client, "x", "1", form);
        ok(&mut client, "savepoint s");
        order(&mut client, "x", "2", form);
        ok(&mut client, "rollback to s");
        order(&mut client, "y", "2", form);
        ok(&mut client, "release s");
        assert_eq!(gateway.exec(OPEN), "0", "{form}");
        assert_eq!(gateway.exec(CODES), "");
        let answer = ok(&mut client, "commit");
        assert_eq!((tags(&answer).as_str(), status(&answer)), ("CZ", 'I'));
        assert_eq!(gateway.exec(CODES), "x,y");
        gateway.exec("truncate orders, tags");
    }
}

#[test]
fn the_first_error_comes_at_commit_with_all_its_fields() {
    let gateway = start();
    gateway.exec("insert into orders (code, customer_id) values ('taken', 1)");
    let (mut client, mut direct) = (late(&gateway), gateway.direct());
    for (code, customer, state) in [("taken", "1", "23505"), ("new", "77", "23503")] {
        for form in 0..4 {
            ok(&mut client, "begin");
            order(&mut client, "before", "1", form);
            order(&mut client, code, customer, form);
            order(&mut client, "after", "1", form);
            assert_eq!(gateway.exec(OPEN), "0");
            let answer = client.query("commit").unwrap();
            assert_eq!((tags(&answer).as_str(), status(&answer)), ("EZ", 'I'));
            ok(&mut direct, "begin");
            let sql =
                format!("insert into orders (code, customer_id) values ('{code}', {customer})");
            let alone = direct.query(&sql).unwrap();
            ok(&mut direct, "rollback");
            let fields = |answer: &[Message]| b"CMDtcn".map(|field| error(answer).field(field));
            assert_eq!(fields(&answer), fields(&alone));
            assert_eq!(backend::sqlstate(&answer).as_deref(), Some(state));
            let text = error(&answer).field(b'q').unwrap();
            assert!(
                text.starts_with("insert into orders (code, customer_id)"),
                "{text}"
            );
            assert!(form > 1 || text.contains(code), "{text}");
            assert!(error(&answer).field(b'W').unwrap().contains(&text));
            assert_eq!(gateway.exec(CODES), "taken");
            // The session goes on.
            ok(&mut client, "begin");
            ok(&mut client, "rollback");
        }
    }
}

#[test]
fn an_error_answers_the_first_statement_that_waits() {
    let gateway = start();
    gateway.exec("insert into orders (code, customer_id) values ('taken', 1)");
    let mut client = late(&gateway);
    let count = "select count(*) from orders";
    for form in 0..4 {
        for end in ["rollback", "commit", "commit and chain"] {
            ok(&mut client, "begin");
            order(&mut client, "before", "1", form);
            ok(&mut client, "savepoint s");
            order(&mut client, "taken", "1", form);
            order(&mut client, "after", "1", form);
            let answer = match form / 2 {
                0 => client.query(count).unwrap(),
                _ => extended(&mut client, count, &[]),
            };
            assert_eq!(backend::sqlstate(&answer).as_deref(), Some("23505"));
            assert!(
                error(&answer)
                    .field(b'W')
                    .unwrap()
                    .contains("insert into orders")
            );
            assert_eq!(status(&answer), 'E');
            let answer = client.query(count).unwrap();
            assert_eq!(backend::sqlstate(&answer).as_deref(), Some("25P02"));
            ok(&mut client, "rollback to s");
            assert_eq!(value(&mut client, count), "2");
            let answer = client.query(end).unwrap();
            let chains = end == "commit and chain";
            assert_eq!(status(&answer), if chains { 'T' } else { 'I' });
            ok(&mut client, "rollback");
            gateway.exec("delete from orders where code <> 'taken'");
        }
    }
}

#[test]
fn a_commit_that_begins_another_transaction_reports_the_error() {
    let gateway = start();
    gateway.exec("insert into orders (code, customer_id) values ('taken', 1)");
    let mut client = late(&gateway);
    for form in 0..4 {
        ok(&mut client, "begin");
        order(&mut client, "taken", "1", form);
        let answer = client.query("commit and chain").unwrap();
        assert_eq!(backend::sqlstate(&answer).as_deref(), Some("23505"));
        // The server has rolled back, and begun another.
        assert_eq!(status(&answer), 'T');
        ok(&mut client, "insert into customers values (10, 'c')");
        ok(&mut client, "commit");
        assert_eq!(
            gateway.exec("delete from customers where id = 10 returning 1"),
            "1"
        );
        assert_eq!(gateway.exec(CODES), "taken");
    }
}

#[test]
fn a_transaction_that_is_rolled_back_reports_nothing() {
    let gateway = start();
    gateway.exec("insert into orders (code, customer_id) values ('taken', 1)");
    let mut client = late(&gateway);
    for form in 0..4 {
        ok(&mut client, "begin");
        order(&mut client, "taken", "1", form);
        let answer = ok(&mut client, "rollback");
        assert_eq!((tags(&answer).as_str(), status(&answer)), ("CZ", 'I'));
    }
    assert_eq!(gateway.exec(CODES), "taken");
}

#[test]
fn rows_of_a_transaction_have_one_time_and_later_statements_see_them() {
    let gateway = start();
    let mut client = late(&gateway);
    let times = "select count(distinct at), count(*) from orders";
    ok(&mut client, "begin");
    let insert = "insert into orders (code, customer_id) values ('a', 1) returning at";
    let first = value(&mut client, insert);
    order(&mut client, "b", "1", 0);
    order(&mut client, "c", "1", 2);
    assert_eq!(gateway.exec(OPEN), "0");
    ok(&mut client, "commit");
    assert_eq!(gateway.exec(times), "1|3");
    gateway.exec("truncate orders, tags");
    ok(&mut client, "begin");
    order(&mut client, "b", "1", 0);
    order(&mut client, "c", "1", 2);
    let second = value(&mut client, insert);
    assert_ne!(first, second);
    assert_eq!(value(&mut client, "select now()"), second);
    assert_eq!(value(&mut client, "select count(*) from orders"), "3");
    ok(&mut client, "commit");
    assert_eq!(gateway.exec(times), "1|3");
}

#[test]
fn values_of_sequences_are_known_after_late_writes() {
    let gateway = start();
    let mut client = late(&gateway);
    let last = "select lastval() = (select max(id) from orders), \
        currval(pg_get_serial_sequence('orders', 'id')) = (select max(id) from orders)";
    for ends in [true, false] {
        for form in [0, 2] {
            ok(&mut client, "begin");
            order(&mut client, "a", "1", 1);
            order(&mut client, "b", "1", form);
            if ends {
                ok(&mut client, "commit");
                let max = gateway.exec("select max(id) from orders");
                assert_eq!(value(&mut client, "select lastval()"), max);
            }
            let answer = ok(&mut client, last);
            assert_eq!(backend::first_value(&answer).as_deref(), Some("t"));
            if !ends {
                ok(&mut client, "commit");
                let answer = ok(&mut client, last);
                assert_eq!(backend::first_value(&answer).as_deref(), Some("t"));
            }
            gateway.exec("truncate orders, tags");
        }
    }
}

#[test]
fn an_insert_that_stores_no_row_any_more_fails_the_transaction() {
    let gateway = start();
    let mut client = late(&gateway);
    gateway.exec(
        "create function drops() returns trigger language plpgsql as 'begin return null; end'",
    );
    for (change, back) in [
        (
            "create trigger d before insert on orders for each row execute function drops()",
            "drop trigger d on orders",
        ),
        (
            "create rule r as on insert to orders do instead nothing",
            "drop rule r on orders",
        ),
        (
            "alter table orders rename customer_id to customer",
            "alter table orders rename customer to customer_id",
        ),
    ] {
        for end in ["commit", "select 1"] {
            for form in 0..4 {
                ok(&mut client, "begin");
                order(&mut client, "a", "1", form);
                gateway.exec(change);
                let answer = client.query(end).unwrap();
                let failed = backend::sqlstate(&answer);
                assert_eq!(
                    failed.as_deref(),
                    Some("40001"),
                    "{change} {form}: {answer:?}"
                );
                ok(&mut client, "rollback");
                gateway.exec(back);
                assert_eq!(gateway.exec(CODES), "");
                // What the gateway knows is true again.
                ok(
                    &mut client,
                    "insert into orders (code, customer_id) values ('a', 1)",
                );
                gateway.exec("truncate orders, tags");
            }
        }
    }
}

#[test]
fn roles_and_databases_have_late_transactions_too() {
    let gateway = start();
    let role = gateway.exec("select current_user");
    let database = gateway.exec("select current_database()");
    let shown = |client: &mut Client| value(client, "show windrow.transactions");
    assert_eq!(shown(&mut gateway.client()), "exact");
    gateway.exec(&format!(
        "alter database {database} set windrow.transactions = late"
    ));
    assert_eq!(shown(&mut gateway.client()), "late");
    gateway.exec(&format!("alter role {role} set windrow.defer = off"));
    assert_eq!(shown(&mut gateway.client()), "exact");
    gateway.exec(&format!(
        "alter role {role} in database {database} set windrow.defer = on"
    ));
    let mut client = gateway.client();
    ok(&mut client, "set windrow.transactions = exact");
    assert_eq!(value(&mut client, "show windrow.defer"), "off");
    ok(&mut client, "begin");
    ok(
        &mut client,
        "insert into customers values (1, 'again') on conflict do nothing",
    );
    let answer = client
        .query("insert into customers values (1, 'again')")
        .unwrap();
    assert_eq!(backend::sqlstate(&answer).as_deref(), Some("23505"));
    ok(&mut client, "rollback");
    ok(&mut client, "reset windrow.transactions");
    assert_eq!(shown(&mut client), "late");
    let options = [("options", "-c windrow.transactions=exact")];
    let mut client = Client::connect_with(&gateway.address, &options).unwrap();
    assert_eq!(shown(&mut client), "exact");
}

/// Executes an UPDATE or DELETE of the row 1, as a simple query or with parameters.
fn change(client: &mut Client, sql: &str, form: usize) -> String {
    change_of(client, ("1", sql), form)
}

/// The same of another row.
fn change_of(client: &mut Client, (id, sql): (&str, &str), form: usize) -> String {
    let answer = match form {
        0 => {
            let sql = sql.replace("$1", id).replace("$2", "5");
            client.query(&sql).unwrap()
        }
        _ => extended(client, sql, &[Some(id), Some("5")]),
    };
    assert_eq!(backend::sqlstate(&answer), None, "{sql}: {answer:?}");
    let complete = answer.iter().find(|m| m.tag == b'C').unwrap();
    let tag = String::from_utf8_lossy(&complete.body);
    tag.trim_end_matches('\0').to_owned()
}

fn stock(gateway: &Gateway) {
    gateway.exec(
        "create table stock (id int primary key, qty int not null, version int default 1, at timestamptz); \
         insert into stock values (1, 10), (2, 20)",
    );
}

const STOCK: &str = "select coalesce(string_agg(id || ':' || qty || ':' || version, ',' order by id), '') from stock";

#[test]
fn changes_by_key_are_kept() {
    let gateway = start();
    stock(&gateway);
    let mut client = late(&gateway);
    for form in 0..2 {
        ok(&mut client, "begin");
        let update =
            "update stock set qty = $2, version = version + 1 where id = $1 and version = 1";
        let other = (
            "2",
            "update stock set qty = $2::integer where stock.id = $1::integer",
        );
        let none = ("7", "update stock set qty = $2 where id = $1");
        let delete = ("2", "delete from stock where id = $1 and $2 = 5");
        assert_eq!(change(&mut client, update, form), "UPDATE 1");
        assert_eq!(change_of(&mut client, none, form), "UPDATE 0");
        ok(&mut client, "savepoint s");
        assert_eq!(change_of(&mut client, other, form), "UPDATE 1");
        ok(&mut client, "rollback to s");
        assert_eq!(change_of(&mut client, delete, form), "DELETE 1");
        order(&mut client, "x", "1", 2 * form);
        assert_eq!(gateway.exec(OPEN), "0", "{form}");
        assert_eq!(gateway.exec(STOCK), "1:10:1,2:20:1");
        ok(&mut client, "commit");
        assert_eq!(gateway.exec(STOCK), "1:5:2");
        gateway.exec("truncate stock, orders, tags; insert into stock values (1, 10), (2, 20)");
    }
}

#[test]
fn a_row_that_has_gone_meanwhile_fails_the_transaction() {
    let gateway = start();
    stock(&gateway);
    let mut client = late(&gateway);
    for form in 0..2 {
        for end in ["commit", "select 1"] {
            ok(&mut client, "begin");
            order(&mut client, "x", "1", 2 * form);
            let update = "update stock set qty = $2 where id = $1 and version = 1";
            assert_eq!(change(&mut client, update, form), "UPDATE 1");
            gateway.exec("update stock set version = 2 where id = 1");
            let answer = client.query(end).unwrap();
            assert_eq!(
                backend::sqlstate(&answer).as_deref(),
                Some("40001"),
                "{answer:?}"
            );
            ok(&mut client, "rollback");
            assert_eq!(gateway.exec(STOCK), "1:10:2,2:20:1");
            assert_eq!(gateway.exec(CODES), "");
            gateway.exec("update stock set version = 1");
        }
    }
}

#[test]
fn changes_see_what_was_kept_before_them() {
    let gateway = start();
    stock(&gateway);
    let mut client = late(&gateway);
    for form in 0..2 {
        ok(&mut client, "begin");
        assert_eq!(
            change(
                &mut client,
                "update stock set qty = $2 where id = $1 and qty = 10",
                form
            ),
            "UPDATE 1"
        );
        assert_eq!(
            change(
                &mut client,
                "update stock set qty = $2 where id = $1 and qty = 10",
                form
            ),
            "UPDATE 0"
        );
        assert_eq!(
            change(
                &mut client,
                "delete from stock where id = $1 and qty = $2",
                form
            ),
            "DELETE 1"
        );
        ok(&mut client, "insert into stock values (1, 7)");
        assert_eq!(
            change(
                &mut client,
                "delete from stock where id = $1 and qty = 7 and $2 = 5",
                form
            ),
            "DELETE 1"
        );
        ok(&mut client, "commit");
        assert_eq!(gateway.exec(STOCK), "2:20:1");
        ok(&mut client, "begin");
        ok(&mut client, "insert into stock values (1, 10)");
        assert_eq!(
            change(&mut client, "update stock set qty = $2 where id = $1", form),
            "UPDATE 1"
        );
        ok(&mut client, "commit");
        assert_eq!(gateway.exec(STOCK), "1:5:1,2:20:1");
        gateway.exec("update stock set qty = 10 where id = 1");
    }
}

#[test]
fn what_a_deletion_takes_along_is_seen() {
    let gateway = start();
    gateway.exec(
        "create table parents (id int primary key, v int); \
         create table children (id int primary key, parent int references parents on delete cascade, v int); \
         insert into parents values (1, 1), (2, 2); insert into children values (1, 1, 1), (2, 2, 2)",
    );
    let mut client = late(&gateway);
    ok(&mut client, "begin");
    assert_eq!(
        change(
            &mut client,
            "delete from parents where id = $1 and $2 = 5",
            1
        ),
        "DELETE 1"
    );
    assert_eq!(
        change(&mut client, "update children set v = $2 where id = $1", 1),
        "UPDATE 0"
    );
    ok(&mut client, "commit");
    let left = "select (select count(*) from parents) || ':' || (select count(*) from children)";
    assert_eq!(gateway.exec(left), "1:1");
}

#[test]
fn an_error_of_a_change_keeps_its_fields() {
    let gateway = start();
    stock(&gateway);
    gateway.exec("alter table stock add check (qty < 1000)");
    let mut client = late(&gateway);
    for form in 0..2 {
        for (sql, state) in [
            ("update stock set qty = $2 * 1000 where id = $1", "23514"),
            (
                "update stock set qty = $2 / (version - 1) where id = $1",
                "22012",
            ),
        ] {
            ok(&mut client, "begin");
            assert_eq!(change(&mut client, sql, form), "UPDATE 1");
            assert_eq!(gateway.exec(OPEN), "0");
            let answer = client.query("commit").unwrap();
            assert_eq!(
                backend::sqlstate(&answer).as_deref(),
                Some(state),
                "{answer:?}"
            );
            assert!(
                error(&answer)
                    .field(b'q')
                    .unwrap()
                    .starts_with("update stock")
            );
            assert_eq!(gateway.exec(STOCK), "1:10:1,2:20:1");
        }
    }
}

#[test]
fn a_row_that_new_rows_refer_to_is_changed() {
    let gateway = start();
    let mut client = late(&gateway);
    for form in 0..2 {
        ok(&mut client, "begin");
        order(&mut client, "x", "1", 2 * form + 1);
        order(&mut client, "y", "1", 2 * form);
        let update = "update customers set name = 'b' where id = $1 and $2 = 5";
        assert_eq!(change(&mut client, update, form), "UPDATE 1");
        assert_eq!(gateway.exec(OPEN), "0");
        ok(&mut client, "commit");
        assert_eq!(gateway.exec(CODES), "x,y");
        gateway.exec("truncate orders, tags");
    }
}

#[test]
fn a_new_row_whose_key_nobody_knows_may_be_changed() {
    let gateway = start();
    gateway.exec(
        "create table counted (id int generated always as identity primary key, v int check (v > 0))",
    );
    let mut client = late(&gateway);
    for form in 0..2 {
        ok(&mut client, "begin");
        ok(&mut client, "insert into counted (v) values (7)");
        assert_eq!(
            change(&mut client, "update counted set v = $2 where id = $1", form),
            "UPDATE 1"
        );
        ok(&mut client, "commit");
        assert_eq!(gateway.exec("select v from counted"), "5");
        gateway.exec("truncate counted restart identity");
    }
}

#[test]
fn semicolons_and_comments_may_stand_behind_a_write() {
    let gateway = start();
    stock(&gateway);
    let mut client = late(&gateway);
    for tail in [";", " -- end", "; -- end", " /* end */ ;"] {
        for end in ["commit", "select 1"] {
            for form in 0..2 {
                ok(&mut client, "begin");
                let insert = format!("insert into stock values ($1, $2){tail}");
                assert_eq!(change_of(&mut client, ("3", &insert), form), "INSERT 0 1");
                let update = format!("update stock as s set qty = $2 where s.id = $1{tail}");
                assert_eq!(change(&mut client, &update, form), "UPDATE 1");
                let delete =
                    format!("delete from stock where id = $1 and (qty = 0 or $2 = 5){tail}");
                assert_eq!(change_of(&mut client, ("2", &delete), form), "DELETE 1");
                assert_eq!(gateway.exec(OPEN), "0", "{tail} {form}");
                ok(&mut client, end);
                ok(&mut client, "commit");
                assert_eq!(gateway.exec(STOCK), "1:5:1,3:5:1");
                gateway.exec("delete from stock; insert into stock values (1, 10), (2, 20)");
            }
        }
    }
}

#[test]
fn a_row_is_the_same_however_its_key_is_spelled() {
    let gateway = start();
    let mut client = late(&gateway);
    let all = [
        (
            "uuid",
            "'00000000-0000-0000-0000-00000000000A'",
            "'0000000000000000000000000000000a'",
            "'0000000000000000000000000000000b'",
        ),
        (
            "timestamptz",
            "'2020-01-01 00:00:00+00'",
            "'2020-01-01 01:00:00+01'",
            "'2020-01-01 00:00:00+01'",
        ),
        ("numeric", "1.0", "1.00", "2"),
        ("char(3)", "'a'", "'a '", "'b'"),
        ("varchar(3)", "'abc '", "'abc'", "'b'"),
        ("float8", "0", "-0.0", "1"),
    ];
    for (number, (of, one, same, other)) in all.into_iter().enumerate() {
        gateway.exec(&format!(
            "create table k{number} (id {of} primary key, v int)"
        ));
        for (first, second) in [(one, same), (same, one)] {
            ok(&mut client, "begin");
            let insert = format!("insert into k{number} values ({one}, 1), ({other}, 1)");
            ok(&mut client, &insert);
            for key in [first, second, other] {
                let update = format!("update k{number} set v = v + $2 where id = $1");
                let tag = change_of(&mut client, (key, &update), 0);
                let is_cut = of == "varchar(3)" && key == one;
                assert_eq!(tag, ["UPDATE 1", "UPDATE 0"][usize::from(is_cut)], "{key}");
            }
            let delete = format!("delete from k{number} where id = {other} and v = 6");
            ok(&mut client, &delete);
            ok(&mut client, "commit");
            let stored = gateway.exec(&format!("select string_agg(v::text, ',') from k{number}"));
            assert_eq!(stored, ["11", "6"][usize::from(of == "varchar(3)")], "{of}");
            gateway.exec(&format!("truncate k{number}"));
        }
    }
}

#[test]
fn a_right_that_is_missing_is_no_conflict() {
    let gateway = start();
    gateway.exec("create role clerk login; grant select on customers to clerk");
    let clerk = Address {
        role: "clerk".to_owned(),
        ..gateway.address.clone()
    };
    let options = [("options", "-c windrow.transactions=late")];
    let mut client = Client::connect_with(&clerk, &options).unwrap();
    for write in [
        "insert into customers values (3, 'c')",
        "update customers set name = 'x' where id = 1",
        "delete from customers where id = 1",
    ] {
        for end in ["commit", "select 1"] {
            ok(&mut client, "begin");
            ok(&mut client, write);
            let answer = client.query(end).unwrap();
            let state = backend::sqlstate(&answer);
            assert_eq!(state.as_deref(), Some("42501"), "{write}: {answer:?}");
            ok(&mut client, "rollback");
        }
    }
    assert_eq!(gateway.exec("select count(*) from customers"), "2");
}

#[test]
fn a_transaction_has_begun_with_a_change_of_no_row() {
    let gateway = start();
    let mut client = late(&gateway);
    for end in ["set transaction isolation level serializable", "select 1"] {
        ok(&mut client, "begin");
        let update = "update customers set name = $2 where id = $1";
        assert_eq!(change_of(&mut client, ("77", update), 0), "UPDATE 0");
        let state = backend::sqlstate(&client.query(end).unwrap());
        let expected = end.starts_with("set").then_some("25001");
        assert_eq!(state.as_deref(), expected);
        ok(&mut client, "rollback");
    }
}

#[test]
fn a_query_has_one_error_whatever_comes_behind_a_late_write() {
    let gateway = start();
    gateway.exec("insert into orders (code, customer_id) values ('taken', 1)");
    for (then, state) in [
        ("prepare other as select 1", "23505"),
        ("show transaction_isolation", "23505"),
        ("set windrow.join = on", "23505"),
        ("commit and chain", "23505"),
        ("rollback and chain", ""),
        ("rollback; select 1", ""),
    ] {
        let mut client = late(&gateway);
        ok(&mut client, "begin");
        order(&mut client, "taken", "1", 0);
        let answer = client.query(then).unwrap();
        let errors = answer.iter().filter(|m| m.tag == b'E').count();
        assert_eq!(errors, usize::from(!state.is_empty()), "{then}: {answer:?}");
        let found = backend::sqlstate(&answer).unwrap_or_default();
        assert_eq!(found, state, "{then}");
        assert!(!tags(&answer).contains("EC"), "{then}: {answer:?}");
        client.query("rollback").unwrap();
        assert_eq!(gateway.exec(CODES), "taken");
    }
}

#[test]
fn a_session_that_is_reset_is_as_at_its_beginning() {
    let gateway = start();
    let mut client = gateway.client();
    for reset in ["reset all", "discard all"] {
        ok(&mut client, "set windrow.transactions = late");
        ok(&mut client, reset);
        assert_eq!(value(&mut client, "show windrow.transactions"), "exact");
        let mut late = late(&gateway);
        ok(&mut late, "set windrow.transactions = exact");
        ok(&mut late, reset);
        assert_eq!(value(&mut late, "show windrow.transactions"), "late");
    }
}

#[test]
fn transactions_read_while_the_catalog_is_asked_again() {
    let gateway = start();
    let mut client = late(&gateway);
    // The session keeps its server connection.
    ok(&mut client, "create temporary table own (id int)");
    let begin = Instant::now();
    // Longer than what is known of the catalog counts.
    while begin.elapsed() < Duration::from_secs(3) {
        ok(&mut client, "begin");
        assert_eq!(value(&mut client, "select count(*) from customers"), "2");
        ok(&mut client, "commit");
    }
}
