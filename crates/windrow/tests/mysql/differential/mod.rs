//! As if alone: random programs of eight clients give the same transcripts through Windrow, where
//! their writes are joined, as on the server itself, packet by packet.
//!
//! Each client works on tables or on keys of its own, so that other clients cannot change its
//! answers. Generated numbers differ for a good reason: a joined write that has to run again takes
//! another one. They are counted in the order in which a client sees them before transcripts are
//! compared.

mod play;
mod program;
mod schema;
mod scripts;
mod statements;
mod transcript;
mod values;

use std::future::Future;
use std::io;

use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use windrow_mysqlwire::Target;
use windrow_testkit::mariadb::MariaDb;

use crate::support::{Gateway, TRIED, create};
use program::{Program, programs};
use schema::prefix;
use transcript::Transcript;

/// The environment variable with the number of programs.
const CASES: &str = "WINDROW_MYSQL_CASES";

const DEFAULT_CASES: u32 = 64;

/// The environment variable that repeats a run: the seed that a failed one has printed.
const SEED: &str = "WINDROW_MYSQL_SEED";

/// The second database. Its name is as long as the first one's.
const PLAIN: &str = "db_plain";

/// Lines of the server's log that are shown if the server has crashed.
const LOG_LINES: usize = 40;

/// Errors of two transactions that wait for each other: direct runs have them by chance too.
const BY_CHANCE: [u16; 2] = [1205, 1213];

/// Both copies of the tables, and the ways to them.
struct Pair<'a> {
    server: &'a MariaDb,
    /// Through Windrow, or for the fairness of this test past it.
    tried: Target,
    /// Past Windrow, to the same copy.
    tried_direct: Target,
    /// The other copy.
    plain: Target,
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn check(runtime: &Runtime, cases: u32, pair: &Pair<'_>) {
    let seed = number(SEED).unwrap_or(0x5eed);
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 300,
        max_shrink_time: 60_000,
        rng_seed: RngSeed::Fixed(seed),
        ..Config::default()
    };
    let compare = |program| runtime.block_on(compare(pair, &program));
    match TestRunner::new(config).run(&programs(), compare) {
        Ok(()) => {}
        Err(TestError::Fail(reason, program)) => panic!("{SEED}={seed} {reason}\n{program:?}"),
        Err(aborted) => panic!("{SEED}={seed} {aborted}"),
    }
}

/// Runs a program on both copies, all clients at once, and compares what they saw and left behind.
async fn compare(pair: &Pair<'_>, program: &Program) -> Result<(), TestCaseError> {
    if schema::judge(&pair.plain).await.is_err() {
        pair.server.restart().unwrap();
    }
    let tried = run(&pair.tried, &pair.tried_direct, program);
    let plain = run(&pair.plain, &pair.plain, program);
    let (tried, plain) = match tokio::join!(tried, plain) {
        (Ok(tried), Ok(plain)) => (tried, plain),
        (Err(error), _) | (_, Err(error)) => {
            let log = pair.server.log();
            let lines: Vec<&str> = log.lines().rev().take(LOG_LINES).collect();
            let last = lines.into_iter().rev().collect::<Vec<_>>().join("\n");
            let reason = format!("the server is gone: {error}\n{last}");
            return Err(TestCaseError::fail(reason));
        }
    };
    if plain
        .iter()
        .any(|transcript| transcript.has_error(&BY_CHANCE))
    {
        return Ok(());
    }
    for (client, (tried, plain)) in tried.iter().zip(&plain).enumerate() {
        if let Some(difference) = tried.difference(plain) {
            let of = match program.clients.get(client) {
                Some(play) => format!("client {client}, {:?}, {:?}", play.form, play.driver),
                None => "tables".to_owned(),
            };
            return Err(TestCaseError::fail(format!("{of}: {difference}")));
        }
    }
    Ok(())
}

/// Returns the transcripts of the clients, and behind them the contents of the tables.
async fn run(target: &Target, direct: &Target, program: &Program) -> io::Result<Vec<Transcript>> {
    let clients = 0..u8::try_from(program.clients.len()).unwrap();
    let prefixes: Vec<_> = match program.is_shared {
        true => vec![prefix(None)],
        false => clients.clone().map(|client| prefix(Some(client))).collect(),
    };
    let mut judge = schema::judge(direct).await?;
    schema::reset(&mut judge, &direct.database, &prefixes).await?;
    let mut running = JoinSet::new();
    for (owner, play) in clients.zip(program.clients.clone()) {
        let (target, is_shared) = (target.clone(), program.is_shared);
        let client = async move { play::client(&target, owner, is_shared, &play).await };
        running.spawn(async move { (owner, client.await) });
    }
    let mut all = running.join_all().await;
    all.sort_by_key(|(owner, _)| *owner);
    let mut all: Vec<_> = all.into_iter().map(|(_, transcript)| transcript).collect();
    all.push(schema::contents(&mut judge, &direct.database, &prefixes).await?);
    Ok(all)
}

fn with_runtime<F: Future>(act: impl FnOnce() -> F) -> (Runtime, F::Output) {
    let runtime = Runtime::new().unwrap();
    let done = runtime.block_on(act());
    (runtime, done)
}

/// Two copies on the server itself must be equal too, or the judge is not fair.
#[test]
fn direct_and_direct_are_equal() {
    let server = schema::server().start().unwrap();
    let first = create(&server, TRIED);
    let (runtime, plain) = with_runtime(|| schema::copies(&server, &first, PLAIN));
    let cases = number(CASES).map_or(12, |n| u32::try_from(n).unwrap());
    let pair = Pair {
        server: &server,
        tried: first.clone(),
        tried_direct: first,
        plain,
    };
    check(&runtime, cases, &pair);
}

#[test]
fn joined_and_direct_are_equal() {
    let gateway = Gateway::with(schema::server(), &[]);
    let direct = gateway.direct.clone();
    let (runtime, plain) = with_runtime(|| schema::copies(&gateway.server, &direct, PLAIN));
    let cases = number(CASES).map_or(DEFAULT_CASES, |n| u32::try_from(n).unwrap());
    let pair = Pair {
        server: &gateway.server,
        tried: gateway.through.clone(),
        tried_direct: direct,
        plain,
    };
    check(&runtime, cases, &pair);
    gateway.joins();
}
