//! Keys that all clients fight for: whoever wins, there is exactly one winner, and nothing is
//! counted twice.

use std::thread;

use windrow_testkit::pgclient::{Client, Message, backend, frontend};

use super::schema;
use crate::support::Gateway;

const CLIENTS: u32 = 12;
const KEYS: u32 = 40;

/// One prepared call of a text; the answer.
fn call(client: &mut Client, sql: &str, values: &[String]) -> Vec<Message> {
    let mut out = Vec::new();
    frontend::parse(&mut out, "", sql, &[]);
    let values: Vec<_> = values.iter().map(Some).collect();
    frontend::bind(&mut out, ("", ""), &[], &values, &[]);
    frontend::execute(&mut out, "", 0);
    frontend::sync(&mut out);
    client.send(&out).unwrap();
    client.until_ready().unwrap()
}

/// The row count of the command; `None` for an error.
fn rows(answer: &[Message]) -> Option<u32> {
    let command = answer.iter().find_map(Message::command)?;
    command.rsplit(' ').next()?.parse().ok()
}

/// Runs the same for every client at once, and gives what all of them counted.
fn everybody<T: Send>(gateway: &Gateway, part: impl Fn(&mut Client, u32) -> T + Sync) -> Vec<T> {
    let part = &part;
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|n| scope.spawn(move || part(&mut gateway.client(), n)))
            .collect();
        clients.into_iter().map(|c| c.join().unwrap()).collect()
    })
}

#[test]
fn one_client_wins_a_key() {
    let gateway = Gateway::start();
    schema::copies(&gateway.server, &gateway.direct);
    let won = everybody(&gateway, |client, n| {
        let insert = "insert into plain (id, owner) values ($1, $2)";
        let mut won = 0;
        for key in 0..KEYS {
            let answer = call(client, insert, &[key.to_string(), n.to_string()]);
            match backend::sqlstate(&answer).as_deref() {
                None => won += rows(&answer).unwrap(),
                Some("23505") => {}
                Some(other) => panic!("{other}: {answer:?}"),
            }
        }
        won
    });
    assert_eq!(won.iter().sum::<u32>(), KEYS, "{won:?}");
    for (n, won) in (0..CLIENTS).zip(&won) {
        let there = gateway.exec(&format!("select count(*) from plain where owner = {n}"));
        assert_eq!(
            there,
            won.to_string(),
            "client {n} has the rows that it was told of"
        );
    }
    let deleted = everybody(&gateway, |client, _| {
        let delete = "delete from plain where id = $1";
        let rows = (0..KEYS).map(|key| rows(&call(client, delete, &[key.to_string()])).unwrap());
        rows.sum::<u32>()
    });
    assert_eq!(deleted.iter().sum::<u32>(), KEYS, "{deleted:?}");
}

#[test]
fn counters_add_up() {
    let gateway = Gateway::start();
    schema::copies(&gateway.server, &gateway.direct);
    const TIMES: u32 = 30;
    let upsert = "insert into counters as c (name, n) values ($1, 1) on conflict (name) do update set n = c.n + 1 returning n";
    let update = "update counters set n = n + 1 where name = $1 returning n";
    let seen = everybody(&gateway, |client, _| {
        let texts = [upsert, update]
            .into_iter()
            .cycle()
            .take(2 * TIMES as usize);
        let answers = texts.map(|sql| call(client, sql, &["one".into()]));
        let numbers = answers.map(|a| backend::first_value(&a).unwrap().parse::<u32>().unwrap());
        numbers.collect::<Vec<_>>()
    });
    for own in &seen {
        assert!(
            own.is_sorted_by(|a, b| a < b),
            "each client sees it grow: {own:?}"
        );
    }
    let mut all: Vec<u32> = seen.into_iter().flatten().collect();
    all.sort_unstable();
    let expected: Vec<u32> = (1..=2 * TIMES * CLIENTS).collect();
    assert_eq!(all, expected, "every value was told to one client");
    assert_eq!(
        gateway.exec("select n from counters"),
        expected.len().to_string()
    );
}
