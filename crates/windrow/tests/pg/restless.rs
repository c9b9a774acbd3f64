//! A table changes while many write, also faster than it can be described: what each is told of the
//! types of its rows is true of its rows.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use windrow_testkit::pgclient::{Client, Message, backend, frontend};

use crate::support::Gateway;

const WRITERS: usize = 24;

/// Each of them changes the rows that a client is given.
const CHANGES: [&str; 4] = [
    "alter table t add column x int default 7",
    "alter table t alter v type bigint",
    "alter table t drop column x",
    "alter table t alter v type int",
];

const SQL: &str = "insert into t (id, v) values ($1, 1) returning *";

/// Writes a row under a statement of the name; all values come in binary.
fn write(client: &mut Client, name: &str, id: usize) -> Vec<Message> {
    let mut out = Vec::new();
    if name.is_empty() {
        frontend::parse(&mut out, name, SQL, &[]);
    }
    frontend::bind(&mut out, ("", name), &[], &[Some(id.to_string())], &[1]);
    if name.is_empty() {
        frontend::describe(&mut out, b'P', "");
    }
    frontend::execute(&mut out, "", 0);
    frontend::sync(&mut out);
    client.send(&out).unwrap();
    client.until_ready().unwrap()
}

/// Prepares the statement anew. Gives what is told of its rows.
fn prepare(client: &mut Client) -> Message {
    let mut out = Vec::new();
    frontend::close(&mut out, b'S', "s");
    frontend::parse(&mut out, "s", SQL, &[]);
    frontend::describe(&mut out, b'S', "s");
    frontend::sync(&mut out);
    client.send(&out).unwrap();
    let answer = client.until_ready().unwrap();
    let told = answer.iter().find(|message| message.tag == b'T');
    told.unwrap_or_else(|| panic!("{answer:?}")).clone()
}

/// How long the values of a row are that has these columns.
fn lengths(told: &Message) -> Vec<usize> {
    let length = |of: u32| if of == 20 { 8 } else { 4 };
    let columns = told.columns();
    columns.iter().map(|column| length(column.oid)).collect()
}

/// Writes until the table changes no more. Gives how many rows.
fn play(gateway: &Gateway, writer: usize, changing: &AtomicBool) -> usize {
    let mut client = gateway.client();
    let name = if writer.is_multiple_of(2) { "" } else { "s" };
    let mut prepared = (!name.is_empty()).then(|| prepare(&mut client));
    let mut written = 0;
    while changing.load(Ordering::Relaxed) {
        let answer = write(&mut client, name, writer * 1_000_000 + written);
        match backend::sqlstate(&answer).as_deref() {
            None => written += 1,
            // The rows are others by now.
            Some("0A000") if prepared.is_some() => {
                prepared = Some(prepare(&mut client));
                continue;
            }
            Some(_) => panic!("{answer:?}"),
        }
        let told = answer.iter().find(|message| message.tag == b'T');
        let told = lengths(prepared.as_ref().or(told).unwrap());
        let row = answer.iter().find(|message| message.tag == b'D').unwrap();
        let values = row.values();
        let given: Vec<_> = values.iter().flatten().map(|value| value.len()).collect();
        assert_eq!(given, told, "{answer:?}");
    }
    written
}

#[test]
fn rows_are_those_that_are_told_however_fast_the_table_changes() {
    let gateway = Gateway::start();
    gateway.exec("create table t (id int primary key, v int)");
    let changing = AtomicBool::new(true);
    let total: usize = thread::scope(|scope| {
        let (gateway, changing) = (&gateway, &changing);
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| scope.spawn(move || play(gateway, writer, changing)))
            .collect();
        let mut owner = gateway.direct();
        for change in CHANGES.iter().cycle().take(60) {
            let answer = owner.query(change).unwrap();
            assert_eq!(backend::sqlstate(&answer), None, "{answer:?}");
            if writers.iter().any(|writer| writer.is_finished()) {
                break;
            }
        }
        changing.store(false, Ordering::Relaxed);
        writers
            .into_iter()
            .map(|writer| writer.join().unwrap())
            .sum()
    });
    assert_eq!(gateway.exec("select count(*) from t"), total.to_string());
}

/// Many clients insert and are given whole rows while the table gets one column after the other.
#[test]
fn columns_that_come_while_many_write_are_told_to_each_without_an_error() {
    let gateway = Gateway::start();
    gateway.exec("create table t (id bigint primary key, v int default 5)");
    let changing = AtomicBool::new(true);
    let write = |writer: usize| {
        let mut client = gateway.client();
        let mut written = 0;
        while changing.load(Ordering::Relaxed) || written < 20 {
            let id = writer * 1_000_000 + written;
            let answer = match writer % 2 {
                0 => client.query(&format!("insert into t (id) values ({id}) returning *")),
                _ => insert(&mut client, id),
            };
            let answer = answer.unwrap();
            assert_eq!(backend::sqlstate(&answer), None, "{answer:?}");
            let columns = answer.iter().find(|m| m.tag == b'T').unwrap().columns();
            let row = answer.iter().find(|m| m.tag == b'D').unwrap().values();
            assert_eq!(columns.len(), row.len(), "{answer:?}");
            written += 1;
        }
        written
    };
    let total: usize = thread::scope(|scope| {
        let write = &write;
        let writers: Vec<_> = (0..WRITERS)
            .map(|n| scope.spawn(move || write(n)))
            .collect();
        let rows = || {
            gateway
                .exec("select count(*) from t")
                .parse::<u64>()
                .unwrap()
        };
        for n in 0..7 {
            // Each change comes while all of them write.
            let seen = rows();
            while rows() < seen + 100 && writers.iter().all(|writer| !writer.is_finished()) {
                thread::yield_now();
            }
            gateway.exec(&format!("alter table t add column x{n} int default {n}"));
        }
        changing.store(false, Ordering::Relaxed);
        writers
            .into_iter()
            .map(|writer| writer.join().unwrap())
            .sum()
    });
    assert_eq!(gateway.exec("select count(*) from t"), total.to_string());
    assert_eq!(
        gateway.exec("select count(*) from t where v = 5 and x6 = 6"),
        total.to_string()
    );
}

fn insert(client: &mut Client, id: usize) -> anyhow::Result<Vec<Message>> {
    let mut out = Vec::new();
    frontend::parse(
        &mut out,
        "",
        "insert into t (id) values ($1) returning *",
        &[],
    );
    frontend::bind(&mut out, ("", ""), &[], &[Some(id.to_string())], &[]);
    frontend::describe(&mut out, b'P', "");
    frontend::execute(&mut out, "", 0);
    frontend::sync(&mut out);
    client.send(&out)?;
    client.until_ready()
}
