//! Many who want nothing good.

use std::io::Write;

use rand::RngExt;
use windrow_testkit::pgclient::Address;
use windrow_testkit::postgres::shared;

use crate::support::{Stand, config, rest, until};

#[test]
fn whoever_says_nothing_keeps_nobody_out() {
    let database = shared().unwrap();
    let role = Address::of(database.url()).unwrap().role;
    let stand = Stand::new(config(database.url()));
    let silent: Vec<_> = (0..500).map(|_| stand.socket()).collect();
    let mut client = stand.client(&role, "app");
    assert_eq!(client.query("select 1").unwrap().len(), 4);
    drop(silent);
}

#[test]
fn no_bytes_end_it() {
    let database = shared().unwrap();
    let role = Address::of(database.url()).unwrap().role;
    let stand = Stand::new(config(database.url()));
    let mut rng = rand::rng();
    for round in 0..200_u32 {
        let mut bytes: Vec<u8> = (0..rng.random_range(0..300))
            .map(|_| rng.random())
            .collect();
        // Half of them begin well.
        if round % 2 == 0 {
            let length = u32::try_from(bytes.len() + 8).unwrap();
            let head = [length.to_be_bytes(), [0, 3, 0, 0]].concat();
            bytes.splice(..0, head);
        }
        let mut socket = stand.socket();
        // It may be closed before all is said.
        socket.write_all(&bytes).ok();
        socket.shutdown(std::net::Shutdown::Write).ok();
        drop(rest(&mut socket));
    }
    let mut client = stand.client(&role, "app");
    assert_eq!(client.query("select 1").unwrap().len(), 4);
    drop(client);
    until("nobody is left", || stand.count("windrow_pg_clients") == 0);
}
