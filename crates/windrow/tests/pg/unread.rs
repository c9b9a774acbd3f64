//! Clients that ask for long answers and never read them: what waits for them is bounded, and
//! others are served meanwhile.

use std::io::{Read, Write};
use std::net::TcpStream;

use windrow_testkit::command::until;
use windrow_testkit::pgclient::{Client, backend, frontend};
use windrow_testkit::postgres::Postgres;
use windrow_testkit::procfs;

use crate::load::TABLE;
use crate::support::{Gateway, TEST_TIMEOUT};

/// The budget of these tests, and what resident memory may be above it, in MiB: what the program
/// takes itself, and what its allocator has not given back yet. Uncounted, answers took thousands.
const BUDGET: u64 = 64;
const ABOVE: u64 = 192;

/// The room for answers that a budget of that size has, in bytes.
const ROOM: u64 = (BUDGET << 20) / 4;

/// A long answer, in bytes.
const LONG: usize = 1 << 20;

/// Writes that each client asks for at once.
const PIPELINED: usize = 50;

/// Rows of each good client.
const GOOD: usize = 300;

fn small() -> Gateway {
    let gateway = Gateway::with(
        Postgres::builder().set("max_connections", "80"),
        &["--memory", "64MiB"],
    );
    gateway.exec(TABLE);
    gateway
}

fn insert(id: usize) -> String {
    format!("insert into readings (id, note) values ({id}, repeat('x', {LONG})) returning note")
}

/// A client that has asked for many long answers, of which it has read nothing so far.
fn asks(gateway: &Gateway, number: usize) -> Client {
    let mut client = gateway.client();
    let mut out = Vec::new();
    for id in 0..PIPELINED {
        frontend::query(&mut out, &insert(number * PIPELINED + id));
    }
    client.send(&out).unwrap();
    client
}

/// A figure of the program.
fn figure(gateway: &Gateway, name: &str) -> u64 {
    let text = http(gateway, "/metrics");
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap().trim().parse().unwrap()
}

/// Asks by GET; the answer with its head.
pub fn http(gateway: &Gateway, path: &str) -> String {
    let mut stream = asks_http(gateway, path, "close");
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

fn asks_http(gateway: &Gateway, path: &str, connection: &str) -> TcpStream {
    let mut stream = TcpStream::connect(gateway.windrow.address()).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    let ask = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: {connection}\r\n\r\n");
    stream.write_all(ask.as_bytes()).unwrap();
    stream
}

fn is_bounded(gateway: &Gateway) {
    let held = figure(gateway, "windrow_answers_held_bytes");
    assert!(held < 2 * ROOM, "{held} bytes are counted");
    let peak = procfs::peak_resident_bytes(gateway.windrow.pid()).unwrap() >> 20;
    assert!(peak < BUDGET + ABOVE, "{peak} MiB were resident");
}

/// Who reads is answered: short answers and long ones, each once, and in order.
fn others_are_served(gateway: &Gateway, number: usize) {
    let short = "insert into readings (id) values (-1) returning id";
    let answer = gateway.client().query(short).unwrap();
    assert_eq!(backend::first_value(&answer).as_deref(), Some("-1"));
    let first = number * PIPELINED;
    let mut client = asks(gateway, number);
    for id in first..first + PIPELINED {
        let answer = client.until_ready().unwrap();
        let value = backend::first_value(&answer);
        let length = value.as_ref().map(String::len);
        assert_eq!(length, Some(LONG), "{id}: {:?}", answer.last());
    }
    let range = format!("id between {first} and {}", first + PIPELINED - 1);
    let count = format!("select count(*), count(distinct id) from readings where {range}");
    assert_eq!(gateway.exec(&count), format!("{PIPELINED}|{PIPELINED}"));
}

#[test]
fn writes_whose_rows_nobody_reads_are_bounded() {
    let gateway = small();
    let unread: Vec<Client> = (0..60).map(|number| asks(&gateway, number)).collect();
    let held = || figure(&gateway, "windrow_answers_held_bytes");
    until("the room is full", || held() > ROOM - (4 << 20));
    others_are_served(&gateway, 60);
    is_bounded(&gateway);
    let twice = "select count(*) - count(distinct id) from readings";
    assert_eq!(gateway.exec(twice), "0");
    drop(unread);
    until("the room is given back", || held() == 0);
}

/// Good clients on a table of their own go on, and no row of theirs waits in one transaction with a
/// long answer.
#[test]
fn rows_with_short_answers_share_nothing_with_unread_ones() {
    good_clients_go_on("short");
}

/// Answers that are counted, and a hundredth of the unread ones.
#[test]
fn rows_with_answers_of_some_length_do_not_wait_for_unread_ones() {
    good_clients_go_on(&"medium".repeat(LONG / 100 / 6));
}

fn good_clients_go_on(note: &str) {
    let gateway = small();
    gateway.exec("create table good (id int primary key, note text)");
    // How long its answers are is known from here on.
    goes_on(gateway.client(), 8, note);
    let mut unread = Vec::new();
    std::thread::scope(|threads| {
        let good: Vec<_> = (0..8)
            .map(|number| {
                let client = gateway.client();
                threads.spawn(move || goes_on(client, number, note))
            })
            .collect();
        unread.extend((100..140).map(|number| asks(&gateway, number)));
        let held = || figure(&gateway, "windrow_answers_held_bytes");
        until("the room is full", || held() > ROOM - (4 << 20));
        good.into_iter().for_each(|good| good.join().unwrap());
    });
    let rows = "select count(*) from good";
    assert_eq!(gateway.exec(rows), (9 * GOOD).to_string());
    // The first of a client may leave before the lane knows that others write.
    let shared = format!(
        "select count(*) from good, readings where good.xmin = readings.xmin and readings.id % {PIPELINED} > 0"
    );
    assert_eq!(gateway.exec(&shared), "0");
}

/// Writes some rows, each behind the answer to the one before.
fn goes_on(mut client: Client, number: usize, note: &str) {
    for id in number * GOOD..(number + 1) * GOOD {
        let text = format!("insert into good values ({id}, '{note}') returning note");
        let answer = client.query(&text).unwrap();
        assert_eq!(backend::first_value(&answer).as_deref(), Some(note));
    }
}

#[test]
fn rows_over_http_that_nobody_reads_are_bounded() {
    let gateway = small();
    gateway.exec(&format!(
        "insert into readings (id, note) values (1, repeat('x', {LONG}))"
    ));
    let path = "/v1/tables/readings/rows/1";
    let held = || figure(&gateway, "windrow_answers_held_bytes");
    let mut unread = Vec::new();
    for _ in 0..120 {
        unread.push(asks_http(&gateway, path, "keep-alive"));
    }
    until("the room is full", || held() > ROOM - (4 << 20));
    let told = http(&gateway, path);
    assert!(told.starts_with("HTTP/1.1 200"), "{told:.200}");
    assert!(told.len() > LONG, "{} bytes", told.len());
    others_are_served(&gateway, 1);
    is_bounded(&gateway);
    drop(unread);
    until("the room is given back", || held() == 0);
}
