//! What sessions leave behind, and clients that leave or give up.

use std::time::{Duration, Instant};

use windrow_testkit::pgclient::backend::{first_value, sqlstate};
use windrow_testkit::pgclient::{Client, frontend};

use crate::support::{Stand, tags};

fn ask(client: &mut Client, sql: &str) -> String {
    first_value(&client.query(sql).unwrap()).unwrap()
}

/// Waits until the server has so many sessions in this state.
fn wait_for(stand: &Stand, count: &str, condition: &str) {
    let sql = format!(
        "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and {condition}"
    );
    let start = Instant::now();
    while stand.executes(&sql) != count {
        assert!(start.elapsed() < Duration::from_secs(60), "{condition}");
    }
}

#[test]
fn a_script_that_resets_everything_is_followed() {
    let stand = Stand::new();
    let mut client = stand.client();
    client.query("set search_path = pg_catalog").unwrap();
    client.query("set time zone 'Asia/Tokyo'").unwrap();
    let script = "select pg_advisory_unlock_all(); close all; unlisten *; reset all;";
    client.query(script).unwrap();
    assert_ne!(ask(&mut client, "show search_path"), "pg_catalog");
    assert_ne!(ask(&mut client, "show timezone"), "Asia/Tokyo");
    // A script that fails half-way changes nothing.
    client.query("set time zone 'Asia/Tokyo'").unwrap();
    client.query("reset all; select 1/0").unwrap();
    assert_eq!(ask(&mut client, "show timezone"), "Asia/Tokyo");
    client.query("begin; reset all; rollback").unwrap();
    assert_eq!(ask(&mut client, "show timezone"), "Asia/Tokyo");
}

#[test]
fn a_setting_that_is_changed_out_of_sight_is_found() {
    let stand = Stand::new();
    for change in [
        "do $$ begin set timezone = 'Europe/Paris'; end $$",
        "set timezone = 'Europe/Paris'; select 1",
        "select set_config('timezone', 'Europe/' || 'Paris', false)",
        "select set_config('timezone', 'Europe/Paris', false)",
    ] {
        let mut client = stand.client();
        client.query("set time zone 'Asia/Tokyo'").unwrap();
        client.query(change).unwrap();
        assert_eq!(
            ask(&mut client, "show timezone"),
            "Europe/Paris",
            "{change}"
        );
        // Nobody else sees it.
        assert_ne!(ask(&mut stand.client(), "show timezone"), "Europe/Paris");
    }
}

#[test]
fn a_client_that_leaves_without_its_sync_leaves_nothing_open() {
    let stand = Stand::new();
    for skipping in [false, true] {
        let mut client = stand.client();
        let sql = if skipping { "selec" } else { "select 1" };
        let mut out = Vec::new();
        frontend::parse(&mut out, "", sql, &[]);
        frontend::bind::<&str>(&mut out, ("", ""), &[], &[], &[]);
        frontend::execute(&mut out, "", 0);
        frontend::flush(&mut out);
        client.send(&out).unwrap();
        let first = client.receive().unwrap().unwrap().tag;
        assert_eq!(first, if skipping { b'E' } else { b'1' });
        drop(client);
        wait_for(&stand, "0", "state = 'active'");
    }
}

#[test]
fn who_waits_for_a_server_connection_can_give_up() {
    let stand = Stand::with(|config| config.max_server_connections = 1, 64 << 20);
    let mut holder = stand.client();
    holder.query("begin; select 1").unwrap();
    let mut client = stand.client();
    let mut out = Vec::new();
    frontend::query(&mut out, "select 1");
    client.send(&out).unwrap();
    // Each request may come before the query has: one of them does not.
    client
        .stream()
        .set_read_timeout(Some(Duration::from_millis(20)))
        .unwrap();
    while client.stream().peek(&mut [0]).is_err() {
        client.cancel().unwrap();
    }
    client.stream().set_read_timeout(None).unwrap();
    let answer = client.until_ready().unwrap();
    assert_eq!(sqlstate(&answer).as_deref(), Some("57014"));
    holder.query("rollback").unwrap();
    assert_eq!(tags(&client.query("select 1").unwrap()), "TDCZ");
}
