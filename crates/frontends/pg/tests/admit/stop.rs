//! The end.

use std::net::Ipv4Addr;

use windrow_pg::Console;
use windrow_testkit::pgclient::{Address, backend, frontend};
use windrow_testkit::postgres::shared;

use crate::support::{Stand, config, until};

/// Nobody else listens there, so that a port that is free again is not taken by another test.
const OWN_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 13, 7);

#[test]
fn sessions_end_what_is_under_way_and_are_told_good_bye() {
    let database = shared().unwrap();
    database.exec("create table t (n int)").unwrap();
    let role = Address::of(database.url()).unwrap().role;
    let mut config = config(database.url());
    config.listen.set_ip(OWN_ADDRESS.into());
    let mut stand = Stand::new(config);
    let (mut idle, mut busy) = (stand.client(&role, "app"), stand.client(&role, "app"));
    let mut console = stand.client(&role, "windrow");
    busy.query("select 1").unwrap();
    stand.stop.cancel();
    for client in [&mut idle, &mut busy, &mut console] {
        let last = client.receive().unwrap().unwrap();
        assert_eq!(last.sqlstate().as_deref(), Some("57P01"));
    }
    let running = stand.running.take().unwrap();
    stand.runtime.block_on(running).unwrap();
    assert!(std::net::TcpStream::connect(stand.front).is_err());
    let ours = "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()";
    until("its server connections are gone", || {
        database.exec(ours).unwrap() == "0"
    });
}

#[test]
fn the_console_can_end_it() {
    let database = shared().unwrap();
    let role = Address::of(database.url()).unwrap().role;
    let console = Console::default();
    let process = console.shutdown.clone();
    let mut stand = Stand::with(config(database.url()), console);
    let mut client = stand.client(&role, "windrow");
    let mut out = Vec::new();
    frontend::query(&mut out, "SHUTDOWN");
    client.send(&out).unwrap();
    let answer = client.until_ready().unwrap();
    assert_eq!(backend::sqlstate(&answer), None);
    assert!(process.is_cancelled());
    let running = stand.running.take().unwrap();
    stand.runtime.block_on(running).unwrap();
}
