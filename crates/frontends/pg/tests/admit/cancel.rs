//! Cancel requests.

use std::io::Write;

use windrow_testkit::pgclient::{Address, backend, frontend};
use windrow_testkit::postgres::shared;

use crate::support::{Stand, config, packet, receive, until};

#[test]
fn only_who_knows_the_secret_interrupts() {
    let database = shared().unwrap();
    let role = Address::of(database.url()).unwrap().role;
    let stand = Stand::new(config(database.url()));
    let (mut one, mut two) = (stand.client(&role, "app"), stand.client(&role, "app"));
    let sleep = |client: &mut windrow_testkit::pgclient::Client| {
        let mut out = Vec::new();
        frontend::query(&mut out, "select pg_sleep(600)");
        client.send(&out).unwrap();
    };
    sleep(&mut one);
    sleep(&mut two);
    until("both sleep", || {
        database.exec("select count(*) from pg_stat_activity where query like 'select pg_sleep(%' and state = 'active' and datname = current_database()").unwrap() == "2"
    });
    let key = one.cancel_key().unwrap().to_vec();
    for at in 0..8 {
        let mut wrong = key.clone();
        wrong[at] ^= 1;
        let mut out = Vec::new();
        frontend::cancel(&mut out, &wrong);
        let mut socket = stand.socket();
        socket.write_all(&out).unwrap();
        assert!(crate::support::rest(&mut socket).is_empty());
    }
    one.cancel().unwrap();
    let answer = one.until_ready().unwrap();
    assert_eq!(backend::sqlstate(&answer).as_deref(), Some("57014"));
    // The other one sleeps on.
    assert_eq!(
        database.exec("select count(*) from pg_stat_activity where query like 'select pg_sleep(%' and state = 'active' and datname = current_database()").unwrap(),
        "1"
    );
    two.cancel().unwrap();
    assert_eq!(
        backend::sqlstate(&two.until_ready().unwrap()).as_deref(),
        Some("57014")
    );
    assert_eq!(stand.count("windrow_pg_cancels_total"), 10);
    // Who is idle is not disturbed.
    one.cancel().unwrap();
    let answer = one.query("select 7").unwrap();
    assert_eq!(backend::first_value(&answer).as_deref(), Some("7"));
}

#[test]
fn clients_of_protocol_3_2_get_longer_keys() {
    let database = shared().unwrap();
    let role = Address::of(database.url()).unwrap().role;
    let stand = Stand::new(config(database.url()));
    let text = format!("\0\x03\0\x02user\0{role}\0database\0app\0\0");
    let mut socket = stand.socket();
    socket.write_all(&packet(text.as_bytes())).unwrap();
    let mut key = Vec::new();
    loop {
        let message = receive(&mut socket);
        match message.tag {
            b'K' => key = message.body,
            b'Z' => break,
            _ => {}
        }
    }
    assert_eq!(key.len(), 4 + 32);
    let mut out = Vec::new();
    frontend::query(&mut out, "select pg_sleep(600)");
    socket.write_all(&out).unwrap();
    let sleeping = "select count(*) from pg_stat_activity where query like 'select pg_sleep(%' and state = 'active' and datname = current_database()";
    until("it sleeps", || database.exec(sleeping).unwrap() == "1");
    // The beginning of a key is none.
    for key in [&key[..8], &key] {
        assert_eq!(database.exec(sleeping).unwrap(), "1");
        let mut out = Vec::new();
        frontend::cancel(&mut out, key);
        let mut other = stand.socket();
        other.write_all(&out).unwrap();
        assert!(crate::support::rest(&mut other).is_empty());
    }
    let mut answer = vec![receive(&mut socket)];
    while answer.last().is_some_and(|last| last.tag != b'Z') {
        answer.push(receive(&mut socket));
    }
    assert_eq!(backend::sqlstate(&answer).as_deref(), Some("57014"));
}
