//! Values of sequences in sessions that share fewer server connections than there are sessions.

use std::thread;
use std::time::{Duration, Instant};

use windrow_testkit::pgclient::backend::{first_value, sqlstate};
use windrow_testkit::pgclient::{Address, Client, frontend};
use windrow_testkit::proxy::Proxy;

use crate::lost::over_a_proxy_with;
use crate::support::{Stand, segment};

/// Locks of the sequence.
const WAITS: &str = "relation = 'g_id_seq'::regclass";

/// Takes a value from the sequence of `g`, in a statement that is never joined.
const TAKES: &str = "insert into g (v) select 'x' returning id";

fn ask(client: &mut Client, sql: &str) -> Result<String, String> {
    let answer = client.query(sql).unwrap();
    first_value(&answer).ok_or_else(|| sqlstate(&answer).unwrap_or_default())
}

/// Sends a query without waiting for its answer, and waits until it waits for a server connection.
fn wait_with(stand: &Stand, client: &mut Client, sql: &str) {
    let mut out = Vec::new();
    frontend::query(&mut out, sql);
    client.send(&out).unwrap();
    let mut console = Client::connect(&Address {
        database: "windrow".to_owned(),
        ..stand.address()
    })
    .unwrap();
    until(|| {
        let clients = console.query("show clients").unwrap();
        let rows = clients.iter().filter(|message| message.tag == b'D');
        let mut states = rows.filter_map(|row| row.values().into_iter().nth(5).flatten());
        states.any(|state| state == b"waiting")
    });
}

fn until(mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60));
    }
}

fn over_one_connection() -> (Stand, Proxy, tokio::runtime::Runtime) {
    let (stand, proxy, runtime) = over_a_proxy_with(|config| config.max_server_connections = 1);
    stand.executes("create table g (id serial, v text)");
    (stand, proxy, runtime)
}

#[test]
fn values_are_asked_for_behind_the_end_of_a_block() {
    let (stand, proxy, _runtime) = over_one_connection();
    let (mut a, mut b) = (stand.client(), stand.client());
    let ends: [fn(&mut Client); 3] = [
        |client| drop(client.query("commit").unwrap()),
        |client| drop(client.query("rollback").unwrap()),
        |client| {
            segment(client, |out| {
                frontend::parse(out, "", "end", &[]);
                frontend::bind(out, ("", ""), &[], &[None::<&str>; 0], &[]);
                frontend::execute(out, "", 0);
            });
        },
    ];
    // The catalog is asked about the statements, which happens once.
    for client in [&mut a, &mut b] {
        client.query(TAKES).unwrap();
        client.query("select 1").unwrap();
    }
    for end in ends {
        let mut trips = || {
            a.query("begin").unwrap();
            let own = ask(&mut a, TAKES);
            wait_with(&stand, &mut b, "select 1");
            let before = proxy.round_trips();
            end(&mut a);
            b.until_ready().unwrap();
            let trips = proxy.round_trips() - before;
            assert_eq!(ask(&mut b, "select lastval()"), Ok("2".to_owned()));
            assert_eq!(ask(&mut a, "select lastval()"), own);
            assert_eq!(ask(&mut a, "select currval('g_id_seq')"), own);
            trips
        };
        // Each second, a session also asks if the catalog is as it was.
        let all: Vec<_> = (0..5).map(|_| trips()).collect();
        assert!(all.contains(&2), "of each session one: {all:?}");
    }
}

#[test]
fn a_block_that_takes_no_value_after_all_knows_none() {
    let (stand, _proxy, _runtime) = over_one_connection();
    let (mut a, mut b) = (stand.client(), stand.client());
    for _ in 0..3 {
        a.query("begin").unwrap();
        a.query("insert into g (id) select 50").unwrap();
        wait_with(&stand, &mut b, "begin; select 1");
        a.query("commit").unwrap();
        b.until_ready().unwrap();
        // The connection is another session's, of which the first one knows nothing.
        let own = ask(&mut b, TAKES);
        assert_eq!(ask(&mut a, "select lastval()"), Err("55000".to_owned()));
        b.query("commit").unwrap();
        assert_eq!(ask(&mut a, "select lastval() + 0"), Err("55000".to_owned()));
        assert_eq!(ask(&mut b, "select lastval()"), own);
    }
}

#[test]
fn a_session_survives_the_connection_that_is_asked_for_its_values() {
    let (stand, _proxy, _runtime) = over_one_connection();
    let (mut a, mut b) = (stand.client(), stand.client());
    a.query("begin").unwrap();
    ask(&mut a, TAKES).unwrap();
    let backend = ask(&mut a, "select pg_backend_pid()").unwrap();
    // It gets its lock when the transaction ends, before the question.
    let mut holder = stand.direct();
    let mut out = Vec::new();
    frontend::query(&mut out, "begin; alter sequence g_id_seq increment 2");
    holder.send(&out).unwrap();
    let locked = format!("select 1 from pg_locks where {WAITS} and not granted");
    until(|| stand.executes(&locked) == "1");
    wait_with(&stand, &mut b, "select 1");
    a.query("commit").unwrap();
    holder.until_ready().unwrap();
    let asked = format!("select 1 from pg_locks where {WAITS} and pid = {backend}");
    until(|| stand.executes(&asked) == "1");
    stand.executes(&format!("select pg_terminate_backend({backend})"));
    assert_eq!(first_value(&b.until_ready().unwrap()).as_deref(), Some("1"));
    assert_eq!(ask(&mut a, "select 1"), Ok("1".to_owned()));
}

#[test]
fn each_session_of_a_crowd_knows_its_own_value() {
    let (stand, _proxy, _runtime) = over_one_connection();
    thread::scope(|scope| {
        for number in 0..4 {
            let mut client = stand.client();
            scope.spawn(move || {
                for round in 0..50 {
                    client.query("begin").unwrap();
                    let own = ask(&mut client, TAKES);
                    assert!(own.is_ok(), "{own:?}");
                    client.query("commit").unwrap();
                    if (round + number) % 3 == 0 {
                        assert_eq!(ask(&mut client, "select lastval()"), own);
                    }
                    if (round + number) % 5 == 0 {
                        assert_eq!(ask(&mut client, "select currval('g_id_seq') + 0"), own);
                    }
                }
            });
        }
    });
}
