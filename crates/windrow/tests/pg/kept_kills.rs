//! The gateway, the server, or both are killed while clients commit transactions that are kept:
//! an answered COMMIT is stored once and whole, one without an answer whole or not at all.
//!
//! `./test kill` is the long form.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Condvar, Mutex};
use std::thread;

use windrow_testkit::pgclient::backend::{self, Message};
use windrow_testkit::pgclient::{Address, Client, frontend};
use windrow_testkit::postgres::{Postgres, psql};
use windrow_testkit::process::Windrow;

use crate::support::{OPEN, TEST_TIMEOUT, serve};

const TABLES: &str = "\
    create table orders (id bigint generated always as identity primary key, \
      tag text not null, q int default 1); \
    create table lines (id serial primary key, order_id bigint not null references orders, n int)";

const STORED: &str = "select o.tag, o.id, o.q, count(l.id), coalesce(sum(l.n), 0) \
    from orders o left join lines l on l.order_id = o.id group by o.id";

const CLIENTS: usize = 12;

/// The environment variable with the number of kills.
const ROUNDS: &str = "WINDROW_KILL_ROUNDS";

const DEFAULT_ROUNDS: usize = 6;

/// What a client knows of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    /// COMMIT was answered; the order has this id.
    Committed(String),
    /// COMMIT was sent and not answered, or answered with 08007.
    Unknown,
    /// A statement was refused with this SQLSTATE.
    Refused(String),
    /// The connection ended before COMMIT, or the client rolled back.
    Absent,
}

/// The transactions of one client by tag.
type Ledger = HashMap<String, Fate>;

/// The address of the gateway; none while it is down or after the last round.
#[derive(Default)]
struct Way {
    address: Mutex<Option<Address>>,
    changed: Condvar,
    is_over: AtomicBool,
}

impl Way {
    fn set(&self, address: Option<Address>) {
        *self.address.lock().unwrap() = address;
        self.changed.notify_all();
    }

    /// Waits for a gateway; none after the last round.
    fn client(&self) -> Option<Client> {
        while !self.is_over.load(Ordering::SeqCst) {
            let guard = self.address.lock().unwrap();
            let (guard, _) = self
                .changed
                .wait_timeout_while(guard, TEST_TIMEOUT, |address| {
                    address.is_none() && !self.is_over.load(Ordering::SeqCst)
                })
                .unwrap();
            let address = guard.clone();
            drop(guard);
            if let Some(client) = address.and_then(|address| Client::connect(&address).ok()) {
                return Some(client);
            }
        }
        None
    }
}

/// Ends the clients when it is dropped, also if a test fails.
struct End<'a>(&'a Way);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::SeqCst);
        self.0.set(None);
    }
}

#[test]
fn a_kept_transaction_outlives_kills_whole_or_not_at_all() {
    let rounds = std::env::var(ROUNDS).map_or(DEFAULT_ROUNDS, |text| text.parse().unwrap());
    let server = Postgres::builder().fsync(true).start().unwrap();
    let direct = Address::of(&server.create_database().unwrap()).unwrap();
    psql(&direct.url(), TABLES).unwrap();
    is_kept(&direct);
    let way = Way::default();
    let (events, progress) = channel();
    let ledgers = thread::scope(|scope| {
        let start = |number| {
            let (way, events) = (&way, events.clone());
            scope.spawn(move || write(number, way, &events))
        };
        let clients: Vec<_> = (0..CLIENTS).map(start).collect();
        kill(rounds, &server, &direct, &way, &progress);
        let ledgers = clients.into_iter().map(|client| client.join().unwrap());
        ledgers.flatten().collect::<Ledger>()
    });
    verify(&ledgers, &psql(&direct.url(), STORED).unwrap());
}

/// Asserts that the server knows nothing of the transactions that this test is about.
fn is_kept(direct: &Address) {
    let (_windrow, address) = serve(direct, &[]);
    let mut client = Client::connect(&address).unwrap();
    let mut run = |sql: &str, values: &[Option<&str>]| sent(&mut client, sql, values);
    begun(&mut run, "one").unwrap();
    assert_eq!(psql(&direct.url(), OPEN).unwrap(), "0");
}

/// Kills in turn the gateway, the server, and both, each after some more answers.
fn kill(rounds: usize, server: &Postgres, direct: &Address, way: &Way, progress: &Receiver<()>) {
    let mut gateway = None::<Windrow>;
    let _end = End(way);
    for round in 0..=rounds {
        let windrow = gateway.get_or_insert_with(|| {
            let (windrow, address) = serve(direct, &["--away-wait", "100ms"]);
            way.set(Some(address));
            windrow
        });
        // Answers of the round before are not counted.
        while progress.try_recv().is_ok() {}
        for _ in 0..rand::random_range(20..400_u32) {
            progress.recv_timeout(TEST_TIMEOUT).expect("clients go on");
        }
        if round == rounds {
            break;
        }
        if round % 3 != 1 {
            way.set(None);
            windrow.kill9().unwrap();
            gateway = None;
        }
        if round % 3 != 0 {
            server.kill9().unwrap();
            server.restart().unwrap();
        }
    }
}

/// Commits transactions until the end, through whichever gateway there is.
fn write(number: usize, way: &Way, events: &Sender<()>) -> Ledger {
    let mut ledger = Ledger::new();
    let mut tags = (0..).map(|n| format!("{number}-{n}"));
    while let Some(mut client) = way.client() {
        let mut is_alive = true;
        while is_alive && !way.is_over.load(Ordering::SeqCst) {
            let tag = tags.next().unwrap();
            let (fate, ready) = transaction(&mut client, &tag, events);
            ledger.insert(tag, fate);
            is_alive = ready;
        }
    }
    ledger
}

/// One order with lines. Returns its fate, and true if the session goes on.
fn transaction(client: &mut Client, tag: &str, events: &Sender<()>) -> (Fate, bool) {
    let mut run = |sql: &str, values: &[Option<&str>]| {
        let answer = sent(client, sql, values)?;
        events.send(()).ok();
        Some(answer)
    };
    let id = match begun(&mut run, tag) {
        Ok(id) if !tag.ends_with('7') => id,
        not_committed => {
            let fate = not_committed.err().unwrap_or(Fate::Absent);
            return (fate, run("rollback", &[]).is_some());
        }
    };
    match run("commit", &[]) {
        None => (Fate::Unknown, false),
        Some(answer) => match backend::sqlstate(&answer).as_deref() {
            None => (Fate::Committed(id), is_ready(&answer)),
            Some("08007") => (Fate::Unknown, is_ready(&answer)),
            Some(code) => (Fate::Refused(code.to_owned()), is_ready(&answer)),
        },
    }
}

/// Sends all before the end. Returns the number of the order.
///
/// # Errors
/// The fate of a transaction that is not committed.
fn begun(
    run: &mut impl FnMut(&str, &[Option<&str>]) -> Option<Vec<Message>>,
    tag: &str,
) -> Result<String, Fate> {
    let mut good = |sql: &str, values: &[Option<&str>]| {
        let answer = run(sql, values).ok_or(Fate::Absent)?;
        match backend::sqlstate(&answer) {
            Some(code) => Err(Fate::Refused(code)),
            None => Ok(answer),
        }
    };
    good("begin", &[])?;
    let order = "insert into orders (tag) values ($1) returning id";
    let id = backend::first_value(&good(order, &[Some(tag)])?).ok_or(Fate::Absent)?;
    let line = "insert into lines (order_id, n) values ($1, $2)";
    good(line, &[Some(&id), Some("1")])?;
    good("savepoint a", &[])?;
    good(line, &[Some(&id), Some("100")])?;
    good("rollback to a", &[])?;
    good(line, &[Some(&id), Some("2")])?;
    // What is kept is replayed before this one.
    if tag.ends_with('3') {
        good("update orders set q = q where id = $1", &[Some(&id)])?;
    }
    Ok(id)
}

/// The answer; none if the connection ended without one.
fn sent(client: &mut Client, sql: &str, values: &[Option<&str>]) -> Option<Vec<Message>> {
    let mut out = Vec::new();
    frontend::parse(&mut out, "", sql, &[]);
    frontend::bind(&mut out, ("", ""), &[], values, &[]);
    frontend::describe(&mut out, b'P', "");
    frontend::execute(&mut out, "", 0);
    frontend::sync(&mut out);
    client.send(&out).ok()?;
    let answer = client.until_ready().ok()?;
    (!answer.is_empty()).then_some(answer)
}

fn is_ready(answer: &[Message]) -> bool {
    answer.last().is_some_and(|message| message.tag == b'Z')
}

#[expect(
    clippy::print_stdout,
    reason = "the figures of a run are a part of its result"
)]
fn verify(ledger: &Ledger, stored: &str) {
    let mut rows: HashMap<&str, Vec<&str>> = HashMap::new();
    for row in stored.lines() {
        let (tag, row) = row.split_once('|').unwrap();
        rows.entry(tag).or_default().push(row);
    }
    let mut figures: BTreeMap<String, usize> = BTreeMap::new();
    for (tag, fate) in ledger {
        let rows = rows.remove(tag.as_str()).unwrap_or_default();
        let whole = |row: &str| row.split_once('|').is_some_and(|(_, rest)| rest == "1|2|3");
        let is_right = match (fate, rows.as_slice()) {
            (Fate::Committed(id), [row]) => row.starts_with(&format!("{id}|")) && whole(row),
            (Fate::Unknown, [row]) => whole(row),
            (Fate::Committed(_), _) => false,
            // The server or its connection was gone; nothing else is wrong with a statement.
            (Fate::Refused(code), rows) => rows.is_empty() && is_outage(code),
            (_, rows) => rows.is_empty(),
        };
        assert!(
            is_right,
            "transaction {tag}: {fate:?}, but stored is {rows:?}"
        );
        let name = match (fate, rows.len()) {
            (Fate::Committed(_), _) => "committed".to_owned(),
            (Fate::Unknown, 0) => "unknown, not stored".to_owned(),
            (Fate::Unknown, _) => "unknown, stored".to_owned(),
            (other, _) => format!("{other:?}"),
        };
        *figures.entry(name).or_default() += 1;
    }
    println!("{figures:?}");
    assert!(rows.is_empty(), "nobody wrote {rows:?}");
}

/// True if a SQLSTATE says that the server was not there.
fn is_outage(code: &str) -> bool {
    ["08", "57"].iter().any(|class| code.starts_with(class))
}
