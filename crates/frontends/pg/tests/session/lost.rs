//! Server connections that are lost: whoever may have committed something is told that nobody knows
//! (08007), everybody else that the connection is gone (57P01).

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use windrow_pg::PgConfig;
use windrow_pgwire::Target;
use windrow_testkit::pgclient::{Client, backend, frontend};
use windrow_testkit::proxy::{Direction, Proxy};

use crate::support::{Stand, commands, tags};

const TABLES: &str = "create table w (id int primary key);
    create procedure p() language plpgsql as $$ begin insert into w values (1); commit; end $$";

/// More bytes than all questions that the frontend asks for itself about a text.
const LONG: u64 = 50_000;

/// The time after which messages are taken for held back if nothing says so.
const WAIT: Duration = Duration::from_secs(60);

/// Attempts to lose a connection while it has all messages.
const MAX_ATTEMPTS: usize = 4;

const UNKNOWN: &str = "08007";
const GONE: &str = "57P01";

/// A frontend whose relay reaches the server over a proxy.
pub(crate) fn over_a_proxy() -> (Stand, Proxy, Runtime) {
    over_a_proxy_with(|_| {})
}

/// The same with other settings.
pub(crate) fn over_a_proxy_with(change: impl FnOnce(&mut PgConfig)) -> (Stand, Proxy, Runtime) {
    let runtime = Runtime::new().unwrap();
    let mut started = None;
    let stand = Stand::at(
        |config, direct| {
            let starting = Proxy::builder(direct.socket.to_string()).start();
            let proxy = runtime.block_on(starting).unwrap();
            let url = direct.at(proxy.address()).url();
            config.databases[0].target = Target::parse(&url).unwrap();
            started = Some(proxy);
            change(config);
        },
        64 << 20,
    );
    (stand, started.unwrap(), runtime)
}

/// A client. Connections that were just cut may still be on their way out.
fn come(stand: &Stand) -> Client {
    let mut tries = (0..1000).map(|_| Client::connect(&stand.address()));
    tries.find_map(Result::ok).unwrap()
}

/// Sends messages whose answers never come, loses the connection, and returns the client's error.
/// `None`: the messages had not reached the server, because the frontend has a question about them
/// first, whose answer does not come either. Then they are executed on another connection.
fn lost(proxy: &Proxy, client: &mut Client, messages: &[u8]) -> Option<String> {
    proxy.pause(Direction::ToClient);
    let before = proxy.bytes(Direction::ToServer);
    let answers = proxy.bytes(Direction::ToClient);
    client.send(messages).unwrap();
    // Texts are so long that nothing else on the line matters.
    let start = Instant::now();
    let nearly_all = u64::try_from(messages.len()).unwrap() - LONG / 2;
    let passed = || proxy.bytes(Direction::ToServer) >= before + nearly_all;
    // The server has answered something that is shorter than any of the messages.
    let asked = || {
        let is_answered = proxy.bytes(Direction::ToClient) > answers;
        is_answered && proxy.bytes(Direction::ToServer) < before + LONG
    };
    while !passed() && !asked() && start.elapsed() < WAIT {
        std::thread::yield_now();
    }
    proxy.cut();
    let mut told = None;
    if passed() {
        let answer: Vec<_> = std::iter::from_fn(|| client.receive().unwrap()).collect();
        told = Some(backend::sqlstate(&answer).ok_or(answer).unwrap());
    }
    // Not before: an answer that is let go on may overtake the cut.
    proxy.resume(Direction::ToClient);
    told
}

/// A text that is longer than all that the frontend asks for itself.
fn long(sql: &str) -> String {
    format!("{sql} /* {} */", "x".repeat(100_000))
}

fn queries(texts: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    let query = |sql: &&str| frontend::query(&mut out, &long(sql));
    texts.iter().for_each(query);
    out
}

/// Parse, Bind and Execute of each text.
fn executed(texts: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    for sql in texts {
        frontend::parse(&mut out, "", &long(sql), &[]);
        frontend::bind(&mut out, ("", ""), &[], &[None::<&str>; 0], &[]);
        frontend::execute(&mut out, "", 0);
    }
    out
}

fn synced(mut out: Vec<u8>) -> Vec<u8> {
    frontend::sync(&mut out);
    out
}

fn flushed(mut out: Vec<u8>) -> Vec<u8> {
    frontend::flush(&mut out);
    out
}

fn copied(sql: &str) -> Vec<u8> {
    let mut out = queries(&[sql]);
    frontend::copy_data(&mut out, b"7\n");
    frontend::copy_done(&mut out);
    out
}

#[test]
fn what_may_be_committed_is_told_as_unknown() {
    let (stand, proxy, _runtime) = over_a_proxy();
    stand.executes(TABLES);
    const INSERT: &str = "insert into w select 1";
    let open = ["begin", INSERT];
    let failed = ["begin", INSERT, "select 1/0"];
    let read = "select count(*) from w";
    let cases: &[(&[&str], Vec<u8>, &str)] = &[
        (&open, queries(&["commit"]), UNKNOWN),
        (&open, queries(&["end; select 1"]), UNKNOWN),
        (&open, queries(&["commit and chain"]), UNKNOWN),
        (&open, queries(&["prepare transaction 'x'"]), UNKNOWN),
        (&[], queries(&["commit prepared 'x'"]), UNKNOWN),
        (&[], queries(&["notify c"]), UNKNOWN),
        (
            &["begin", INSERT, "savepoint s", "select 1/0"],
            queries(&["rollback to s", "commit"]),
            UNKNOWN,
        ),
        (
            &["select lo_create(0)"],
            queries(&["select lo_create(0)"]),
            UNKNOWN,
        ),
        (&open, synced(executed(&["commit"])), UNKNOWN),
        (&open, flushed(executed(&["commit"])), UNKNOWN),
        (&[], queries(&[INSERT]), UNKNOWN),
        (
            &[],
            queries(&["insert into w select 1; insert into w select 2"]),
            UNKNOWN,
        ),
        (
            &[],
            queries(&["begin; insert into w select 1; commit"]),
            UNKNOWN,
        ),
        (&[], queries(&["begin", INSERT, "commit"]), UNKNOWN),
        (&[], synced(executed(&["begin", INSERT, "commit"])), UNKNOWN),
        (&[], synced(executed(&[INSERT])), UNKNOWN),
        (&[], queries(&["call p()"]), UNKNOWN),
        (&[], flushed(executed(&["call p()"])), UNKNOWN),
        (
            &[],
            queries(&["do $$ begin insert into w values (1); end $$"]),
            UNKNOWN,
        ),
        (&[], queries(&["create table made ()"]), UNKNOWN),
        (&[], copied("copy w from stdin"), UNKNOWN),
        (
            &["listen c"],
            queries(&["insert into w values (1)"]),
            UNKNOWN,
        ),
        (
            &["set windrow.join = off"],
            queries(&["insert into w values (1)"]),
            UNKNOWN,
        ),
        (
            &[
                "set windrow.defer = on",
                "begin",
                "insert into w values (1)",
                "select 1",
            ],
            queries(&["commit"]),
            UNKNOWN,
        ),
        (&open, queries(&[INSERT]), GONE),
        (&open, queries(&["rollback"]), GONE),
        (
            &open,
            queries(&["savepoint a; insert into w values (2); release a"]),
            GONE,
        ),
        (&open, copied("copy w from stdin"), GONE),
        (&open, queries(&["call p()"]), GONE),
        (&failed, queries(&["commit"]), GONE),
        (&[], queries(&["begin", INSERT]), GONE),
        (&[], synced(executed(&["begin", INSERT])), GONE),
        (&[], flushed(executed(&[INSERT])), GONE),
        (&[read], queries(&[read]), GONE),
        (&[], queries(&["show work_mem"]), GONE),
    ];
    let mut reached = 0;
    for (before, messages, expected) in cases {
        let text = String::from_utf8_lossy(messages);
        let text = text.replace(&"x".repeat(100_000), "");
        // The next attempt has no question left.
        let told = (0..MAX_ATTEMPTS).find_map(|_| {
            stand.executes("truncate w; drop table if exists made");
            let mut client = come(&stand);
            // A connection is there.
            client.query("select 1").unwrap();
            for sql in *before {
                client.query(sql).unwrap();
            }
            lost(&proxy, &mut client, messages)
        });
        // Some have a question each time.
        if let Some(told) = told {
            assert_eq!(told, *expected, "{before:?} {text:?}");
            reached += 1;
        }
    }
    assert!(
        reached * 4 >= cases.len() * 3,
        "{reached} of {}",
        cases.len()
    );
}

/// Half a message is no reason to wait for the rest, and no place for an error.
#[test]
fn a_connection_that_breaks_within_an_answer_ends_the_session() {
    let (stand, proxy, _runtime) = over_a_proxy();
    for allowed in (1..110).step_by(3) {
        let mut client = come(&stand);
        while client
            .query("begin; select 1")
            .unwrap()
            .last()
            .is_none_or(|last| last.tag != b'Z')
        {
            client = come(&stand);
        }
        proxy.cut_after(Direction::ToClient, allowed);
        client
            .send(&queries(&["select 'some text' from generate_series(1, 3)"]))
            .unwrap();
        let mut told = Vec::new();
        // What broke off is no message.
        while let Ok(Some(message)) = client.receive() {
            told.push(message.tag);
        }
        assert!(!told.contains(&b'Z'), "{allowed} {told:?}");
    }
}

/// The error that a server sends before it closes a connection.
const FATAL: &[u8] = b"E\0\0\0\x38SFATAL\0VFATAL\0C57P01\0Mterminating connection: stop\0\0";

/// The end of the answer to a COMMIT.
const COMMITTED: &[u8] = b"COMMIT\0Z\0\0\0\x05I";

/// Starts a server that ends a connection right after its answer to the next COMMIT, once it is
/// armed.
fn ending_server(server: SocketAddr, armed: Arc<AtomicBool>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let server = TcpStream::connect(server).unwrap();
            let (from_client, to_server) =
                (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || pass(from_client, to_server, None));
            let armed = Arc::clone(&armed);
            std::thread::spawn(move || pass(server, client, Some(&armed)));
        }
    });
    address
}

/// Passes bytes on until either end closes the connection.
fn pass(mut from: TcpStream, mut to: TcpStream, armed: Option<&AtomicBool>) {
    let mut piece = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut piece) {
        let mut bytes = piece[..count].to_vec();
        let ends =
            bytes.ends_with(COMMITTED) && armed.is_some_and(|a| a.swap(false, Ordering::SeqCst));
        if ends {
            bytes.extend_from_slice(FATAL);
        }
        // The client closes a connection whose server has ended.
        if to.write_all(&bytes).is_err() {
            break;
        }
    }
    drop(from.shutdown(Shutdown::Both));
    drop(to.shutdown(Shutdown::Both));
}

/// A session whose server ends the connection after COMMIT. `first`: its first statement.
fn ended_after_commit(first: &str) -> (Stand, Client) {
    let armed = Arc::<AtomicBool>::default();
    let stand = Stand::at(
        |config, direct| {
            let address = ending_server(direct.socket, Arc::clone(&armed));
            let url = direct.at(address).url();
            config.databases[0].target = Target::parse(&url).unwrap();
        },
        64 << 20,
    );
    let mut client = stand.client();
    client.query(first).unwrap();
    // What the statements leave behind is known from the second time on.
    for round in 0..4 {
        client.query("begin").unwrap();
        client
            .query("select id from t where id = 0 for update")
            .unwrap();
        client.query("update t set v = 'b' where id = 0").unwrap();
        armed.store(round == 3, Ordering::SeqCst);
        assert_eq!(tags(&client.query("commit").unwrap()), "CZ");
    }
    (stand, client)
}

#[test]
fn a_server_that_ends_after_a_commit_ends_no_session_without_state() {
    let (_stand, mut client) = ended_after_commit("insert into t values (0, 'a')");
    for id in 1..3 {
        let answer = client
            .query(&format!("insert into t values ({id}, 'a')"))
            .unwrap();
        assert_eq!(tags(&answer), "CZ");
        assert_eq!(commands(&answer), ["INSERT 0 1"]);
    }
}

#[test]
fn nothing_is_executed_after_the_servers_last_error() {
    let (stand, mut client) = ended_after_commit("create temp table kept (id int)");
    let last = client.receive().unwrap().unwrap();
    assert_eq!(last.sqlstate().as_deref(), Some(GONE));
    let mut insert = Vec::new();
    frontend::query(&mut insert, "insert into t values (1, 'a')");
    // The session may have ended before.
    drop(client.send(&insert));
    assert!(!matches!(client.receive(), Ok(Some(_))));
    assert_eq!(stand.executes("select count(*) from t"), "0");
}
