//! Clients that insert and remember what they were told.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use windrow_testkit::pgclient::{Address, Client, Message, frontend};

use crate::support::TEST_TIMEOUT;

/// The table that the load writes to.
pub const TABLE: &str = "create table readings (id bigint primary key, note text)";

/// What one client was told, by id.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Confirmed.
    pub written: Vec<u64>,
    /// Refused, or confirmed as no row, with the SQLSTATE or command.
    pub refused: Vec<(u64, String)>,
    /// Said to be unknown, or not answered at all.
    pub unknown: Vec<u64>,
}

/// Counts answers for those who wait.
#[derive(Default)]
struct Counter {
    count: Mutex<u64>,
    changed: Condvar,
}

/// A load under way.
pub struct Load {
    stop: Arc<AtomicBool>,
    answered: Arc<Counter>,
    clients: Vec<JoinHandle<Ledger>>,
}

impl Load {
    /// So many clients, half of them with prepared statements, half with simple queries.
    pub fn start(address: &Address, clients: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let answered = Arc::new(Counter::default());
        let clients = (0..clients)
            .map(|number| {
                let writer = Writer {
                    address: address.clone(),
                    number,
                    stop: Arc::clone(&stop),
                    answered: Arc::clone(&answered),
                };
                thread::spawn(move || writer.run())
            })
            .collect();
        Self {
            stop,
            answered,
            clients,
        }
    }

    /// Waits until so many more writes were confirmed.
    pub fn wait(&self, more: u64) {
        let start = Instant::now();
        let mut count = self.answered.count.lock().unwrap();
        let wanted = *count + more;
        while *count < wanted {
            let left = TEST_TIMEOUT.checked_sub(start.elapsed());
            let left =
                left.unwrap_or_else(|| panic!("{} of {wanted} writes were confirmed", *count));
            count = self.answered.changed.wait_timeout(count, left).unwrap().0;
        }
    }

    /// Ends it.
    pub fn end(self) -> Vec<Ledger> {
        self.stop.store(true, Ordering::SeqCst);
        self.clients
            .into_iter()
            .map(|c| c.join().unwrap())
            .collect()
    }
}

struct Writer {
    address: Address,
    number: u64,
    stop: Arc<AtomicBool>,
    answered: Arc<Counter>,
}

impl Writer {
    fn run(self) -> Ledger {
        let mut ledger = Ledger::default();
        let mut client = None;
        let mut ids = (self.number + 1) * 10_000_000..;
        while !self.stop.load(Ordering::SeqCst) {
            let Some(connected) = client.as_mut() else {
                client = self.connect();
                continue;
            };
            let id = ids.next().unwrap();
            match self.write(connected, id) {
                Some(answer) => self.note(&mut ledger, id, &answer, &mut client),
                None => {
                    ledger.unknown.push(id);
                    client = None;
                }
            }
        }
        ledger
    }

    fn connect(&self) -> Option<Client> {
        let mut client = Client::connect(&self.address).ok()?;
        let mut out = Vec::new();
        frontend::parse(
            &mut out,
            "w",
            "insert into readings (id, note) values ($1, $2)",
            &[],
        );
        frontend::describe(&mut out, b'S', "w");
        frontend::sync(&mut out);
        client.send(&out).ok()?;
        let answer = client.until_ready().ok()?;
        let ready = answer.last().is_some_and(|m| m.tag == b'Z');
        (ready && answer.iter().all(|m| m.tag != b'E')).then_some(client)
    }

    /// `None`: the connection ended without a word.
    fn write(&self, client: &mut Client, id: u64) -> Option<Vec<Message>> {
        let mut out = Vec::new();
        if self.number.is_multiple_of(2) {
            let values = [Some(id.to_string()), Some(format!("note {id}"))];
            frontend::bind(&mut out, ("", "w"), &[], &values, &[]);
            frontend::execute(&mut out, "", 0);
            frontend::sync(&mut out);
        } else {
            let sql = format!("insert into readings (id, note) values ({id}, 'note {id}')");
            frontend::query(&mut out, &sql);
        }
        client.send(&out).ok()?;
        let answer = client.until_ready().ok()?;
        (!answer.is_empty()).then_some(answer)
    }

    fn note(&self, ledger: &mut Ledger, id: u64, answer: &[Message], client: &mut Option<Client>) {
        let ready = answer.last().is_some_and(|m| m.tag == b'Z');
        let command = answer.iter().find_map(Message::command);
        let error = answer.iter().find_map(Message::sqlstate);
        match (error.as_deref(), command.as_deref()) {
            (Some("08007"), _) => ledger.unknown.push(id),
            (Some(code), _) => ledger.refused.push((id, code.to_owned())),
            (None, Some("INSERT 0 1")) if ready => {
                ledger.written.push(id);
                *self.answered.count.lock().unwrap() += 1;
                self.answered.changed.notify_all();
            }
            (None, Some(command)) if ready => ledger.refused.push((id, command.to_owned())),
            _ => ledger.unknown.push(id),
        }
        // A client that is told FATAL, or no longer understands its statement, begins anew.
        if !ready || error.is_some_and(|code| code.starts_with("26") || code == "0A000") {
            *client = None;
        }
    }
}

/// Nobody was told what is not true: what was confirmed is there with its own note, what was
/// refused is not, and nothing is there that nobody knows of. `tables`: where rows may be.
pub fn verify(ledgers: &[Ledger], direct: &Address, tables: &[&str]) {
    let there = stored(direct, tables);
    let mut known: HashSet<u64> = HashSet::new();
    for ledger in ledgers {
        for id in &ledger.written {
            assert_eq!(there.get(id), Some(&1), "{id} was confirmed");
        }
        for (id, why) in &ledger.refused {
            assert_eq!(there.get(id), None, "{id} was refused: {why}");
        }
        known.extend(ledger.written.iter().chain(&ledger.unknown));
    }
    let strange: Vec<_> = there.keys().filter(|id| !known.contains(id)).collect();
    assert!(strange.is_empty(), "nobody was told of {strange:?}");
}

fn stored(direct: &Address, tables: &[&str]) -> HashMap<u64, u64> {
    let all = tables
        .iter()
        .map(|table| format!("select id, note from {table}"));
    let all = all.collect::<Vec<_>>().join(" union all ");
    let sql = format!(
        "select id || ' ' || count(*) from ({all}) t where note like 'note ' || id || '%' group by id"
    );
    let text = windrow_testkit::postgres::psql(&direct.url(), &sql).unwrap();
    let number = |text: &str| text.parse().unwrap();
    text.lines()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(id, count)| (number(id), number(count)))
        .collect()
}

/// All reasons of refusals, with their numbers.
pub fn refusals(ledgers: &[Ledger]) -> HashMap<String, usize> {
    let mut reasons = HashMap::new();
    for (_, why) in ledgers.iter().flat_map(|l| &l.refused) {
        *reasons.entry(why.clone()).or_default() += 1;
    }
    reasons
}
