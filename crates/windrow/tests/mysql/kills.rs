//! The gateway, the server, or both are killed while clients write: a row with an answer is stored
//! once, one that was refused is not stored, and one whose fate is not known is reported so.

use std::collections::{BTreeMap, HashMap};

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use windrow_mysqlwire::Target;
use windrow_testkit::mariadb::{MariaDb, sql};
use windrow_testkit::process::Windrow;

use crate::raw::{LoginForm, Packets, RawClient, error, execute, success};
use crate::support::{TEST_TIMEOUT, TRIED, create, serve, url};

const TABLES: &str = "\
    create table events (id bigint auto_increment primary key, tag varchar(20) not null, key (tag)); \
    create table counters (id int primary key, n bigint not null)";

const CLIENTS: usize = 12;

/// The environment variable with the number of kills.
const ROUNDS: &str = "WINDROW_KILL_ROUNDS";

const DEFAULT_ROUNDS: usize = 6;

/// A write, as far as its client knows.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    /// The write was answered; the row has this id.
    Done(u64),
    /// The write was not answered, or with an error that says that its fate is unknown.
    Unknown,
    /// The write was refused with this SQLSTATE and message.
    Refused(String),
}

/// The ledger of one client.
#[derive(Debug, Default)]
struct Ledger {
    /// Inserted rows by tag.
    rows: HashMap<String, Fate>,
    /// Additions to the client's own counter that were answered, and those that may have been made.
    added: u64,
    perhaps: u64,
}

/// The way to the gateway: `None` while it is down. The sender is dropped after the last round.
type Way = watch::Receiver<Option<Target>>;

#[tokio::test(flavor = "multi_thread")]
async fn every_answered_write_outlives_kills_once() {
    let rounds = std::env::var(ROUNDS).map_or(DEFAULT_ROUNDS, |text| text.parse().unwrap());
    let server = MariaDb::builder().fsync(true).start().unwrap();
    let direct = create(&server, TRIED);
    sql(&url(&direct), TABLES).unwrap();
    let (set, way) = watch::channel(None);
    let (events, mut progress) = mpsc::unbounded_channel();
    let mut running = JoinSet::new();
    for number in 0..CLIENTS {
        let text = format!("insert into counters values ({number}, 0)");
        sql(&url(&direct), &text).unwrap();
        let writer = Writer {
            number,
            way: way.clone(),
            events: events.clone(),
            ledger: Ledger::default(),
        };
        running.spawn(writer.run());
    }
    kill(rounds, &server, &direct, &set, &mut progress).await;
    drop(set);
    let ledgers = timeout(TEST_TIMEOUT, running.join_all()).await.unwrap();
    verify(ledgers, &direct);
}

/// Kills in turn the gateway, the server, and both, each after some more answers.
async fn kill(
    rounds: usize,
    server: &MariaDb,
    direct: &Target,
    set: &watch::Sender<Option<Target>>,
    progress: &mut mpsc::UnboundedReceiver<()>,
) {
    let mut gateway = None::<Windrow>;
    for round in 0..=rounds {
        let windrow = gateway.get_or_insert_with(|| {
            let (windrow, through) = serve(direct, &["--away-wait", "100ms"]);
            set.send_replace(Some(through));
            windrow
        });
        // Answers of the round before are not counted.
        while progress.try_recv().is_ok() {}
        for _ in 0..rand::random_range(20..400_u32) {
            let next = timeout(TEST_TIMEOUT, progress.recv()).await;
            next.expect("clients go on");
        }
        if round == rounds {
            break;
        }
        if round % 3 != 1 {
            set.send_replace(None);
            windrow.kill9().unwrap();
            gateway = None;
        }
        if round % 3 != 0 {
            server.kill9().unwrap();
            server.restart().unwrap();
        }
    }
}

struct Writer {
    number: usize,
    way: Way,
    events: mpsc::UnboundedSender<()>,
    ledger: Ledger,
}

impl Writer {
    /// Writes until the end, through whichever gateway there is.
    async fn run(mut self) -> (usize, Ledger) {
        let mut numbers = 0..;
        while let Some(mut client) = self.client().await {
            let update = b"update counters set n = n + 1 where id = ?";
            let insert = b"insert into events (tag) values (?)";
            let mut is_alive = client.prepare(0, insert).await.is_ok()
                && client.prepare(1, update).await.is_ok()
                && client.id(0).is_some()
                && client.id(1).is_some();
            while is_alive && self.way.has_changed().is_ok() {
                is_alive = self.write(&mut client, numbers.next().unwrap()).await;
            }
        }
        (self.number, self.ledger)
    }

    /// Waits for a gateway; `None` after the last round.
    async fn client(&mut self) -> Option<RawClient> {
        loop {
            let target = self.way.wait_for(Option::is_some).await.ok()?.clone()?;
            self.way.has_changed().ok()?;
            let connected = RawClient::connect(&target, &LoginForm::default()).await;
            match connected {
                Ok((client, _)) => return Some(client),
                Err(_) => tokio::task::yield_now().await,
            }
        }
    }

    /// Writes once. Returns true if the session goes on.
    async fn write(&mut self, client: &mut RawClient, n: u64) -> bool {
        let tag = format!("{}-{n}", self.number);
        let answer = match n % 4 {
            0 => {
                let id = client.id(0).unwrap();
                client.ask(&execute(id, &[&tag])).await
            }
            1 => {
                let id = client.id(1).unwrap();
                client.ask(&execute(id, &[&self.number.to_string()])).await
            }
            2 => {
                let number = self.number;
                let text = format!("update counters set n = n + 1 where id = {number}");
                client.query(&text).await
            }
            _ => {
                client
                    .query(&format!("insert into events (tag) values ('{tag}')"))
                    .await
            }
        };
        let is_alive = answer.is_ok();
        self.events.send(()).ok();
        let fate = answer.as_ref().map_or(Fate::Unknown, fate);
        match (n % 4, fate) {
            (0 | 3, fate) => {
                self.ledger.rows.insert(tag, fate);
            }
            (_, Fate::Done(_)) => self.ledger.added += 1,
            (_, Fate::Unknown) => self.ledger.perhaps += 1,
            (_, Fate::Refused(why)) => assert!(is_outage(&why), "{why}"),
        }
        is_alive
    }
}

/// Returns the fate of a write with an answer.
fn fate(answer: &Packets) -> Fate {
    match (success(answer), error(answer)) {
        (Some(success), _) => {
            assert_eq!(success.affected, 1);
            Fate::Done(success.insert_id)
        }
        (None, Some(error)) if &error.state == b"08007" => Fate::Unknown,
        (None, Some(error)) => Fate::Refused(error.to_string()),
        (None, None) => panic!("{answer:?}"),
    }
}

#[expect(
    clippy::print_stdout,
    reason = "the figures of a run are a part of its result"
)]
fn verify(ledgers: Vec<(usize, Ledger)>, direct: &Target) {
    let stored = sql(&url(direct), "select tag, id from events").unwrap();
    let mut rows: HashMap<&str, Vec<u64>> = HashMap::new();
    for row in stored.lines() {
        let (tag, id) = row.split_once('|').unwrap();
        rows.entry(tag).or_default().push(id.parse().unwrap());
    }
    let mut figures: BTreeMap<&str, usize> = BTreeMap::new();
    for (number, ledger) in ledgers {
        for (tag, fate) in &ledger.rows {
            let rows = rows.remove(tag.as_str()).unwrap_or_default();
            let (is_right, name) = match (fate, &rows[..]) {
                (Fate::Done(id), rows) => (rows == [*id], "done"),
                (Fate::Unknown, rows) => (rows.len() <= 1, "unknown"),
                (Fate::Refused(why), rows) => (rows.is_empty() && is_outage(why), "refused"),
            };
            assert!(is_right, "row {tag}: {fate:?}, but stored is {rows:?}");
            *figures.entry(name).or_default() += 1;
        }
        let text = format!("select n from counters where id = {number}");
        let n: u64 = sql(&url(direct), &text).unwrap().parse().unwrap();
        let (least, most) = (ledger.added, ledger.added + ledger.perhaps);
        assert!(
            (least..=most).contains(&n),
            "counter {number}: {n} of {least} to {most}"
        );
    }
    println!("{figures:?}");
    assert!(rows.is_empty(), "nobody wrote {rows:?}");
}

/// Returns true if an error says that the server or the gateway was not there.
fn is_outage(why: &str) -> bool {
    ["(08", "1053 ", "2003 ", "2006 ", "2013 "]
        .iter()
        .any(|part| why.contains(part))
}
