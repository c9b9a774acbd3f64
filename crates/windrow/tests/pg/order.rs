//! What one client sent keeps its order, and nobody waits for a lock that is not in his way.

use windrow_testkit::pgclient::{Client, backend, frontend};

use crate::support::Gateway;

/// A statement with one parameter, and a Sync of its own.
fn call(out: &mut Vec<u8>, sql: &str, value: &str) {
    frontend::parse(out, "", sql, &[]);
    frontend::bind(out, ("", ""), &[], &[Some(value.to_owned())], &[]);
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
fn what_a_client_pipelines_keeps_its_order() {
    const ROWS: usize = 60;
    let gateway = Gateway::start();
    gateway.exec(
        "create table parent (id int primary key);
         create table child (id int primary key, p int references parent);
         create table numbered (id int primary key, n serial)",
    );
    let (parent, child, numbered) = (
        "insert into parent values ($1)",
        "insert into child values ($1::int, $1::int)",
        "insert into numbered (id) values ($1)",
    );
    let mut client = gateway.client();
    // Once, so that all are described.
    let mut out = Vec::new();
    call(&mut out, parent, "1000");
    call(&mut out, child, "1000");
    call(&mut out, numbered, "1000");
    for row in (0..ROWS).rev() {
        let row = row.to_string();
        call(&mut out, child, &row);
        call(&mut out, parent, &row);
        call(&mut out, numbered, &row);
    }
    client.send(&out).unwrap();
    for _ in 0..3 {
        assert_eq!(told(&mut client), "INSERT 0 1");
    }
    for _ in 0..ROWS {
        let answers = [(); 3].map(|()| told(&mut client));
        assert_eq!(answers, ["23503", "INSERT 0 1", "INSERT 0 1"]);
    }
    let disorder = "select count(*) from numbered a join numbered b on a.id > b.id and a.n > b.n";
    assert_eq!(gateway.exec(disorder), "0");
}

/// Forty rows are locked, forty clients wait for them, ten others write on.
#[test]
fn strangers_locks_hold_up_only_those_who_wait_for_them() {
    let gateway = Gateway::start();
    gateway.exec(
        "create table t (id int primary key, v int); insert into t select g, 0 from generate_series(1, 50) g",
    );
    let set = "update t set v = v + 1 where id = $1";
    let mut clients: Vec<Client> = (0..50).map(|_| gateway.client()).collect();
    for (id, client) in (1..).zip(&mut clients) {
        let mut out = Vec::new();
        call(&mut out, set, &id.to_string());
        client.send(&out).unwrap();
        assert_eq!(told(client), "UPDATE 1");
    }
    let mut holder = gateway.direct();
    holder.query("begin").unwrap();
    holder
        .query("select * from t where id <= 40 for update")
        .unwrap();
    let (waiting, free) = clients.split_at_mut(40);
    for (id, client) in (1..).zip(waiting.iter_mut()) {
        let mut out = Vec::new();
        call(&mut out, set, &id.to_string());
        client.send(&out).unwrap();
    }
    for _ in 0..50 {
        for (id, client) in (41..).zip(free.iter_mut()) {
            let mut out = Vec::new();
            call(&mut out, set, &id.to_string());
            client.send(&out).unwrap();
        }
        for client in free.iter_mut() {
            assert_eq!(told(client), "UPDATE 1");
        }
    }
    let written = "select min(v), max(v) from t where id > 40";
    assert_eq!(gateway.exec(written), "51|51");
    assert_eq!(gateway.exec("select max(v) from t where id <= 40"), "1");
    holder.query("rollback").unwrap();
    for client in waiting {
        assert_eq!(told(client), "UPDATE 1");
    }
    assert_eq!(gateway.exec("select min(v) from t where id <= 40"), "2");
}

/// A reader never sees a later write of a client while an earlier one is missing.
#[test]
fn nothing_that_a_client_pipelined_is_seen_before_what_waits() {
    let gateway = Gateway::start();
    gateway.exec(
        "create table t (id int primary key, v int); insert into t values (1, 0), (2, 0);
         create table log (id int primary key)",
    );
    let (set, log) = (
        "update t set v = v + 1 where id = $1",
        "insert into log values ($1)",
    );
    let mut client = gateway.client();
    let mut out = Vec::new();
    call(&mut out, set, "1");
    call(&mut out, log, "0");
    client.send(&out).unwrap();
    assert_eq!(told(&mut client), "UPDATE 1");
    assert_eq!(told(&mut client), "INSERT 0 1");
    let mut holder = gateway.direct();
    holder.query("begin").unwrap();
    holder
        .query("select * from t where id = 1 for update")
        .unwrap();
    let mut out = Vec::new();
    call(&mut out, set, "2");
    call(&mut out, set, "1");
    for id in 1..30 {
        call(&mut out, log, &id.to_string());
    }
    client.send(&out).unwrap();
    // Others write meanwhile, in batches of the same lane.
    let mut other = gateway.client();
    for id in 100..150 {
        let mut out = Vec::new();
        call(&mut out, log, &id.to_string());
        other.send(&out).unwrap();
        assert_eq!(told(&mut other), "INSERT 0 1");
    }
    let early = "select count(*) from log where id between 1 and 29";
    assert_eq!(gateway.exec(early), "0");
    holder.query("commit").unwrap();
    assert_eq!(told(&mut client), "UPDATE 1");
    assert_eq!(told(&mut client), "UPDATE 1");
    for _ in 1..30 {
        assert_eq!(told(&mut client), "INSERT 0 1");
    }
    assert_eq!(gateway.exec(early), "29");
}
