//! How many cases are tried, from which seed, and what a failed one says.

use std::collections::BTreeMap;
use std::fmt::Debug;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};

use crate::oracle::Verdict;

/// How many cases are tried, where [`CASES`] does not say otherwise.
pub const DEFAULT_CASES: u32 = 64;

/// The environment variable that says how many cases are tried.
const CASES: &str = "WINDROW_CATALOG_CASES";

/// The environment variable that tries other cases, or repeats a run: the seed that a failed one
/// has printed.
const SEED: &str = "WINDROW_CATALOG_SEED";

/// What became of a case that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// An order explains it.
    Explained,
    /// Two connections were at the database at once, so it proves nothing.
    Crowded,
    /// The search for an order was given up.
    Undecided,
    /// The server refuses the tables: not all features go together.
    Impossible,
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Tries cases until one fails, and then smaller ones.
#[expect(
    clippy::print_stderr,
    reason = "the figures of a run are a part of its result"
)]
pub fn run<S: Strategy<Value: Debug>>(
    cases: &S,
    default_count: u32,
    mut one: impl FnMut(S::Value) -> Result<Outcome, TestCaseError>,
) {
    let seed = number(SEED).unwrap_or(0x5eed);
    let count = number(CASES).map_or(default_count, |n| u32::try_from(n).unwrap());
    let config = Config {
        cases: count,
        failure_persistence: None,
        max_shrink_iters: 400,
        rng_seed: RngSeed::Fixed(seed),
        ..Config::default()
    };
    let (one, outcomes) = (
        std::cell::RefCell::new(&mut one),
        std::cell::RefCell::default(),
    );
    let result = TestRunner::new(config).run(cases, |case| {
        let outcome = (one.borrow_mut())(case)?;
        let mut outcomes: std::cell::RefMut<'_, BTreeMap<Outcome, u32>> = outcomes.borrow_mut();
        *outcomes.entry(outcome).or_default() += 1;
        Ok(())
    });
    if let Err(failure) = result {
        panic!("{SEED}={seed} {failure}");
    }
    let outcomes = outcomes.into_inner();
    eprintln!("{outcomes:?}");
    let explained = outcomes.get(&Outcome::Explained).copied().unwrap_or(0);
    // Of a few, one may prove nothing on a busy machine.
    assert!(
        explained * 10 + 10 >= count * 9,
        "too little was judged: {outcomes:?}"
    );
}

/// What a verdict means for a case; `what` tells the case and what was seen.
pub fn outcome(verdict: Verdict, what: impl FnOnce() -> String) -> Result<Outcome, TestCaseError> {
    match verdict {
        Verdict::Explained => Ok(Outcome::Explained),
        Verdict::Undecided => Ok(Outcome::Undecided),
        Verdict::Wrong(nearest) => Err(TestCaseError::fail(format!(
            "no order of the units explains what was seen\n{}\nThe order that explains most: {nearest}",
            what()
        ))),
    }
}
