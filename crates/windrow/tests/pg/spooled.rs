//! `windrow.ack = 'spool'`: inserts of SQL clients that the spool acknowledges.

use std::path::Path;

use tempfile::TempDir;
use windrow_testkit::pgclient::backend::Message;
use windrow_testkit::pgclient::{Address, Client, backend, frontend};
use windrow_testkit::postgres::Postgres;

use crate::support::{Gateway, extended, serve};

const TABLE: &str = "create table t (id int primary key, v text)";

/// A gateway with a spool.
fn start(folder: &TempDir) -> Gateway {
    let gateway = Gateway::with(Postgres::builder(), &["--spool", path(folder)]);
    gateway.exec(TABLE);
    gateway
}

fn path(folder: &TempDir) -> &str {
    let path: &Path = folder.path();
    path.to_str().unwrap()
}

fn spooling(gateway: &Gateway) -> Client {
    let options = [("options", "-c windrow.ack=spool")];
    Client::connect_with(&gateway.address, &options).unwrap()
}

fn told(answer: &[Message]) -> String {
    let command = answer.iter().find_map(Message::command);
    backend::sqlstate(answer).or(command).unwrap_or_default()
}

#[track_caller]
fn ok(client: &mut Client, sql: &str) -> Option<String> {
    let answer = client.query(sql).unwrap();
    assert_eq!(backend::sqlstate(&answer), None, "{sql}: {answer:?}");
    backend::first_value(&answer)
}

#[test]
fn inserts_are_acknowledged_while_the_server_is_away() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = start(&folder);
    let mut client = spooling(&gateway);
    let sql = "insert into t (id, v) values ($1, $2)";
    ok(&mut client, "insert into t (id, v) values (0, 'x')");
    extended(&mut client, sql, &[Some("1"), None]);
    assert_eq!(ok(&mut client, "select count(*) from t").unwrap(), "2");
    gateway.server.kill9().unwrap();
    for id in 2..50 {
        let text = id.to_string();
        let answer = match id % 2 {
            0 => client
                .query(&format!("insert into t (id, v) values ({id}, 'x')"))
                .unwrap(),
            _ => extended(&mut client, sql, &[Some(&text), Some("x")]),
        };
        assert_eq!(told(&answer), "INSERT 0 1", "{answer:?}");
    }
    gateway.server.restart().unwrap();
    assert_eq!(ok(&mut client, "select count(*) from t").unwrap(), "50");
}

#[test]
fn a_session_sees_what_it_has_written() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = start(&folder);
    gateway.exec("create table child (id int primary key, parent int not null references t)");
    let mut client = spooling(&gateway);
    for id in 0..60 {
        ok(
            &mut client,
            &format!("insert into t (id, v) values ({id}, 'x')"),
        );
        ok(
            &mut client,
            &format!("insert into child (id, parent) values ({id}, {id})"),
        );
        let sql = match id % 4 {
            0 => format!("update t set v = 'y' where id = {id}"),
            1 => format!("select count(*) from t where id = {id}"),
            2 => format!("update t set v = 'y' where id = {id} returning id"),
            _ => "begin".to_owned(),
        };
        let answer = client.query(&sql).unwrap();
        assert_ne!(told(&answer), "UPDATE 0", "{sql}");
        if id % 4 == 3 {
            let found = ok(&mut client, &format!("select v from t where id = {id}"));
            assert_eq!(found.as_deref(), Some("x"));
            ok(&mut client, "commit");
        }
    }
    assert_eq!(gateway.exec("select count(*) from child"), "60");
    assert_eq!(gateway.exec("select count(*) from windrow_rejected"), "0");
}

#[test]
fn the_setting_is_checked_shown_and_reset() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = start(&folder);
    gateway.exec("create role other login");
    let mut client = gateway.client();
    assert_eq!(ok(&mut client, "show windrow.ack").unwrap(), "commit");
    ok(&mut client, "set windrow.ack = 'spool'");
    assert_eq!(ok(&mut client, "show windrow.ack").unwrap(), "spool");
    ok(&mut client, "reset windrow.ack");
    assert_eq!(ok(&mut client, "show windrow.ack").unwrap(), "commit");
    assert_eq!(
        told(&client.query("set windrow.ack = 'spoon'").unwrap()),
        "22023"
    );
    let other = Address {
        role: "other".to_owned(),
        ..gateway.address.clone()
    };
    let mut other = Client::connect(&other).unwrap();
    assert_eq!(
        told(&other.query("set windrow.ack = 'spool'").unwrap()),
        "42501"
    );
    let (_windrow, address) = serve(&gateway.direct, &[]);
    let mut without = Client::connect(&address).unwrap();
    assert_eq!(
        told(&without.query("set windrow.ack = spool").unwrap()),
        "0A000"
    );
}

#[test]
fn what_was_acknowledged_outlives_the_gateway() {
    let folder = tempfile::tempdir().unwrap();
    let mut gateway = start(&folder);
    let mut client = spooling(&gateway);
    ok(&mut client, "insert into t (id, v) values (0, 'x')");
    for round in 0..3 {
        let mut client = spooling(&gateway);
        for id in 1..40 {
            let id = round * 100 + id;
            ok(
                &mut client,
                &format!("insert into t (id, v) values ({id}, 'x')"),
            );
        }
        gateway.windrow.kill9().unwrap();
        let (windrow, address) = serve(&gateway.direct, &["--spool", path(&folder)]);
        (gateway.windrow, gateway.address) = (windrow, address);
    }
    let mut client = spooling(&gateway);
    ok(&mut client, "insert into t (id, v) values (-1, 'x')");
    assert_eq!(ok(&mut client, "select count(*) from t").unwrap(), "119");
    assert_eq!(gateway.exec("select count(*) from windrow_rejected"), "0");
}

#[test]
fn who_waits_for_the_spool_can_be_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = start(&folder);
    let mut client = spooling(&gateway);
    ok(&mut client, "insert into t (id, v) values (0, 'x')");
    ok(&mut client, "select count(*) from t");
    gateway.server.kill9().unwrap();
    ok(&mut client, "insert into t (id, v) values (1, 'x')");
    let mut out = Vec::new();
    frontend::query(&mut out, "select count(*) from t");
    client.send(&out).unwrap();
    let answer = std::thread::scope(|scope| {
        let (key, socket) = (
            client.cancel_key().unwrap().to_vec(),
            gateway.address.socket,
        );
        let (done, is_done) = std::sync::mpsc::channel::<()>();
        scope.spawn(move || {
            // A request that comes too early means nothing.
            while is_done
                .recv_timeout(std::time::Duration::from_millis(20))
                .is_err()
            {
                let (mut other, mut out) = (Client::open(socket).unwrap(), Vec::new());
                frontend::cancel(&mut out, &key);
                other.send(&out).unwrap();
                assert!(other.receive().unwrap().is_none());
            }
        });
        let answer = client.until_ready().unwrap();
        done.send(()).unwrap();
        answer
    });
    assert_eq!(told(&answer), "57014", "{answer:?}");
    gateway.server.restart().unwrap();
    assert_eq!(ok(&mut client, "select count(*) from t").unwrap(), "2");
}

/// What a sequence gives shows only when it is applied: nobody is told a wrong number.
#[test]
fn nobody_is_told_a_wrong_number() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = start(&folder);
    gateway.exec("create table s (id serial primary key, v text)");
    let mut client = spooling(&gateway);
    ok(&mut client, "set windrow.ack = commit");
    ok(&mut client, "insert into s (v) values ('first')");
    ok(&mut client, "set windrow.ack = spool");
    ok(&mut client, "insert into s (v) values ('second')");
    let answer = client.query("select lastval()").unwrap();
    assert_eq!(told(&answer), "0A000", "{answer:?}");
    let answer = client.query("select currval('s_id_seq')").unwrap();
    assert_eq!(told(&answer), "0A000", "{answer:?}");
    assert_eq!(
        gateway.exec("select string_agg(v, ' ' order by id) from s"),
        "first second"
    );
}

/// Values of many types, in all spellings: the tables are those that the same statements leave
/// behind directly, and what is refused there is a dead letter here or is refused as well.
#[test]
fn rows_are_what_the_statements_would_have_written() {
    const TYPES: [(&str, &[&str]); 18] = [
        ("int2", &["1", "-7", " 5 ", "99999", "1.5", "x"]),
        ("int4", &["1", "2147483648", "+3", "0x1F", ""]),
        (
            "int8",
            &["9223372036854775807", "9223372036854775808", "-0"],
        ),
        ("float4", &["1.1", "NaN", "1e39", "-0", "Infinity"]),
        ("float8", &["1.1", "1e-400", "-0", "1e400", "0.1e1"]),
        ("numeric", &["1.50", "NaN", "1e5", "00012.3400", "x"]),
        ("numeric(6, 2)", &["1.005", "99999.995", "-1.005"]),
        ("bool", &["t", "false", "on", "1", "maybe", "TRUE"]),
        ("text", &["", "it's", "\u{e9}\u{1f600}", "null", "\\x41"]),
        ("varchar(3)", &["abc", "abcd", "abc  "]),
        ("char(3)", &["a", "abcd", "ab  "]),
        ("bytea", &["\\x00ff", "abc", "\\001", "\\xZZ", "AAAA"]),
        (
            "uuid",
            &[
                "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
                "{a0eebc999c0b4ef8bb6d6bb9bd380a11}",
                "A0EEBC999C0B4EF8BB6D6BB9BD380A11",
            ],
        ),
        ("json", &["{\"a\":  1}", "\"x\"", "[1, 2]", "{", "5"]),
        ("jsonb", &["{\"a\":  1}", "\"x\"", "[1, 2]", "{", "null"]),
        (
            "date",
            &["2024-02-29", "2/3/2024", "today", "2023-02-29", "infinity"],
        ),
        (
            "timestamp",
            &[
                "2024-02-29 12:00:00.123456",
                "2024-02-29",
                "2024-02-29 12:00+02",
                "epoch",
            ],
        ),
        (
            "timestamptz",
            &[
                "2024-02-29 12:00:00",
                "2024-02-29T12:00:00Z",
                "2024-02-29 12:00:00.5-03:30",
                "infinity",
            ],
        ),
    ];
    let folder = tempfile::tempdir().unwrap();
    let gateway = start(&folder);
    let plain = Address::of(&gateway.server.create_database().unwrap()).unwrap();
    let mut direct = Client::connect(&plain).unwrap();
    let mut tried = spooling(&gateway);
    let mut judge = gateway.direct();
    for client in [&mut direct, &mut tried] {
        ok(client, "set time zone 'Asia/Kolkata'");
        ok(client, "set datestyle = 'ISO, DMY'");
    }
    for (number, (sql_type, values)) in TYPES.iter().enumerate() {
        let table =
            format!("create table k{number} (id int primary key, v {sql_type}, w int default 7)");
        ok(&mut direct, &table);
        ok(&mut judge, &table);
        let sql = format!("insert into k{number} (id, v) values ($1, $2)");
        let mut refused = 0;
        for (id, value) in values.iter().enumerate() {
            let (one, two) = (id.to_string(), (id + 100).to_string());
            let quoted = value.replace('\'', "''");
            let simple = format!("insert into k{number} (v, id) values ('{quoted}', {two})");
            for client in [&mut direct, &mut tried] {
                let answer = extended(client, &sql, &[Some(&one), Some(value)]);
                let other = client.query(&simple).unwrap();
                for answer in [answer, other] {
                    refused += usize::from(backend::sqlstate(&answer).is_some());
                }
            }
        }
        for client in [&mut direct, &mut tried] {
            extended(client, &sql, &[Some("1000"), None]);
            let bare = value_without_quotes(number);
            if let Some(bare) = bare {
                client
                    .query(&format!(
                        "insert into k{number} (id, v) values (1001, {bare})"
                    ))
                    .unwrap();
            }
        }
        let rows = format!("select string_agg(k::text, ' ' order by id) from k{number} k");
        let [left, right] = [&mut direct, &mut tried].map(|client| ok(client, &rows));
        assert_eq!(left, right, "{sql_type}");
        let letters =
            format!("select count(*) from windrow_rejected where destination like '%k{number}'");
        let letters: usize = ok(&mut judge, &letters).unwrap().parse().unwrap();
        let direct_refused = values.len() * 2 + 1 - rows_of(&mut direct, number);
        assert!(refused + letters >= direct_refused, "{sql_type}");
    }
}

fn value_without_quotes(number: usize) -> Option<&'static str> {
    match number {
        0..=2 => Some("5"),
        3..=6 => Some("1.25"),
        7 => Some("true"),
        _ => None,
    }
}

fn rows_of(client: &mut Client, number: usize) -> usize {
    let sql = format!("select count(*) from k{number} where id <> 1001");
    ok(client, &sql).unwrap().parse().unwrap()
}
