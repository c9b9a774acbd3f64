//! Server connections as sessions see them.

use windrow_testkit::pgclient::{Address, Client, backend};
use windrow_testkit::postgres::shared;

use crate::support::{Stand, config};

fn value(client: &mut Client, sql: &str) -> String {
    let answer = client.query(sql).unwrap();
    let value = backend::first_value(&answer);
    assert!(value.is_some(), "{sql}: {answer:?}");
    value.unwrap()
}

#[test]
fn sessions_that_wait_for_their_clients_share_one_connection() {
    let database = shared().unwrap();
    let role = Address::of(database.url()).unwrap().role;
    let mut config = config(database.url());
    config.max_server_connections = 1;
    let stand = Stand::new(config);
    let mut clients: Vec<_> = (0..10)
        .map(|at| {
            let name = format!("client {at}");
            Client::connect_with(&stand.address(&role, "app"), &[("application_name", &name)])
                .unwrap()
        })
        .collect();
    let mut pids = Vec::new();
    for _ in 0..2 {
        for (at, client) in clients.iter_mut().enumerate() {
            let name = value(client, "select current_setting('application_name')");
            assert_eq!(name, format!("client {at}"));
            pids.push(value(client, "select pg_backend_pid()"));
        }
    }
    pids.dedup();
    assert_eq!(pids.len(), 1);
    assert_eq!(
        stand.count("windrow_pg_server_connects_total{outcome=\"ok\"}"),
        1
    );
}

#[test]
fn settings_go_with_their_session() {
    let database = shared().unwrap();
    let role = Address::of(database.url()).unwrap().role;
    let mut config = config(database.url());
    config.max_server_connections = 1;
    let stand = Stand::new(config);
    let (mut one, mut two) = (stand.client(&role, "app"), stand.client(&role, "app"));
    one.query("set time zone 'Asia/Tokyo'").unwrap();
    one.query("set search_path = pg_catalog, public").unwrap();
    two.query("set time zone 'Europe/Paris'").unwrap();
    for _ in 0..3 {
        assert_eq!(
            value(
                &mut one,
                "select current_setting('TimeZone') || current_setting('search_path')"
            ),
            "Asia/Tokyopg_catalog, public"
        );
        assert_eq!(
            value(&mut two, "select current_setting('TimeZone')"),
            "Europe/Paris"
        );
        assert_ne!(
            value(&mut two, "select current_setting('search_path')"),
            "pg_catalog, public"
        );
    }
    one.query("reset all").unwrap();
    assert_eq!(
        value(
            &mut one,
            "select current_setting('TimeZone') = reset_val from pg_settings where name = 'TimeZone'"
        ),
        "t"
    );
}

#[test]
fn who_keeps_a_connection_keeps_its_state() {
    let database = shared().unwrap();
    let role = Address::of(database.url()).unwrap().role;
    let mut config = config(database.url());
    config.max_server_connections = 2;
    let stand = Stand::new(config);
    let (mut one, mut two) = (stand.client(&role, "app"), stand.client(&role, "app"));
    one.query("create temp table mine as select 5 as n")
        .unwrap();
    assert_eq!(value(&mut two, "select 1"), "1");
    assert_eq!(value(&mut one, "select n from mine"), "5");
    let mut console = stand.client(&role, "windrow");
    let clients = console.query("show clients").unwrap();
    let pinned = clients.iter().filter(|m| m.tag == b'D');
    let why: Vec<_> = pinned
        .map(|row| String::from_utf8(row.values()[6].clone().unwrap()).unwrap())
        .collect();
    assert!(why.contains(&"temporary objects".to_owned()), "{why:?}");
    one.query("discard all").unwrap();
    assert!(backend::sqlstate(&one.query("select n from mine").unwrap()).is_some());
    assert!(backend::sqlstate(&two.query("select n from mine").unwrap()).is_some());
}

#[test]
fn settings_that_nobody_can_look_at_stay_with_their_session() {
    let database = shared().unwrap();
    let role = Address::of(database.url()).unwrap().role;
    let mut config = config(database.url());
    config.max_server_connections = 2;
    let stand = Stand::new(config);
    let (mut one, mut two) = (stand.client(&role, "app"), stand.client(&role, "app"));
    let tenant = "select coalesce(current_setting('app.tenant', true), '')";
    one.query("begin; select set_config('app.tenant', '1', true); commit")
        .unwrap();
    assert_eq!(value(&mut two, tenant), "");
    one.query("select set_config('app.tenant', '5', false)")
        .unwrap();
    for _ in 0..2 {
        assert_eq!(value(&mut two, tenant), "");
        assert_eq!(value(&mut one, tenant), "5");
    }
    one.query("reset all").unwrap();
    assert_eq!(value(&mut one, tenant), "");
    let mut console = stand.client(&role, "windrow");
    let clients = console.query("show clients").unwrap();
    let pinned = clients
        .iter()
        .filter(|m| m.tag == b'D' && m.values()[6].as_deref() != Some(b""));
    assert_eq!(pinned.count(), 0);
}
