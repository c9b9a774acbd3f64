//! Writes that wait for a lock: a cancel request, a client that is gone and the client's own time
//! limits mean to them what they mean on a direct connection.

use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use windrow_testkit::command::until;
use windrow_testkit::pgclient::{Client, Message, backend, frontend};
use windrow_testkit::postgres::psql_program;

use crate::support::Gateway;

const UPDATE: &str = "update lk set v = 7 where id = 1";

/// A gateway, and a transaction of somebody else that holds the row which everybody wants.
struct Locked {
    gateway: Gateway,
    holder: Client,
}

impl Locked {
    fn new() -> Self {
        let gateway = Gateway::start();
        gateway.exec("create table lk (id int primary key, v int); insert into lk values (1, 0)");
        let mut holder = gateway.direct();
        holder.query("begin").unwrap();
        holder.query("select v from lk for update").unwrap();
        Self { gateway, holder }
    }

    /// How many of the server's processes wait for a lock, and have done so for this long.
    fn waiting(&self, long: &str) -> String {
        self.gateway.exec(&format!(
            "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query <> ''
             and clock_timestamp() - query_start >= interval '{long}'"
        ))
    }

    /// Waits until one of them waits; `alone`: by itself, as no batch waits that long.
    fn until_one_waits(&self, alone: bool) {
        let long = if alone { "1s" } else { "0s" };
        until("a write waits for the lock", || self.waiting(long) != "0");
    }

    fn until_nobody_waits(&self) {
        until("nobody waits", || self.waiting("0s") == "0");
    }

    /// The lock is still held, nobody waits for it, and once it is gone nothing has happened.
    fn nothing_comes_of_it(&mut self) {
        self.until_nobody_waits();
        assert_eq!(self.gateway.exec("select v from lk"), "0");
        self.holder.query("commit").unwrap();
        // Behind whatever might have waited.
        self.gateway.exec("begin; lock table lk; commit");
        assert_eq!(self.gateway.exec("select v from lk"), "0");
        let mut client = self.gateway.client();
        let answer = client.query("update lk set v = 8 where id = 1").unwrap();
        assert_eq!(told(&answer), "UPDATE 1");
    }
}

fn send(client: &mut Client, sql: &str) {
    let mut out = Vec::new();
    frontend::query(&mut out, sql);
    client.send(&out).unwrap();
}

fn told(answer: &[Message]) -> String {
    let command = answer.iter().find_map(Message::command);
    let told = backend::sqlstate(answer).or(command);
    told.unwrap_or_else(|| panic!("{answer:?}"))
}

/// The fields of an error but its place in the server's source.
fn words(answer: &[Message]) -> Vec<(u8, String)> {
    let error = answer.iter().find(|m| m.tag == b'E');
    let fields = error.unwrap_or_else(|| panic!("{answer:?}")).fields();
    fields
        .into_iter()
        .filter(|(code, _)| *code != b'L')
        .collect()
}

/// The same statement, directly, under the same settings.
fn directly(locked: &Locked, settings: &str, sql: &str) -> Vec<(u8, String)> {
    let mut client = locked.gateway.direct();
    client.query(settings).unwrap();
    words(&client.query(sql).unwrap())
}

#[test]
fn a_cancel_request_reaches_a_write_that_waits() {
    let mut locked = Locked::new();
    let mut client = locked.gateway.client();
    for alone in [false, true] {
        send(&mut client, UPDATE);
        locked.until_one_waits(alone);
        client.cancel().unwrap();
        let answer = client.until_ready().unwrap();
        assert_eq!(told(&answer), "57014");
        let text = answer[0].field(b'M').unwrap();
        assert_eq!(text, "canceling statement due to user request");
        locked.until_nobody_waits();
    }
    locked.nothing_comes_of_it();
}

#[test]
fn prepared_statements_that_wait_are_cancelled_and_those_behind_them_go_on() {
    let mut locked = Locked::new();
    let mut client = locked.gateway.client();
    let mut out = Vec::new();
    frontend::parse(&mut out, "u", "update lk set v = $2 where id = $1", &[]);
    for id in ["1", "2"] {
        frontend::bind(&mut out, ("", "u"), &[], &[Some(id), Some("7")], &[]);
        frontend::execute(&mut out, "", 0);
        frontend::sync(&mut out);
    }
    client.send(&out).unwrap();
    locked.until_one_waits(true);
    client.cancel().unwrap();
    assert_eq!(told(&client.until_ready().unwrap()), "57014");
    assert_eq!(told(&client.until_ready().unwrap()), "UPDATE 0");
    locked.nothing_comes_of_it();
}

fn psql(locked: &Locked) -> Child {
    let url = locked.gateway.address.url();
    let mut command = Command::new(psql_program());
    command.args(["-X", "-d", &url, "-c", UPDATE]);
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id().try_into().unwrap()), signal).unwrap();
}

#[test]
fn psql_is_interrupted() {
    let mut locked = Locked::new();
    for alone in [false, true] {
        let child = psql(&locked);
        locked.until_one_waits(alone);
        signal(&child, Signal::SIGINT);
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            said.contains("canceling statement due to user request"),
            "{said}"
        );
        locked.until_nobody_waits();
    }
    locked.nothing_comes_of_it();
}

#[test]
fn who_is_killed_waits_no_longer() {
    let mut locked = Locked::new();
    for alone in [false, true] {
        let mut child = psql(&locked);
        locked.until_one_waits(alone);
        signal(&child, Signal::SIGKILL);
        child.wait().unwrap();
        locked.until_nobody_waits();
    }
    locked.nothing_comes_of_it();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_driver_cancels_by_its_own_token() {
    let mut locked = tokio::task::spawn_blocking(Locked::new).await.unwrap();
    let url = locked.gateway.address.url();
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    let statement = client
        .prepare("update lk set v = 7 where id = $1")
        .await
        .unwrap();
    let token = client.cancel_token();
    let (answer, ()) = tokio::join!(client.execute(&statement, &[&1_i32]), async {
        tokio::task::block_in_place(|| locked.until_one_waits(true));
        token.cancel_query(tokio_postgres::NoTls).await.unwrap();
    });
    let error = answer.unwrap_err();
    assert_eq!(error.code().unwrap().code(), "57014");
    tokio::task::block_in_place(|| locked.nothing_comes_of_it());
}

#[test]
fn a_clients_time_limits_end_its_wait_in_the_servers_words() {
    let mut locked = Locked::new();
    for settings in [
        "set lock_timeout = '50ms'",
        "set lock_timeout = '900ms'",
        "set statement_timeout = '50ms'",
        "set statement_timeout = '900ms'",
    ] {
        let expected = directly(&locked, settings, UPDATE);
        let brief = settings.contains("'50ms'");
        let same = |answer: &[Message]| {
            let said = words(answer);
            // Where little time is left to ask the server, its context may be missing.
            let wanted = |field: &&(u8, String)| !brief || b"SVCM".contains(&field.0);
            for field in expected.iter().filter(wanted) {
                assert!(said.contains(field), "{settings}: {said:?}");
            }
        };
        let mut client = locked.gateway.client();
        client.query(settings).unwrap();
        same(&client.query(UPDATE).unwrap());
        locked.until_nobody_waits();
        let options = settings.replace("set ", "-c").replace([' ', '\''], "");
        let parameters = [("options", options.as_str())];
        let mut client = Client::connect_with(&locked.gateway.address, &parameters).unwrap();
        same(&client.query(UPDATE).unwrap());
    }
    locked.nothing_comes_of_it();
}

/// The time counts from the arrival of the statement, not from its last attempt; what a role has by
/// itself counts too.
#[test]
fn time_limits_of_a_role_are_kept() {
    let mut locked = Locked::new();
    for (setting, code) in [("lock_timeout", "55P03"), ("statement_timeout", "57014")] {
        let role = format!("hasty_{setting}");
        locked.gateway.exec(&format!(
            "create role {role} login; grant all on lk to {role}; alter role {role} set {setting} = 700"
        ));
        let mut hasty = locked.gateway.address.clone();
        hasty.role = role;
        let mut client = Client::connect(&hasty).unwrap();
        // The second time everything is known and prepared.
        for _ in 0..2 {
            let start = Instant::now();
            assert_eq!(told(&client.query(UPDATE).unwrap()), code);
            let took = start.elapsed();
            assert!(took >= Duration::from_millis(650), "{took:?}");
        }
    }
    locked.nothing_comes_of_it();
}

/// A whole table that is locked.
#[test]
fn time_limits_and_cancel_requests_end_the_wait_for_a_table() {
    let mut locked = Locked::new();
    let gateway = &locked.gateway;
    let mut warm = gateway.client();
    assert_eq!(
        told(&warm.query("insert into lk values (2, 0)").unwrap()),
        "INSERT 0 1"
    );
    gateway.exec("delete from lk where id = 2");
    locked
        .holder
        .query("lock table lk in access exclusive mode")
        .unwrap();
    for settings in [
        "set lock_timeout = '200ms'",
        "set statement_timeout = '200ms'",
    ] {
        let expected = directly(&locked, settings, UPDATE);
        let mut client = locked.gateway.client();
        client.query(settings).unwrap();
        let said = words(&client.query(UPDATE).unwrap());
        let code_and_message = |words: &[(u8, String)]| -> Vec<String> {
            let wanted = words.iter().filter(|(code, _)| b"CM".contains(code));
            wanted.map(|(_, text)| text.clone()).collect()
        };
        assert_eq!(
            code_and_message(&said),
            code_and_message(&expected),
            "{settings}"
        );
    }
    let mut client = locked.gateway.client();
    send(&mut client, UPDATE);
    locked.until_one_waits(false);
    client.cancel().unwrap();
    assert_eq!(told(&client.until_ready().unwrap()), "57014");
    locked.until_nobody_waits();
    locked.holder.query("rollback").unwrap();
    assert_eq!(locked.gateway.exec("select v from lk"), "0");
}

/// Requests at any moment: whoever asked is told truly whether it took place, and nobody else
/// notices.
#[test]
fn a_request_that_comes_too_late_meets_nobody_else() {
    let gateway = Gateway::start();
    gateway.exec("create table t (id int primary key, v int)");
    let neighbours: Vec<_> = (1..4)
        .map(|neighbour| {
            let mut client = gateway.client();
            thread::spawn(move || {
                for id in 0..400 {
                    let id = neighbour * 1000 + id;
                    let answer = client.query(&format!("insert into t values ({id}, 0)"));
                    assert_eq!(told(&answer.unwrap()), "INSERT 0 1");
                }
            })
        })
        .collect();
    let mut client = gateway.client();
    let mut done = 0;
    for id in 0..200_u32 {
        send(&mut client, &format!("insert into t values ({id}, 0)"));
        // Some hundred microseconds, spread.
        for _ in 0..(id * 37 % 50) * 2000 {
            std::hint::spin_loop();
        }
        client.cancel().unwrap();
        match &*told(&client.until_ready().unwrap()) {
            "INSERT 0 1" => done += 1,
            "57014" => {}
            other => panic!("{other}"),
        }
    }
    for neighbour in neighbours {
        neighbour.join().unwrap();
    }
    assert_eq!(
        gateway.exec("select count(*) from t where id < 1000"),
        done.to_string()
    );
}

#[test]
fn a_cancel_request_ends_the_wait_for_what_another_session_asks() {
    let mut locked = Locked::new();
    let gateway = &locked.gateway;
    gateway.exec("create table numbered (id bigint generated always as identity, v int)");
    let insert = "insert into numbered (v) values (1) returning id";
    let mut clients = [gateway.client(), gateway.client()];
    for client in &mut clients {
        for sql in ["begin", insert, "commit", "begin"] {
            client.query(sql).unwrap();
        }
    }
    let holder = &mut locked.holder;
    holder.query("rollback; begin").unwrap();
    holder
        .query("alter sequence numbered_id_seq maxvalue 1000000")
        .unwrap();
    let [asks, waits] = &mut clients;
    send(asks, insert);
    locked.until_one_waits(false);
    send(waits, insert);
    waits.cancel().unwrap();
    assert_eq!(told(&waits.until_ready().unwrap()), "57014");
    locked.holder.query("rollback").unwrap();
    assert_eq!(told(&asks.until_ready().unwrap()), "INSERT 0 1");
    for (client, end) in [(asks, "COMMIT"), (waits, "ROLLBACK")] {
        assert_eq!(told(&client.query("commit").unwrap()), end);
    }
}
