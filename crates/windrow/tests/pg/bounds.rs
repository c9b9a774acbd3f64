//! What clients and the database do bounds neither memory nor the end: these are bounded all the
//! same.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::{self, JoinHandle};

use windrow_testkit::command::until;
use windrow_testkit::pgclient::{Client, Message, backend, frontend};
use windrow_testkit::postgres::Postgres;
use windrow_testkit::procfs;

use crate::load::TABLE;
use crate::support::Gateway;

/// The budget of these tests, and what resident memory may be above it, in MiB.
const BUDGET: u64 = 64;
const ABOVE: u64 = 64;

fn small() -> Gateway {
    let gateway = Gateway::with(
        Postgres::builder().set("max_connections", "80"),
        &["--memory", "64MiB"],
    );
    gateway.exec(TABLE);
    gateway.exec("alter table readings alter note set storage external");
    gateway
}

/// Each of these clients inserts a row of so many bytes, and stays.
fn inserts(clients: Vec<Client>, bytes: usize) -> Vec<JoinHandle<(Client, Vec<Message>)>> {
    let insert = |(id, mut client): (usize, Client)| {
        thread::spawn(move || {
            let note = "x".repeat(bytes);
            let sql = format!("insert into readings (id, note) values ({id}, '{note}')");
            let answer = client.query(&sql).unwrap();
            (client, answer)
        })
    };
    clients.into_iter().enumerate().map(insert).collect()
}

fn peak_is_bounded(gateway: &Gateway) {
    let peak = procfs::peak_resident_bytes(gateway.windrow.pid()).unwrap() >> 20;
    assert!(peak < BUDGET + ABOVE, "{peak} MiB were resident");
}

/// Half of the budget is what long messages may have: more of them than that wait, and none of what
/// waits is held twice.
#[test]
fn long_messages_of_many_stay_within_the_budget() {
    let gateway = small();
    let clients = (0..60).map(|_| gateway.client()).collect();
    let mut staying = Vec::new();
    for client in inserts(clients, 3_000_000) {
        let (client, answer) = client.join().unwrap();
        assert_eq!(backend::sqlstate(&answer), None, "{:?}", answer.last());
        staying.push(client);
    }
    assert_eq!(gateway.exec("select count(*) from readings"), "60");
    peak_is_bounded(&gateway);
}

#[test]
fn a_text_of_many_tokens_takes_little_memory() {
    let gateway = small();
    let mut client = gateway.client();
    let columns = "a,".repeat(4_000_000);
    let answer = client.query(&format!("insert into readings ({columns}a) values (1)"));
    assert_eq!(
        backend::sqlstate(&answer.unwrap()).as_deref(),
        Some("42703")
    );
    let rows = "(0, 'a'), ".repeat(700_000);
    let answer = client.query(&format!(
        "insert into readings (id, note) values {rows} (0, 'a')"
    ));
    assert_eq!(
        backend::sqlstate(&answer.unwrap()).as_deref(),
        Some("23505")
    );
    peak_is_bounded(&gateway);
}

#[test]
fn a_database_that_stands_still_fills_no_memory() {
    let gateway = small();
    // Its lane is there.
    gateway
        .client()
        .query("insert into readings (id) values (-1)")
        .unwrap();
    let waiting: Vec<Client> = (0..300).map(|_| gateway.client()).collect();
    gateway.server.pause().unwrap();
    let clients = inserts(waiting, 400_000);
    until("memory is taken", || held(&gateway) > (16 << 20));
    // Those who wait for ten seconds in vain are told so: after that nothing changes any more.
    until("some are told", || {
        clients.iter().any(JoinHandle::is_finished)
    });
    peak_is_bounded(&gateway);
    gateway.server.resume();
    let (mut written, mut staying) = (0, Vec::new());
    for client in clients {
        let (client, answer) = client.join().unwrap();
        staying.push(client);
        match backend::sqlstate(&answer).as_deref() {
            None => written += 1,
            Some(code) => assert_eq!(code, "53200", "{:?}", answer.last()),
        }
    }
    let there = gateway.exec("select count(*) from readings where id >= 0");
    assert_eq!(there, written.to_string());
    peak_is_bounded(&gateway);
}

/// A part of a head is charged to nobody, so the number of such connections is bounded.
#[test]
fn unfinished_heads_take_little_and_keep_nobody_out() {
    let gateway = Gateway::with(Postgres::builder(), &["--memory", "16MiB"]);
    gateway.exec(TABLE);
    let half = format!(
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: {}",
        "x".repeat(9_000)
    );
    let halves: Vec<TcpStream> = (0..3_000)
        .map(|_| {
            let mut half_open = TcpStream::connect(gateway.windrow.address()).unwrap();
            half_open.write_all(half.as_bytes()).unwrap();
            half_open
        })
        .collect();
    held(&gateway);
    let mut row = TcpStream::connect(gateway.windrow.address()).unwrap();
    let post = "POST /v1/tables/readings/rows HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 8\r\nConnection: close\r\n\r\n{\"id\":1}";
    row.write_all(post.as_bytes()).unwrap();
    let mut answer = String::new();
    row.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    let peak = procfs::peak_resident_bytes(gateway.windrow.pid()).unwrap() >> 20;
    assert!(peak < 16 + ABOVE, "{peak} MiB were resident");
    drop(halves);
}

/// Bytes of the budget that are taken.
fn held(gateway: &Gateway) -> u64 {
    let mut stream = TcpStream::connect(gateway.windrow.address()).unwrap();
    let ask = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(ask.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let mut lines = text.lines();
    let held = lines.find_map(|line| line.strip_prefix("windrow_memory_held_bytes "));
    held.unwrap().trim().parse().unwrap()
}

/// What clients may be doing at the end.
fn bad_states(gateway: &Gateway) -> Vec<Client> {
    let client = || gateway.client();
    let begin = |sql: &str| {
        let mut client = client();
        let mut out = Vec::new();
        frontend::query(&mut out, sql);
        client.send(&out).unwrap();
        client
    };
    let half = |mut client: Client, bytes: &[u8]| {
        client.send(bytes).unwrap();
        client
    };
    let raw = || Client::open(gateway.address.socket).unwrap();
    let http = || Client::open(gateway.windrow.address()).unwrap();
    let head = "POST /v1/tables/readings/rows HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n";
    let body = format!("{head}{{\"note\":\"{}", "x".repeat(100_000));
    let ask = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(2_000);
    let mut message = vec![b'Q', 0, 16, 0, 0];
    message.resize(100_000, b' ');
    let mut parsed = Vec::new();
    frontend::parse(
        &mut parsed,
        "",
        "insert into readings (id) values ($1)",
        &[],
    );
    frontend::bind(&mut parsed, ("", ""), &[], &[Some("5")], &[]);
    let mut idle = client();
    idle.query("begin").unwrap();
    idle.query("select 1").unwrap();
    vec![
        client(),
        raw(),
        http(),
        half(raw(), &[0, 0, 0, 90, 0]),
        half(client(), &message),
        half(client(), &parsed),
        half(http(), b"POST /v1/tab"),
        half(http(), body.as_bytes()),
        half(http(), ask.as_bytes()),
        begin("select repeat('x', 1000) from generate_series(1, 100000)"),
        begin("update readings set note = 'y' where id = 1"),
        begin("select pg_sleep(1000)"),
        begin("copy readings (note) from stdin"),
        idle,
    ]
}

/// Bounded by `stop_wait`, and by nothing that others do.
#[test]
fn the_end_comes_whatever_clients_do() {
    for stalled in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("windrow.toml");
        std::fs::write(&path, "[limits]\nstop_wait = '2s'\n").unwrap();
        let mut gateway = Gateway::with(
            Postgres::builder().set("max_connections", "200"),
            &["--config", path.to_str().unwrap()],
        );
        gateway.exec(TABLE);
        gateway.exec("insert into readings values (1, 'x')");
        let mut holder = gateway.direct();
        holder.query("begin").unwrap();
        holder.query("select * from readings for update").unwrap();
        let mut clients: Vec<_> = (0..8).flat_map(|_| bad_states(&gateway)).collect();
        if stalled {
            gateway.server.pause().unwrap();
            for id in 0..50 {
                let mut client = Client::open(gateway.address.socket).unwrap();
                let mut out = Vec::new();
                frontend::startup(&mut out, &[("user", "nobody"), ("database", "none")]);
                frontend::query(
                    &mut out,
                    &format!("insert into readings values ({id}, 'z')"),
                );
                client.send(&out).unwrap();
                clients.push(client);
            }
        }
        gateway.windrow.terminate().unwrap();
        let status = gateway.windrow.wait().unwrap();
        let log = gateway.windrow.log();
        // Somebody is never done here, and that is said.
        assert!(!status.success(), "{log}");
        assert!(log.contains("limits.stop_wait"), "{log}");
        gateway.server.resume();
        drop(clients);
    }
}
