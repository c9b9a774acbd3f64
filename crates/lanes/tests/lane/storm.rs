//! Everything fails now and then, at random: every client gets exactly its own answer, and success
//! is told only of what was executed, once.

use std::collections::HashMap;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use windrow_core::{Fault, FaultClass, Limits, Unit, UnitOutcome, Verdict};

use crate::support::*;

const SOURCES: i64 = 40;
const SUBMISSIONS: i64 = 12;

/// What the database says of a flight; what it has written goes into the books.
fn execute(flight: Flight, dice: &mut StdRng, books: &mut HashMap<i64, usize>) {
    match dice.random_range(0..12) {
        0 => flight.all(Verdict::RolledBack(conflict()), true),
        1 => flight.all(Verdict::RolledBack(Fault::unavailable("reset")), false),
        2 => flight.crash(),
        _ => {
            let usable = dice.random_bool(0.9);
            let mut verdict = |id: &i64| match dice.random_range(0..20) {
                0 => Verdict::WaitsForLock(conflict()),
                1 => Verdict::Final(Err(Fault::new(
                    FaultClass::Unique,
                    "23505",
                    "there already",
                )
                .into())),
                2 => Verdict::RolledBack(conflict()),
                _ => {
                    *books.entry(*id).or_default() += 1;
                    told(*id)
                }
            };
            let verdicts = flight.ids.iter().map(&mut verdict).collect();
            flight.answer(verdicts, usable);
        }
    }
}

/// Counts the outcome of one unit; success must be in the books, once.
fn check(id: i64, outcome: &UnitOutcome, books: &HashMap<i64, usize>) {
    let written = books.get(&id).copied().unwrap_or_default();
    match outcome {
        Ok(_) => assert_eq!((outcome, written), (&done(id), 1)),
        Err(fault) => {
            let class = fault.fault.class;
            let told = [
                FaultClass::Unique,
                FaultClass::Conflict,
                FaultClass::Unavailable,
                FaultClass::Unknown,
            ];
            assert!(
                told.contains(&class) && written == 0,
                "{fault:?} although written {written} times"
            );
        }
    }
}

async fn storm(seed: u64) {
    let mut dice = StdRng::seed_from_u64(seed);
    let limits = Limits {
        batch_rows: Some(30),
        away_wait: Duration::from_secs(600),
        ..Limits::default()
    };
    let mut bench = Bench::with(4, limits);
    let sources: Vec<_> = (0..SOURCES).map(|_| bench.intake.new_source()).collect();
    let mut receipts = Vec::new();
    for submission in 0..SUBMISSIONS {
        for (number, source) in (0..).zip(&sources) {
            let first = (submission * SOURCES + number) * 100;
            let ids = first..first + dice.random_range(1..8);
            let units: Vec<Unit> = ids.clone().map(|id| unit_on(id, id % 97)).collect();
            receipts.push((ids, bench.submit(*source, units).await));
        }
    }
    let ending = tokio::spawn(bench.lane.take().unwrap().shutdown());
    let mut books = HashMap::new();
    while let Some(flight) = bench.next_flight().await {
        execute(flight, &mut dice, &mut books);
        if dice.random_bool(0.1) {
            // Whoever connects now has to try again.
            bench.door(Some(Fault::unavailable("starting")));
            tokio::time::sleep(Duration::from_millis(50)).await;
            bench.door(None);
        }
    }
    ending.await.unwrap();
    for (ids, receipt) in receipts {
        let outcomes = receipt.await;
        assert_eq!(outcomes.len(), ids.clone().count());
        for (id, outcome) in ids.zip(&outcomes) {
            check(id, outcome, &books);
        }
    }
    assert_eq!(bench.intake.budget().held(), 0);
}

#[tokio::test(start_paused = true)]
async fn every_client_gets_its_own_answer_whatever_fails() {
    for seed in 0..20 {
        storm(seed).await;
    }
}
