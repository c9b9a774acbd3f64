//! The console, by psql, by drivers and message by message.

use std::sync::Arc;
use std::time::Duration;

use windrow_core::{LaneStatus, Name};
use windrow_pg::{Console, Identity};
use windrow_testkit::pgclient::{Address, Client, Message, backend, frontend};
use windrow_testkit::postgres::{PostgresDatabase, shared};

use crate::support::{Stand, config, until};

fn console() -> Console {
    let identity = Identity {
        database: Name::from("app"),
        role: Name::from("me"),
    };
    let status = LaneStatus {
        name: Name::from("app/me"),
        writes: 42,
        away: Some((Duration::from_millis(1500), "no route".into())),
        ..LaneStatus::default()
    };
    Console {
        lanes: Arc::new(move || vec![(identity.clone(), status.clone())]),
        ..Console::default()
    }
}

fn stand() -> (Stand, PostgresDatabase, String) {
    let database = shared().unwrap();
    let role = Address::of(database.url()).unwrap().role;
    (
        Stand::with(config(database.url()), console()),
        database,
        role,
    )
}

#[test]
fn psql_shows_every_table() {
    let (stand, _database, role) = stand();
    let mut client = Client::connect_with(
        &stand.address(&role, "app"),
        &[("application_name", "it's me")],
    )
    .unwrap();
    client.query("select 1").unwrap();
    let url = stand.url(&role, "windrow");
    let show = |what: &str| stand.psql(&url, what).unwrap();
    assert!(show("show lanes").starts_with("app/me|app|me|0|0|0|0|0|0|0|1500|no route|42|"));
    let clients = show("SHOW CLIENTS;");
    assert!(
        clients.contains(&format!("|app|{role}|it's me|127.0.0.1:")),
        "{clients}"
    );
    assert!(clients.ends_with("|idle|||0|0|1"), "{clients}");
    assert_eq!(show("show servers"), format!("app|{role}|0|1|50"));
    let pools = show("show pools");
    assert_eq!(pools, format!("app|{role}|1|0|0|1|transaction"));
    assert!(
        show("show databases").starts_with("app|") && show("show databases").ends_with("|off|no|1")
    );
    assert!(show("show stats").contains("\nstatements_relayed|1|"));
    assert!(show("show bypass").contains('|'));
    assert!(show("show config").contains("max_server_connections|50"));
    assert!(show("show version").starts_with("Windrow "));
    assert!(show("help").contains("SHOW BYPASS|"));
    assert!(show("help clients").contains("\npinned_by|"));
    assert_eq!(show("show version; show version").lines().count(), 2);
    let error = stand.psql(&url, "drop table t").unwrap_err();
    assert!(
        error.contains("drop table t") && error.contains("SHOW LANES"),
        "{error}"
    );
    assert_eq!(
        stand.count("windrow_pg_statements_total{way=\"relayed\"}"),
        1
    );
    drop(client);
    until("what it did stays counted", || {
        show("show clients").is_empty()
            && stand.count("windrow_pg_statements_total{way=\"relayed\"}") == 1
    });
}

#[test]
fn a_driver_prepares_what_it_asks() {
    let (stand, _database, role) = stand();
    let url = stand.url(&role, "windrow");
    let rows = stand.runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls)
            .await
            .unwrap();
        tokio::spawn(connection);
        let statement = client.prepare("show lanes").await.unwrap();
        assert_eq!(statement.columns()[0].name(), "name");
        let rows = client.query(&statement, &[]).await.unwrap();
        assert_eq!(
            client
                .execute("set application_name = 'a;b'", &[])
                .await
                .unwrap(),
            0
        );
        let error = client.prepare("select * from t").await.unwrap_err();
        assert_eq!(error.code().unwrap().code(), "42601");
        client
            .batch_execute("begin; show version; commit")
            .await
            .unwrap();
        rows.iter()
            .map(|row| row.get::<_, String>("writes"))
            .collect::<Vec<_>>()
    });
    assert_eq!(rows, ["42"]);
}

fn tags(messages: &[Message]) -> String {
    messages.iter().map(|m| char::from(m.tag)).collect()
}

#[test]
fn messages_out_of_turn_are_errors_and_nothing_else() {
    let (stand, _database, role) = stand();
    let mut client = stand.client(&role, "windrow");
    let mut ask = |messages: &dyn Fn(&mut Vec<u8>)| {
        let mut out = Vec::new();
        messages(&mut out);
        frontend::sync(&mut out);
        client.send(&out).unwrap();
        tags(&client.until_ready().unwrap())
    };
    let none: [Option<&[u8]>; 0] = [];
    assert_eq!(ask(&|out| frontend::execute(out, "none", 0)), "EZ");
    assert_eq!(ask(&|out| frontend::describe(out, b'S', "none")), "EZ");
    assert_eq!(ask(&|out| frontend::describe(out, b'P', "none")), "EZ");
    assert_eq!(
        ask(&|out| frontend::message(out, b'F', |out| out.push(0))),
        "EZ"
    );
    assert_eq!(
        ask(&|out| {
            frontend::parse(out, "a", "show version", &[]);
            frontend::bind(out, ("", "a"), &[], &none, &[1]);
            frontend::describe(out, b'P', "");
            frontend::execute(out, "", 0);
            frontend::close(out, b'S', "a");
            frontend::execute(out, "none", 0);
            frontend::execute(out, "", 0);
        }),
        "12TDC3EZ"
    );
    for at in 0..70 {
        let tags = ask(&|out| frontend::parse(out, &format!("s{at}"), "show help", &[]));
        assert_eq!(tags, if at < 64 { "1Z" } else { "EZ" }, "{at}");
    }
    let mut out = Vec::new();
    frontend::message(&mut out, b'Q', |out| out.resize(100_000, b' '));
    client.send(&out).unwrap();
    let last = client.receive().unwrap().unwrap();
    assert_eq!(last.sqlstate().as_deref(), Some("54000"));
    assert!(client.receive().unwrap_or_default().is_none());
}

#[test]
fn work_can_be_held_back() {
    let (stand, database, role) = stand();
    database.exec("create table t (n int)").unwrap();
    let url = stand.url(&role, "windrow");
    let mut working = stand.client(&role, "app");
    working.query("begin; lock table t").unwrap();
    let pausing = std::thread::scope(|scope| {
        let pausing = scope.spawn(|| stand.psql(&url, "pause app"));
        until("it is paused", || {
            stand
                .psql(&url, "show databases")
                .unwrap()
                .contains("|yes|")
        });
        // The transaction under way goes on to its end, and only then is PAUSE answered.
        assert!(!pausing.is_finished());
        working.query("insert into t values (1)").unwrap();
        working.query("commit").unwrap();
        pausing.join().unwrap()
    });
    assert_eq!(pausing.as_deref(), Ok(""));
    let mut held = stand.client_while_paused(&role);
    let mut out = Vec::new();
    frontend::query(&mut out, "select count(*) from t");
    held.send(&out).unwrap();
    until("it waits", || {
        stand
            .psql(&url, "show clients")
            .unwrap()
            .contains("|waiting|")
    });
    stand.psql(&url, "resume app").unwrap();
    let answer = held.until_ready().unwrap();
    assert_eq!(backend::first_value(&answer).as_deref(), Some("1"));
    let error = stand.psql(&url, "pause nowhere").unwrap_err();
    assert!(
        error.contains("nowhere") && error.contains("SHOW DATABASES"),
        "{error}"
    );
}

#[test]
fn a_pause_that_nobody_waits_for_any_more_is_undone() {
    let (stand, _database, role) = stand();
    let mut working = stand.client(&role, "app");
    working.query("begin; select 1").unwrap();
    let mut console = stand.client(&role, "windrow");
    let mut out = Vec::new();
    frontend::query(&mut out, "pause");
    console.send(&out).unwrap();
    let url = stand.url(&role, "windrow");
    until("it is paused", || {
        stand
            .psql(&url, "show databases")
            .unwrap()
            .contains("|yes|")
    });
    drop(console);
    until("it goes on", || {
        stand.psql(&url, "show databases").unwrap().contains("|no|")
    });
}

impl Stand {
    /// Logging in is no work.
    fn client_while_paused(&self, role: &str) -> Client {
        self.client(role, "app")
    }
}
