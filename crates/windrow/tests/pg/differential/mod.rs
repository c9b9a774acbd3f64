//! As if alone: random programs of eight clients give the same transcripts through Windrow, where
//! their writes are joined, as on the server itself, message by message and byte by byte.
//!
//! Each client works on keys of its own, so what others do cannot change what it is told. One thing
//! differs for a good reason: generated ids (a joined write that has to run again takes another
//! one). They are numbered in the order in which a client sees them before transcripts are
//! compared.

mod play;
mod program;
mod schema;
mod shared_keys;
mod statements;
mod transcript;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};
use windrow_testkit::pgclient::{Address, Client};

use crate::support::{Gateway, serve};
use program::{Program, programs};
use transcript::Transcript;

/// How many programs are tried, where [`CASES`] does not say otherwise.
const DEFAULT_CASES: u32 = 64;

/// The environment variable that says how many programs are tried.
const CASES: &str = "WINDROW_PG_CASES";

/// The environment variable that repeats a run: the seed that a failed one has printed.
const SEED: &str = "WINDROW_PG_SEED";

/// Both copies of the tables, and the ways to them.
struct Pair {
    /// Through Windrow, or for the fairness of this test another direct copy.
    tried: Address,
    /// Past Windrow, to the same copy.
    tried_direct: Address,
    /// The other copy.
    plain: Address,
    /// Those who are tried have `windrow.defer`.
    defers: bool,
    /// Somebody was told of something at another place than by the server.
    moved: AtomicBool,
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn check(cases: u32, pair: &Pair) {
    let seed = number(SEED).unwrap_or(0x5eed);
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 300,
        rng_seed: RngSeed::Fixed(seed),
        ..Config::default()
    };
    let result = TestRunner::new(config).run(&programs(), |program| compare(pair, &program));
    if let Err(failure) = result {
        panic!("{SEED}={seed} {failure}");
    }
}

/// Runs a program on both copies, all clients at once, and compares what they saw and left behind.
fn compare(pair: &Pair, program: &Program) -> Result<(), TestCaseError> {
    let (tried, plain) = thread::scope(|scope| {
        let deferred: &[_] = &[("options", "-c windrow.defer=on")];
        let parameters = if pair.defers { deferred } else { &[] };
        let tried = scope.spawn(|| run((&pair.tried, parameters), &pair.tried_direct, program));
        let plain = scope.spawn(|| run((&pair.plain, &[]), &pair.plain, program));
        (tried.join().unwrap(), plain.join().unwrap())
    });
    for (client, (tried, plain)) in tried.0.iter().zip(&plain.0).enumerate() {
        let mut difference = tried.difference(plain);
        if pair.defers {
            pair.moved.fetch_or(difference.is_some(), Ordering::Relaxed);
            difference = tried.invented(plain);
        }
        if let Some(difference) = difference {
            return Err(TestCaseError::fail(format!(
                "client {client}: {difference}"
            )));
        }
    }
    if tried.1 != plain.1 {
        let text = format!(
            "tables differ\n  tried: {:#?}\n  plain: {:#?}",
            tried.1, plain.1
        );
        return Err(TestCaseError::fail(text));
    }
    Ok(())
}

fn run(
    (address, parameters): (&Address, &[(&str, &str)]),
    direct: &Address,
    program: &Program,
) -> (Vec<Transcript>, Vec<String>) {
    let mut judge = Client::connect(direct).unwrap();
    schema::reset(&mut judge);
    let transcripts = thread::scope(|scope| {
        let clients: Vec<_> = (0..)
            .zip(&program.clients)
            .map(|(owner, steps)| {
                scope.spawn(move || play::client(address, parameters, owner, steps))
            })
            .collect();
        clients.into_iter().map(|c| c.join().unwrap()).collect()
    });
    (transcripts, schema::contents(&mut judge))
}

/// Two copies on the server itself must be equal too, or the judge is not fair.
#[test]
fn direct_and_direct_are_equal() {
    let server = windrow_testkit::postgres::Postgres::start().unwrap();
    let first = Address::of(&server.create_database().unwrap()).unwrap();
    let plain = schema::copies(&server, &first);
    let pair = Pair {
        tried: first.clone(),
        tried_direct: first,
        plain,
        defers: false,
        moved: AtomicBool::default(),
    };
    check(12, &pair);
}

#[test]
fn joined_and_direct_are_equal() {
    let gateway = Gateway::start();
    let plain = schema::copies(&gateway.server, &gateway.direct);
    let pair = Pair {
        tried: gateway.address.clone(),
        tried_direct: gateway.direct,
        plain,
        defers: false,
        moved: AtomicBool::default(),
    };
    let cases = number(CASES).map_or(DEFAULT_CASES, |n| u32::try_from(n).unwrap());
    check(cases, &pair);
}

/// Where writes of transactions are answered before the server has them, the tables are the same in
/// the end, and nobody is told of an error that the server has not raised.
#[test]
fn deferred_and_direct_leave_the_same() {
    let gateway = Gateway::start();
    let plain = schema::copies(&gateway.server, &gateway.direct);
    let pair = Pair {
        tried: gateway.address.clone(),
        tried_direct: gateway.direct,
        plain,
        defers: true,
        moved: AtomicBool::default(),
    };
    let cases = number(CASES).map_or(DEFAULT_CASES / 4, |n| u32::try_from(n).unwrap());
    check(cases, &pair);
    assert!(pair.moved.into_inner(), "nothing was deferred");
}

/// The same where batches are as large and as many as they can be.
#[test]
fn several_flights_change_nothing() {
    let server = windrow_testkit::postgres::Postgres::start().unwrap();
    let direct = Address::of(&server.create_database().unwrap()).unwrap();
    let plain = schema::copies(&server, &direct);
    let (_windrow, tried) = serve(&direct, &["--flights", "3"]);
    let pair = Pair {
        tried,
        tried_direct: direct,
        plain,
        defers: false,
        moved: AtomicBool::default(),
    };
    let cases = number(CASES).map_or(DEFAULT_CASES / 4, |n| u32::try_from(n).unwrap());
    check(cases, &pair);
}
