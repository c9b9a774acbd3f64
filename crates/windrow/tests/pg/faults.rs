//! Whatever breaks: nobody is told what is not true, and neighbours go on.

use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use windrow_testkit::pgclient::{Client, backend, frontend};
use windrow_testkit::postgres::Postgres;

use crate::load::{Load, TABLE, refusals, verify};
use crate::support::{Gateway, TEST_TIMEOUT, serve};

const CLIENTS: u64 = 16;

/// One call of a prepared insert, without reading the answer.
fn insert(client: &mut Client, id: u64) {
    let mut out = Vec::new();
    frontend::parse(
        &mut out,
        "",
        "insert into readings (id, note) values ($1, 'x')",
        &[],
    );
    frontend::bind(&mut out, ("", ""), &[], &[Some(id.to_string())], &[]);
    frontend::execute(&mut out, "", 0);
    frontend::sync(&mut out);
    client.send(&out).unwrap();
}

/// Its answer: the command, or the SQLSTATE.
fn told(client: &mut Client) -> String {
    let answer = client.until_ready().unwrap();
    let command = answer.iter().find_map(|m| m.command());
    backend::sqlstate(&answer)
        .or(command)
        .unwrap_or_else(|| panic!("{answer:?}"))
}

#[test]
fn a_server_is_killed_and_started_again() {
    let gateway = Gateway::start();
    gateway.exec(TABLE);
    let load = Load::start(&gateway.address, CLIENTS);
    for _ in 0..3 {
        load.wait(300);
        gateway.server.kill9().unwrap();
        gateway.server.restart().unwrap();
    }
    load.wait(300);
    verify(&load.end(), &gateway.direct, &["readings"]);
}

#[test]
fn terminated_sessions_are_replaced() {
    let gateway = Gateway::start();
    gateway.exec(TABLE);
    let load = Load::start(&gateway.address, CLIENTS);
    for _ in 0..20 {
        load.wait(50);
        gateway.exec(
            "select pg_terminate_backend(pid) from pg_stat_activity
             where datname = current_database() and pid <> pg_backend_pid()",
        );
    }
    load.wait(50);
    let ledgers = load.end();
    verify(&ledgers, &gateway.direct, &["readings"]);
    assert!(refusals(&ledgers).is_empty(), "{:?}", refusals(&ledgers));
}

/// A server that is away is told; nobody has to connect again when it is back.
#[test]
fn clients_stay_while_the_server_is_away() {
    let gateway = Gateway::with(Postgres::builder(), &["--away-wait", "100ms"]);
    gateway.exec(TABLE);
    let mut client = gateway.client();
    insert(&mut client, 1);
    assert_eq!(told(&mut client), "INSERT 0 1");
    gateway.server.stop().unwrap();
    insert(&mut client, 2);
    let code = told(&mut client);
    assert!(
        ["08001", "57P03", "57P01", "08006", "08007"].contains(&code.as_str()),
        "{code}"
    );
    gateway.server.restart().unwrap();
    let start = Instant::now();
    for id in 3.. {
        insert(&mut client, id);
        if told(&mut client) == "INSERT 0 1" {
            break;
        }
        assert!(start.elapsed() < TEST_TIMEOUT, "service resumes by itself");
    }
}

#[test]
fn clients_that_leave_in_the_middle_harm_nobody() {
    let gateway = Gateway::start();
    gateway.exec(TABLE);
    let load = Load::start(&gateway.address, CLIENTS);
    for id in 0..300 {
        let mut client = gateway.client();
        insert(&mut client, id);
        if id % 3 == 0 {
            // Half of a message more.
            client.send(b"Q\0\0\0\x20insert").unwrap();
        }
        drop(client);
    }
    load.wait(100);
    let ledgers = load.end();
    assert!(refusals(&ledgers).is_empty(), "{:?}", refusals(&ledgers));
    let lost: usize = ledgers.iter().map(|l| l.unknown.len()).sum();
    assert_eq!(lost, 0);
    gateway.exec("delete from readings where id < 1000");
    verify(&ledgers, &gateway.direct, &["readings"]);
}

/// Clients that ask for much and read nothing: they stop themselves, and nobody else.
#[test]
fn clients_that_never_read_harm_nobody() {
    let gateway = Gateway::start();
    gateway.exec(TABLE);
    let mut deaf: Vec<_> = (0..8).map(|_| gateway.client()).collect();
    let mut rows = Vec::new();
    frontend::query(
        &mut rows,
        "select repeat('x', 100000) from generate_series(1, 100000)",
    );
    for client in &mut deaf {
        client.send(&rows).unwrap();
    }
    // One that goes on sending writes until nothing more is taken.
    let mut flood = gateway.client();
    flood.stream().set_nonblocking(true).unwrap();
    let mut out = Vec::new();
    for id in 0..200_000 {
        frontend::query(
            &mut out,
            &format!("insert into readings values ({id}, 'flood {id}') returning *"),
        );
    }
    let sent = flood.send(&out);
    let load = Load::start(&gateway.address, CLIENTS);
    load.wait(500);
    let ledgers = load.end();
    assert!(refusals(&ledgers).is_empty(), "{:?}", refusals(&ledgers));
    let resident = gateway.windrow.resident_bytes().unwrap() >> 20;
    assert!(resident < 200, "{resident} MiB are resident");
    drop((deaf, flood, sent));
    assert_eq!(
        backend::first_value(&gateway.client().query("select 1").unwrap()).as_deref(),
        Some("1")
    );
}

/// A write that waits for a lock is taken out by a cancel request; the one before it is not harmed.
#[test]
fn a_waiting_write_is_cancelled() {
    let gateway = Gateway::start();
    gateway.exec(TABLE);
    let mut holder = gateway.direct();
    holder.query("begin").unwrap();
    holder
        .query("lock table readings in exclusive mode")
        .unwrap();
    let (mut first, mut second) = (gateway.client(), gateway.client());
    insert(&mut first, 1);
    insert(&mut second, 2);
    let (say, said) = mpsc::channel();
    thread::scope(|scope| {
        let waiting = &mut second;
        let key = waiting.cancel_key().unwrap().to_vec();
        scope.spawn(move || say.send(told(waiting)).unwrap());
        let start = Instant::now();
        // A request that comes before the write is there is for nothing.
        let code = loop {
            let mut request = Vec::new();
            frontend::cancel(&mut request, &key);
            let mut other = Client::open(gateway.address.socket).unwrap();
            other.send(&request).unwrap();
            assert!(other.receive().unwrap().is_none());
            if let Ok(code) = said.try_recv() {
                break code;
            }
            assert!(start.elapsed() < TEST_TIMEOUT, "it was not cancelled");
        };
        assert_eq!(code, "57014");
    });
    insert(&mut second, 3);
    holder.query("commit").unwrap();
    assert_eq!(
        (told(&mut first), told(&mut second)),
        ("INSERT 0 1".into(), "INSERT 0 1".into())
    );
    assert_eq!(
        gateway.exec("select string_agg(id::text, ' ' order by id) from readings"),
        "1 3"
    );
}

/// A row that somebody else has locked holds up its own client only.
#[test]
fn a_foreign_lock_holds_up_its_own_client_only() {
    let gateway = Gateway::start();
    gateway.exec(TABLE);
    gateway.exec("insert into readings values (1, 'old'), (2, 'old')");
    let mut holder = gateway.direct();
    holder.query("begin").unwrap();
    holder
        .query("update readings set note = 'foreign' where id = 1")
        .unwrap();
    let mut waiting = gateway.client();
    let mut out = Vec::new();
    frontend::query(
        &mut out,
        "update readings set note = note || ' mine' where id = 1",
    );
    waiting.send(&out).unwrap();
    let mut neighbour = gateway.client();
    for id in 100..150 {
        insert(&mut neighbour, id);
        assert_eq!(told(&mut neighbour), "INSERT 0 1");
        let answer = neighbour
            .query("update readings set note = 'new' where id = 2")
            .unwrap();
        assert_eq!(backend::sqlstate(&answer), None);
    }
    holder.query("commit").unwrap();
    assert_eq!(told(&mut waiting), "UPDATE 1");
    assert_eq!(
        gateway.exec("select note from readings where id = 1"),
        "foreign mine"
    );
}

/// The schema changes under load: answers stay true, whatever they are.
#[test]
fn the_schema_changes_under_load() {
    let gateway = Gateway::start();
    gateway.exec(TABLE);
    let load = Load::start(&gateway.address, CLIENTS);
    let changes = [
        "alter table readings add column made int not null default 7",
        "alter table readings alter note type varchar(200)",
        "alter table readings alter note type text, add column extra text",
        "alter table readings drop column extra",
        "alter table readings add check (note <> 'x')",
        "create index on readings (note)",
        // Every third row is dropped without an error, every other one is changed.
        "create function fickle() returns trigger language plpgsql as $$ begin
            if new.id % 3 = 0 then return null; end if; new.note = new.note || '!'; return new; end $$;
         create trigger fickle before insert on readings for each row execute function fickle()",
        "drop trigger fickle on readings",
        "create function never() returns trigger language plpgsql as $$ begin
            raise exception 'never' using errcode = 'P0007'; end $$;
         create trigger never after insert on readings for each row when (new.id % 5 = 0) execute function never()",
        "drop trigger never on readings",
        "begin; alter table readings rename to readings_before; create table readings (id bigint primary key, \
         note text, made int default 7); commit",
        "alter table readings alter id type numeric",
    ];
    for change in changes {
        load.wait(150);
        gateway.exec(change);
    }
    load.wait(150);
    let ledgers = load.end();
    let reasons = refusals(&ledgers);
    for reason in reasons.keys() {
        let known = ["INSERT 0 0", "P0007", "40001", "40P01", "0A000"];
        assert!(known.contains(&reason.as_str()), "{reasons:?}");
    }
    assert!(
        reasons.contains_key("INSERT 0 0") && reasons.contains_key("P0007"),
        "{reasons:?}"
    );
    verify(&ledgers, &gateway.direct, &["readings", "readings_before"]);
    let wrong = "select count(*) from (select id, made from readings union all select id, made from readings_before) t
        where made is distinct from 7";
    assert_eq!(gateway.exec(wrong), "0");
}

/// It is told to end under load: what was accepted is answered truly, and the next one goes on.
#[test]
fn an_orderly_end_under_load() {
    let mut gateway = Gateway::start();
    gateway.exec(TABLE);
    let load = Load::start(&gateway.address, CLIENTS);
    load.wait(300);
    gateway.windrow.terminate().unwrap();
    let status = gateway.windrow.wait().unwrap();
    assert!(status.success(), "{status:?}\n{}", gateway.windrow.log());
    let ledgers = load.end();
    for reason in refusals(&ledgers).keys() {
        assert!(
            ["57P01", "57P03", "57014"].contains(&reason.as_str()),
            "{reason}"
        );
    }
    verify(&ledgers, &gateway.direct, &["readings"]);
    let (_windrow, address) = serve(&gateway.direct, &[]);
    let mut client = Client::connect(&address).unwrap();
    insert(&mut client, 1);
    assert_eq!(told(&mut client), "INSERT 0 1");
}

/// It is killed under load: what was confirmed is there.
#[test]
fn a_crash_under_load() {
    let mut gateway = Gateway::start();
    gateway.exec(TABLE);
    let load = Load::start(&gateway.address, CLIENTS);
    load.wait(300);
    gateway.windrow.kill9().unwrap();
    verify(&load.end(), &gateway.direct, &["readings"]);
}
