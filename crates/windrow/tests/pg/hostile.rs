//! Clients that send what no client should: the program lives, serves others, and its memory is
//! bounded.

use std::net::Shutdown;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use windrow_testkit::pgclient::{Client, backend, frontend};

use crate::load::TABLE;
use crate::support::Gateway;

/// Resident memory, in MiB, that no test here may exceed.
const MOST: u64 = 300;

/// Others are served, and memory is bounded.
fn is_well(gateway: &Gateway) {
    let answer = gateway.client().query("select 40 + 2").unwrap();
    assert_eq!(
        backend::first_value(&answer).as_deref(),
        Some("42"),
        "{answer:?}"
    );
    let resident = gateway.windrow.resident_bytes().unwrap() >> 20;
    assert!(resident < MOST, "{resident} MiB are resident");
    let log = gateway.windrow.log();
    assert!(!log.contains("panicked"), "{log}");
}

/// Sends bytes over a new connection, says that nothing more will come, and waits until the other
/// side has closed it.
fn first_bytes(gateway: &Gateway, bytes: &[u8]) -> Vec<u8> {
    let mut client = Client::open(gateway.address.socket).unwrap();
    // It may have closed before all was sent.
    client.send(bytes).ok();
    until_closed(&mut client)
}

/// The tags of all that comes until the connection is closed, which it is at once where the client
/// says no more.
fn until_closed(client: &mut Client) -> Vec<u8> {
    client.stream().shutdown(Shutdown::Write).ok();
    let mut tags = Vec::new();
    while let Some(message) = client.receive().unwrap() {
        tags.push(message.tag);
    }
    tags
}

/// The tags of all that a client gets that sends these bytes and says no more.
fn told(mut client: Client, bytes: &[u8]) -> Vec<u8> {
    client.send(bytes).unwrap();
    until_closed(&mut client)
}

fn packet(code: u32, rest: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frontend::bare(&mut out, |body| {
        body.extend_from_slice(&code.to_be_bytes());
        body.extend_from_slice(rest);
    });
    out
}

#[test]
fn garbage_at_the_start() {
    let gateway = Gateway::start();
    let mut good = Vec::new();
    frontend::startup(&mut good, &[("user", "windrow")]);
    let long = "x".repeat(20_000);
    let cases: Vec<Vec<u8>> = vec![
        Vec::new(),
        vec![0],
        vec![0; 4],
        vec![0, 0, 0, 3, 0, 0, 0, 0],
        vec![255; 8],
        vec![127, 255, 255, 255, 0, 3, 0, 0],
        packet(0, b""),
        packet(131_072, b"user\0windrow\0\0"),
        packet(frontend::PROTOCOL, b""),
        packet(frontend::PROTOCOL, b"\0"),
        packet(frontend::PROTOCOL, b"user"),
        packet(frontend::PROTOCOL, b"user\0windrow"),
        packet(frontend::PROTOCOL, b"user\0windrow\0database"),
        packet(frontend::PROTOCOL, b"database\0x\0\0"),
        packet(frontend::PROTOCOL, b"user\0\0\0"),
        packet(frontend::PROTOCOL, b"user\0\xff\xfe\0\0"),
        packet(frontend::PROTOCOL, format!("user\0{long}\0\0").as_bytes()),
        packet(frontend::PROTOCOL, b"user\0windrow\0replication\0true\0\0"),
        packet(80_877_102, b""),
        packet(80_877_102, &[0; 8]),
        packet(80_877_102, &[0; 5000]),
        [packet(80_877_103, b""), packet(80_877_103, b"")].concat(),
        [packet(80_877_104, b""), good.clone()].concat(),
        good[..good.len() - 3].to_vec(),
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
    ];
    for case in &cases {
        let tags = first_bytes(&gateway, case);
        assert!(!tags.contains(&b'Z'), "{case:?} was let in");
    }
    is_well(&gateway);
}

#[test]
fn garbage_of_all_kinds() {
    let gateway = Gateway::start();
    gateway.exec(TABLE);
    let config = Config {
        cases: 200,
        failure_persistence: None,
        ..Config::default()
    };
    let tags = prop_oneof![
        4 => proptest::sample::select(&b"QPBDEHSCXFpdcf"[..]),
        1 => any::<u8>(),
    ];
    let message = (
        tags,
        proptest::collection::vec(any::<u8>(), 0..60),
        0_u8..20,
    );
    let messages = (any::<bool>(), proptest::collection::vec(message, 1..20));
    let result = TestRunner::new(config).run(&messages, |(login, messages)| {
        let mut out = Vec::new();
        for (tag, body, length) in &messages {
            frontend::message(&mut out, *tag, |out| out.extend_from_slice(body));
            if *length == 0 {
                // The length says something else.
                let at = out.len() - body.len() - 2;
                out[at] ^= 5;
            }
        }
        let opened = match login {
            true => Client::connect(&gateway.address),
            false => Client::open(gateway.address.socket),
        };
        let mut client = opened.unwrap();
        client.send(&out).ok();
        until_closed(&mut client);
        Ok(())
    });
    result.unwrap();
    is_well(&gateway);
}

/// Messages whose contents do not hold together are refused by themselves or end the session.
#[test]
fn messages_that_are_not_what_they_say() {
    let gateway = Gateway::start();
    gateway.exec(TABLE);
    let many = [&b"\0\0\0\0"[..], &u16::MAX.to_be_bytes(), &[255; 40]].concat();
    let cases: [(u8, &[u8]); 16] = [
        (b'P', b"name"),
        (b'P', b"\0insert into readings values (1)\0\xff\xff\0\0"),
        (b'P', b"\0select 1\0\0\x01\0\0\0\0trailing"),
        (b'B', b"\0\0\0\x01"),
        (b'B', &many),
        (b'B', b"\0\0\0\0\0\x01\x7f\xff\xff\xff\0"),
        (b'B', b"\0\0\0\0\0\x01\xff\xff\xff\xf0\0\0"),
        (b'B', b"\0\0\0\x01\0\x07\0\0\0\0"),
        (b'D', b""),
        (b'D', b"X\0"),
        (b'D', b"Sunterminated"),
        (b'E', b"\0"),
        (b'E', b"\0\xff\xff\xff\xff"),
        (b'C', b"?"),
        (b'Q', b"select 1"),
        (b'Q', b"select '\xff\xfe'\0"),
    ];
    for (tag, body) in cases {
        let mut out = Vec::new();
        frontend::message(&mut out, tag, |out| out.extend_from_slice(body));
        frontend::sync(&mut out);
        let tags = told(gateway.client(), &out);
        assert!(
            tags.contains(&b'E'),
            "{} {body:?}: {tags:?}",
            char::from(tag)
        );
    }
    let mut direct = gateway.direct();
    let answer = direct.query("select count(*) from readings").unwrap();
    assert_eq!(backend::first_value(&answer).as_deref(), Some("0"));
    is_well(&gateway);
}

/// Behind an error the server passes over everything up to a Sync. Who leaves without one keeps
/// nothing, and is told nothing that the server would not have told; the last of it may be missing.
#[test]
fn what_is_passed_over_keeps_nobody() {
    let gateway = Gateway::start();
    gateway.exec(TABLE);
    let unreadable: [(u8, &[u8]); 7] = [
        (b'H', b"body"),
        (b'P', b"name"),
        (b'B', b"\0\0\0\x01"),
        (b'D', b"X\0"),
        (b'E', b"\0"),
        (b'C', b"?"),
        (b'S', b"body"),
    ];
    let behind: [(u8, &[u8]); 6] = [
        (b'F', b""),
        (b'Q', b"select 1\0"),
        (b'H', b""),
        (b'H', b"body"),
        (b'c', b""),
        (b'f', b"no more\0"),
    ];
    for (tag, body) in unreadable {
        for (next, rest) in behind {
            let mut out = Vec::new();
            frontend::message(&mut out, tag, |out| out.extend_from_slice(body));
            frontend::message(&mut out, next, |out| out.extend_from_slice(rest));
            let case = (char::from(tag), char::from(next));
            let through = told(gateway.client(), &out);
            let direct = told(gateway.direct(), &out);
            assert!(direct.starts_with(&through), "{case:?}: {through:?}");
        }
    }
    is_well(&gateway);
}

#[test]
fn oversized_lengths_and_silence() {
    let gateway = Gateway::start();
    let mut held = Vec::new();
    for length in [0_u32, 3, 0x0fff_ffff, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
        for tag in *b"QPBdpX" {
            let mut client = gateway.client();
            client
                .send(&[&[tag][..], &length.to_be_bytes(), b"some"].concat())
                .unwrap();
            held.push(client);
        }
    }
    // Half a message, half a startup packet, half a login.
    for n in 0..200 {
        let mut client = match n % 2 {
            0 => gateway.client(),
            _ => Client::open(gateway.address.socket).unwrap(),
        };
        client.send(b"\0\0").unwrap();
        held.push(client);
    }
    is_well(&gateway);
    drop(held);
    is_well(&gateway);
}

/// COPY data that nobody asked for is thrown away; COPY data that was asked for is not kept.
#[test]
fn endless_copy_data() {
    let gateway = Gateway::start();
    gateway.exec("create table lines (line text)");
    let mut client = gateway.client();
    let mut chunk = Vec::new();
    let line = [&[b'x'; 65_000][..], b"\n"].concat();
    frontend::copy_data(&mut chunk, &line);
    for _ in 0..1_000 {
        client.send(&chunk).unwrap();
    }
    let answer = client.query("select 1").unwrap();
    assert_eq!(
        backend::first_value(&answer).as_deref(),
        Some("1"),
        "{answer:?}"
    );
    let mut out = Vec::new();
    frontend::query(&mut out, "copy lines from stdin");
    client.send(&out).unwrap();
    assert_eq!(client.receive().unwrap().unwrap().tag, b'G');
    for _ in 0..1_000 {
        client.send(&chunk).unwrap();
    }
    is_well(&gateway);
    out.clear();
    frontend::copy_done(&mut out);
    client.send(&out).unwrap();
    let answer = client.until_ready().unwrap();
    assert_eq!(
        answer[0].command().as_deref(),
        Some("COPY 1000"),
        "{answer:?}"
    );
    is_well(&gateway);
}

#[test]
fn a_hundred_thousand_prepared_statements() {
    let gateway = Gateway::start();
    gateway.exec(TABLE);
    let mut client = gateway.client();
    for round in 0..100 {
        let mut out = Vec::new();
        for n in 0..1_000 {
            let name = format!("s{}", round * 1_000 + n);
            let sql = format!("insert into readings (id, note) values ($1, 'n{n}')");
            frontend::parse(&mut out, &name, &sql, &[]);
        }
        frontend::sync(&mut out);
        client.send(&out).unwrap();
        let answer = client.until_ready().unwrap();
        assert_eq!(answer.last().unwrap().tag, b'Z');
    }
    is_well(&gateway);
    drop(client);
    is_well(&gateway);
}

/// As many values as a message can hold, in a statement that is joined and in one that is not.
#[test]
fn as_many_values_as_there_can_be() {
    let gateway = Gateway::start();
    gateway.exec("create table wide (list int[])");
    let places: Vec<_> = (1..=65_535).map(|n| format!("${n}::int")).collect();
    let values: Vec<_> = (0..65_535).map(|n| Some(n.to_string())).collect();
    for sql in [
        format!(
            "insert into wide (list) values (array[{}])",
            places.join(",")
        ),
        format!("select cardinality(array[{}])", places.join(",")),
    ] {
        let mut out = Vec::new();
        frontend::parse(&mut out, "", &sql, &[]);
        frontend::bind(&mut out, ("", ""), &[], &values, &[]);
        frontend::execute(&mut out, "", 0);
        frontend::sync(&mut out);
        let mut client = gateway.client();
        client.send(&out).unwrap();
        let answer = client.until_ready().unwrap();
        assert_eq!(backend::sqlstate(&answer), None, "{:?}", answer.last());
    }
    assert_eq!(gateway.exec("select cardinality(list) from wide"), "65535");
    is_well(&gateway);
}

/// Texts that are deep or long: whatever the server says of them is what the client is told.
#[test]
fn deep_and_long_texts() {
    let gateway = Gateway::start();
    gateway.exec(TABLE);
    for depth in [100, 3_000, 10_000] {
        let texts = [
            format!(
                "insert into readings (id) values ({}1{})",
                "(".repeat(depth),
                ")".repeat(depth)
            ),
            format!(
                "insert into readings (id) values (2{})",
                " + 0".repeat(depth)
            ),
            format!(
                "insert into readings (id) values ({}3)",
                "- ".repeat(depth & !1)
            ),
            format!(
                "insert into readings (id, note) values (4, {}null is null)",
                "not ".repeat(depth)
            ),
            format!(
                "insert into readings (id) values (case when true then {} 5 {} end)",
                "case when true then ".repeat(depth),
                "end ".repeat(depth)
            ),
            format!("select {}1{}", "array[".repeat(depth), "]".repeat(depth)),
            format!("select {}1{}", "(select ".repeat(depth), ")".repeat(depth)),
            format!(
                "update readings set note = 'x' where id = 1{}",
                " and id = 1".repeat(depth)
            ),
            format!(
                "insert into readings (id) values (6){}",
                ", (6)".repeat(depth)
            ),
            format!("/*{}*/ select 1", "/*".repeat(depth)),
            format!(
                "insert into readings (id, note) values (7, '{}')",
                "x".repeat(depth * 10)
            ),
            "select 1;".repeat(depth),
        ];
        for sql in &texts {
            gateway.exec("truncate readings");
            let expected = gateway.direct().query(sql).unwrap();
            gateway.exec("truncate readings");
            let answer = gateway.client().query(sql).unwrap();
            let start: String = sql.chars().take(60).collect();
            assert_eq!(
                backend::sqlstate(&answer),
                backend::sqlstate(&expected),
                "{depth} {start}"
            );
            assert_eq!(answer.len(), expected.len(), "{depth} {start}");
        }
    }
    is_well(&gateway);
}

/// A thousand connections that say nothing, while others come and go.
#[test]
fn a_flood_of_connections() {
    let gateway = Gateway::start();
    let silent: Vec<_> = (0..1_000)
        .map(|_| Client::open(gateway.address.socket).unwrap())
        .collect();
    is_well(&gateway);
    for _ in 0..300 {
        Client::open(gateway.address.socket).unwrap();
    }
    is_well(&gateway);
    drop(silent);
}
