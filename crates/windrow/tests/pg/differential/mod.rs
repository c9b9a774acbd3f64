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

use std::thread;

use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};
use windrow_testkit::pgclient::{Address, Client};

use crate::support::{Gateway, serve};
use program::{Program, programs};
use transcript::Transcript;

/// How many programs are tried, where [`CASES`] does not say otherwise.
const DEFAULT_CASES: u32 = 32;

/// The environment variable that says how many programs are tried.
const CASES: &str = "WINDROW_PG_CASES";

/// The environment variable that repeats a run: the seed that a failed one has printed.
const SEED: &str = "WINDROW_PG_SEED";

/// The parameter with which those connect whose writes are deferred.
const DEFERRED: (&str, &str) = ("options", "-c windrow.defer=on");

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
}

impl Pair {
    fn new(tried: Address, tried_direct: Address, plain: Address) -> Self {
        Self {
            tried,
            tried_direct,
            plain,
            defers: false,
        }
    }

    /// A copy behind a gateway, and one beside it.
    fn of(gateway: &Gateway) -> Self {
        let plain = schema::copies(&gateway.server, &gateway.direct);
        Self::new(gateway.address.clone(), gateway.direct.clone(), plain)
    }
}

/// How many programs are tried.
fn cases(default: u32) -> u32 {
    number(CASES).map_or(default, |n| u32::try_from(n).unwrap())
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
        let parameters: &[_] = if pair.defers { &[DEFERRED] } else { &[] };
        let tried = scope.spawn(|| run((&pair.tried, parameters), &pair.tried_direct, program));
        let plain = scope.spawn(|| run((&pair.plain, &[]), &pair.plain, program));
        (tried.join().unwrap(), plain.join().unwrap())
    });
    for (client, (tried, plain)) in tried.0.iter().zip(&plain.0).enumerate() {
        let difference = if pair.defers {
            tried.invented(plain)
        } else {
            tried.difference(plain)
        };
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
    check(12, &Pair::new(first.clone(), first, plain));
}

#[test]
fn joined_and_direct_are_equal() {
    let gateway = Gateway::start();
    check(cases(DEFAULT_CASES), &Pair::of(&gateway));
}

/// Where writes of transactions are answered before the server has them, the tables are the same in
/// the end, and nobody is told of an error that the server has not raised.
#[test]
fn deferred_and_direct_leave_the_same() {
    let gateway = Gateway::start();
    let pair = Pair {
        defers: true,
        ..Pair::of(&gateway)
    };
    assert_defers(&pair.tried);
    check(cases(DEFAULT_CASES / 2), &pair);
}

/// A duplicate is answered as if it had been written, once the gateway knows the table.
fn assert_defers(gateway: &Address) {
    let mut client = Client::connect_with(gateway, &[DEFERRED]).unwrap();
    let insert = "insert into plain (id, owner) values (1, 1)";
    let mut tags = |sql: &str| -> String {
        let answer = client.query(sql).unwrap();
        answer.iter().map(|m| char::from(m.tag)).collect()
    };
    assert_eq!(tags(insert), "CZ");
    assert_eq!(tags("begin"), "CZ");
    assert_eq!(tags(insert), "CZ", "nothing is deferred");
    assert_eq!(tags("commit"), "EZ");
}

/// The same where batches are as large and as many as they can be.
#[test]
fn several_flights_change_nothing() {
    let server = windrow_testkit::postgres::Postgres::start().unwrap();
    let direct = Address::of(&server.create_database().unwrap()).unwrap();
    let plain = schema::copies(&server, &direct);
    let (_windrow, tried) = serve(&direct, &["--flights", "3"]);
    check(cases(DEFAULT_CASES / 2), &Pair::new(tried, direct, plain));
}
