//! A client's time is its own, and that of its own statement.

use windrow_testkit::pgclient::{Client, backend, frontend};

use crate::support::Gateway;

const METRICS: &str = "create table metrics (device int, time timestamptz default now(), v int, \
     primary key (device, time))";

/// A statement with its parameters, and a Sync of its own. An empty name is parsed each time.
fn call(out: &mut Vec<u8>, name: &str, sql: &str, values: &[String]) {
    if !sql.is_empty() {
        frontend::parse(out, name, sql, &[]);
    }
    let values: Vec<_> = values.iter().cloned().map(Some).collect();
    frontend::bind(out, ("", name), &[], &values, &[]);
    frontend::execute(out, "", 0);
    frontend::sync(out);
}

/// The next answer: the command, or the SQLSTATE.
fn told(client: &mut Client) -> String {
    let answer = client.until_ready().unwrap();
    let command = answer.iter().find_map(|message| message.command());
    command
        .or_else(|| backend::sqlstate(&answer))
        .unwrap_or_else(|| panic!("{answer:?}"))
}

#[test]
fn a_time_series_keeps_each_row() {
    let gateway = Gateway::start();
    gateway.exec(METRICS);
    let mut clients: Vec<Client> = (0..24).map(|_| gateway.client()).collect();
    for sql in [
        "insert into metrics (device, v) values ($1, $2) on conflict do nothing",
        "insert into metrics (device, v) values ($1, $2) on conflict (device, time) do update set v = excluded.v",
        "insert into metrics (device, v) values ($1, $2)",
        "insert into metrics (device, v) values ($1, $2) on conflict do nothing returning time",
    ] {
        gateway.exec("delete from metrics");
        for row in 0..20 {
            for (n, client) in (0..).zip(&mut clients) {
                let mut out = Vec::new();
                call(&mut out, "", sql, &[(n % 4).to_string(), row.to_string()]);
                client.send(&out).unwrap();
            }
            for client in &mut clients {
                assert_eq!(told(client), "INSERT 0 1", "{sql}");
            }
        }
        assert_eq!(gateway.exec("select count(*) from metrics"), "480", "{sql}");
    }
}

#[test]
fn what_one_client_pipelines_has_rising_times() {
    const ROWS: usize = 120;
    let gateway = Gateway::start();
    gateway.exec(METRICS);
    gateway.exec(
        "create table t (id int primary key, seen timestamptz not null); insert into t values (1, 'epoch')",
    );
    let insert = "insert into metrics (device, v) values ($1, $2)";
    let touch = "update t set seen = now() where id = $1 and seen < now()";
    let mut client = gateway.client();
    let one = || "1".to_owned();
    let mut out = Vec::new();
    call(&mut out, "", insert, &[one(), "-1".to_owned()]);
    call(&mut out, "", touch, &[one()]);
    for row in 0..ROWS {
        call(&mut out, "", insert, &[one(), row.to_string()]);
        call(&mut out, "", touch, &[one()]);
    }
    client.send(&out).unwrap();
    for _ in 0..=ROWS {
        assert_eq!(told(&mut client), "INSERT 0 1");
        assert_eq!(told(&mut client), "UPDATE 1");
    }
    let disorder =
        "select count(*) from metrics a join metrics b on a.v < b.v and a.time >= b.time";
    assert_eq!(gateway.exec(disorder), "0");
}

/// The server's clock, as a text that compares as times do.
fn clock(gateway: &Gateway) -> String {
    gateway.exec("select to_char(clock_timestamp() at time zone 'utc', 'YYYY-MM-DD HH24:MI:SS.US')")
}

/// The time that is stored, in the same form.
fn seen(gateway: &Gateway) -> String {
    gateway.exec("select to_char(seen at time zone 'utc', 'YYYY-MM-DD HH24:MI:SS.US') from t")
}

#[test]
fn now_in_quotes_is_the_moment_of_its_own_statement() {
    let gateway = Gateway::start();
    gateway.exec(
        "create table t (id int primary key, seen timestamptz); insert into t values (1, 'epoch');
         create table leases (id int primary key, expires timestamptz)",
    );
    let mut clients = [gateway.client(), gateway.client()];
    for round in 0..3 {
        for client in &mut clients {
            for sql in [
                "update t set seen = 'now' where id = $1",
                "update t set seen = timestamptz 'now' where id = $1",
                "insert into t values ($1, 'now') on conflict (id) do update set seen = 'now'",
            ] {
                let before = clock(&gateway);
                let mut out = Vec::new();
                call(&mut out, "", sql, &["1".to_owned()]);
                client.send(&out).unwrap();
                assert!(told(client).ends_with('1'), "{sql}");
                assert!(seen(&gateway) >= before, "{sql}, round {round}");
            }
            for sql in [
                "update t set seen = 'now' where id = 1",
                "update t set seen = timestamptz 'now' where id = 1",
            ] {
                let before = clock(&gateway);
                let answer = client.query(sql).unwrap();
                assert_eq!(backend::sqlstate(&answer), None, "{sql}");
                assert!(seen(&gateway) >= before, "{sql}, round {round}");
            }
            gateway.exec("insert into leases values (1, clock_timestamp())");
            let mut out = Vec::new();
            call(
                &mut out,
                "",
                "delete from leases where id = $1 and expires < 'now'",
                &["1".to_owned()],
            );
            client.send(&out).unwrap();
            assert_eq!(told(client), "DELETE 1", "round {round}");
        }
    }
}

#[test]
fn a_prepared_now_is_no_earlier_than_its_own_preparation() {
    let gateway = Gateway::start();
    gateway.exec(
        "create table t (id int primary key, seen timestamptz); insert into t values (1, 'epoch')",
    );
    let sql = "update t set seen = 'now' where id = $1";
    for _ in 0..3 {
        let mut client = gateway.client();
        let before = clock(&gateway);
        let mut out = Vec::new();
        call(&mut out, "s", sql, &["1".to_owned()]);
        call(&mut out, "s", "", &["1".to_owned()]);
        client.send(&out).unwrap();
        for _ in 0..2 {
            assert_eq!(told(&mut client), "UPDATE 1");
        }
        assert!(seen(&gateway) >= before);
    }
}
