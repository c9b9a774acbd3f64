//! Clients whose rows fail, or have long answers, beside others.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use windrow_core::{Fault, FaultClass, Intake, Limits, Verdict};

use crate::support::*;

/// Rows that fail have numbers from here on.
const BAD: i64 = 1_000_000_000;

/// Failing rows of clients that open a connection for each row have numbers from here on.
const NEW: i64 = BAD + BAD / 2;

/// Rows with long answers have numbers from here on.
const LONG: i64 = 2 * BAD;

/// Time of a batch, further time for isolating each row that fails, and further time of each long
/// answer.
const BATCH: Duration = Duration::from_millis(5);
const FAILURE: Duration = Duration::from_millis(1);
const ANSWER: Duration = Duration::from_millis(20);

const MEASURED: Duration = Duration::from_secs(5);

#[derive(Default)]
struct Landed {
    good: AtomicUsize,
    /// Rows that fail or have long answers.
    bad: AtomicUsize,
    /// Flights with rows of both kinds.
    mixed: AtomicUsize,
}

fn refused() -> Fault {
    Fault::new(FaultClass::Check, "23514", "refused")
}

/// True for a row that fails.
fn fails(id: i64) -> bool {
    (BAD..LONG).contains(&id)
}

/// Each writes one row after another, of the kind that the first number stands for.
fn clients(intake: &Intake, first: i64, count: i64, landed: &Arc<Landed>) {
    for client in 0..count {
        let (intake, landed) = (intake.clone(), Arc::clone(landed));
        tokio::spawn(async move {
            let mut source = intake.new_source();
            for n in 0.. {
                let id = first + client * 1_000_000 + n;
                if fails(id) && id >= NEW {
                    source = intake.new_source();
                }
                let mut unit = unit_on(id, id);
                if id >= LONG {
                    unit.expect_long_answer();
                }
                let outcome = intake.run(source, unit).await;
                match fails(id) {
                    true => assert_eq!(outcome.unwrap_err().fault, refused()),
                    false => assert_eq!(outcome, done(id)),
                }
                let counted = match id >= BAD {
                    true => &landed.bad,
                    false => &landed.good,
                };
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
}

/// Answers batches until a moment.
async fn serve(bench: &mut Bench, until: Instant, landed: &Arc<Landed>) {
    while let Ok(flight) = timeout(until - Instant::now(), bench.flight()).await {
        let landed = Arc::clone(landed);
        tokio::spawn(async move {
            let is_bad = |id: &&i64| **id >= BAD;
            let bad = flight.ids.iter().filter(is_bad).count();
            if bad > 0 && bad < flight.ids.len() {
                landed.mixed.fetch_add(1, Ordering::Relaxed);
            }
            let count = |of: &dyn Fn(&&i64) -> bool| {
                u32::try_from(flight.ids.iter().filter(of).count()).unwrap()
            };
            let (failures, answers) = (count(&|id| fails(**id)), count(&|id| **id >= LONG));
            sleep(BATCH + FAILURE * failures + ANSWER * answers).await;
            let verdict = |id: &i64| match fails(*id) {
                true => Verdict::Final(Err(refused().into())),
                false => told(*id),
            };
            let verdicts = flight.ids.iter().map(verdict).collect();
            flight.report(verdicts);
        });
        if Instant::now() >= until {
            return;
        }
    }
}

/// Good rows in the time that is measured, others, and flights of both, with so many clients of
/// each kind.
async fn measure(flights: usize, good: i64, (first, others): (i64, i64)) -> (usize, usize, usize) {
    let mut bench = Bench::with(flights, Limits::default());
    let landed = Arc::default();
    clients(&bench.intake, 0, good, &landed);
    clients(&bench.intake, first, others, &landed);
    // Pace finds what is best, and who fails is known.
    serve(&mut bench, Instant::now() + MEASURED, &landed).await;
    let counts = |landed: &Landed| {
        [&landed.good, &landed.bad, &landed.mixed].map(|count| count.load(Ordering::Relaxed))
    };
    let before = counts(&landed);
    serve(&mut bench, Instant::now() + MEASURED, &landed).await;
    let [good, bad, mixed] = counts(&landed);
    (good - before[0], bad - before[1], mixed - before[2])
}

#[tokio::test(start_paused = true)]
async fn rows_that_fail_do_not_hold_up_those_of_others() {
    let (alone, _, _) = measure(8, 64, (BAD, 0)).await;
    let (beside, bad, mixed) = measure(8, 64, (BAD, 256)).await;
    let share = 100 * beside / alone;
    assert!(share >= 90, "{share} %: {beside} of {alone}");
    assert!(bad > 1000, "{bad} bad rows");
    assert!(mixed <= 5, "{mixed} flights of both kinds");
}

#[tokio::test(start_paused = true)]
async fn new_clients_whose_first_rows_fail_do_not_hold_up_others() {
    let (alone, _, _) = measure(8, 64, (BAD, 0)).await;
    let (beside, bad, mixed) = measure(8, 64, (NEW, 256)).await;
    let share = 100 * beside / alone;
    assert!(share >= 90, "{share} %: {beside} of {alone}");
    assert!(bad > 1000, "{bad} bad rows");
    assert!(mixed <= 5, "{mixed} flights of both kinds");
}

#[tokio::test(start_paused = true)]
async fn long_answers_do_not_hold_up_short_ones() {
    let (alone, _, _) = measure(8, 8, (LONG, 0)).await;
    let (beside, long, mixed) = measure(8, 8, (LONG, 40)).await;
    let share = 100 * beside / alone;
    assert!(share >= 80, "{share} %: {beside} of {alone}");
    assert!(long > 200, "{long} long answers");
    assert_eq!(mixed, 0, "flights of both kinds");
}

#[tokio::test(start_paused = true)]
async fn where_one_flight_is_all_they_take_turns() {
    let (alone, _, _) = measure(1, 64, (BAD, 0)).await;
    let (beside, bad, _) = measure(1, 64, (BAD, 256)).await;
    let share = 100 * beside / alone;
    assert!(share >= 45, "{share} %: {beside} of {alone}");
    assert!(bad > 1000, "{bad} bad rows");
}

/// Where all fail there is nobody to be kept from, and they use all flights that are of use.
#[tokio::test(start_paused = true)]
async fn where_all_fail_none_travel_apart() {
    let mut bench = Bench::with(8, Limits::default());
    let landed = Arc::default();
    clients(&bench.intake, BAD, 256, &landed);
    serve(&mut bench, Instant::now() + MEASURED * 4, &landed).await;
    assert!(bench.connects(windrow_core::sink::Purpose::Batches) >= 4);
}

/// A source that fails, recovers and fails again keeps its order, whoever else writes.
#[tokio::test(start_paused = true)]
async fn whoever_comes_to_travel_apart_keeps_its_order() {
    let mut bench = Bench::with(4, Limits::default());
    let landed = Arc::default();
    clients(&bench.intake, 0, 8, &landed);
    let (source, intake) = (bench.intake.new_source(), bench.intake.clone());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let own = |id: i64| (BAD..BAD + 1000).contains(&id);
    let writer = tokio::spawn(async move {
        for portion in 0..100 {
            let ids = BAD + portion * 10..BAD + portion * 10 + 10;
            let units = ids.map(|id| unit_on(id, id)).collect::<Vec<_>>();
            let bytes = units.iter().map(windrow_core::Unit::bytes).sum();
            let permit = intake.budget().try_take(bytes).unwrap();
            let receipt = intake.submit(source, units, permit).await.unwrap();
            // Some portions wait for their answers, and some are sent ahead.
            match portion % 3 {
                0 => drop(receipt.await),
                _ => drop(tokio::spawn(receipt)),
            }
        }
    });
    let until = Instant::now() + MEASURED;
    while let Ok(flight) = timeout(until - Instant::now(), bench.flight()).await {
        let seen = Arc::clone(&seen);
        seen.lock()
            .unwrap()
            .extend(flight.ids.iter().copied().filter(|id| own(*id)));
        tokio::spawn(async move {
            sleep(BATCH).await;
            // A hundred fail, a hundred do not, and so on.
            let fails = |id: i64| own(id) && (id - BAD) / 100 % 2 == 0;
            let verdict = |id: &i64| match fails(*id) {
                true => Verdict::Final(Err(refused().into())),
                false => told(*id),
            };
            let verdicts = flight.ids.iter().map(verdict).collect();
            flight.report(verdicts);
        });
    }
    writer.await.unwrap();
    let seen = seen.lock().unwrap();
    assert!(seen.is_sorted(), "{seen:?}");
    assert_eq!(seen.iter().collect::<HashSet<_>>().len(), 1000);
}
