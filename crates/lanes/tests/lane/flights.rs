//! Several flights at once.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use windrow_core::sink::Purpose;
use windrow_core::{Fault, FaultClass, Intake, Limits, Permit, Unit};

use crate::support::*;

/// Each row touches one of so many keys, which is the rest of its number.
const KEYS: i64 = 500;

#[derive(Default)]
struct Seen {
    under_way: HashSet<i64>,
    flights: usize,
    most: usize,
    /// Rows of each flight.
    rows: Vec<usize>,
}

/// A database that takes 5 ms for any batch, however many it executes at once.
async fn serve(bench: &mut Bench, seen: Arc<Mutex<Seen>>, landed: &AtomicUsize, until: usize) {
    serve_by_row(bench, seen, (landed, until), Duration::ZERO).await;
}

/// One that takes so much longer for each row. It checks that no key is in two flights.
async fn serve_by_row(
    bench: &mut Bench,
    seen: Arc<Mutex<Seen>>,
    (landed, until): (&AtomicUsize, usize),
    row: Duration,
) {
    while landed.load(Ordering::Relaxed) < until {
        let Ok(flight) = tokio::time::timeout(Duration::from_millis(50), bench.flight()).await
        else {
            continue;
        };
        let seen = seen.clone();
        tokio::spawn(async move {
            let keys: HashSet<i64> = flight.ids.iter().map(|id| id % KEYS).collect();
            {
                let mut seen = seen.lock().unwrap();
                for key in &keys {
                    assert!(seen.under_way.insert(*key), "one key in two flights");
                }
                seen.flights += 1;
                seen.most = seen.most.max(seen.flights);
                seen.rows.push(flight.ids.len());
            }
            let rows = u32::try_from(flight.ids.len()).unwrap();
            tokio::time::sleep(Duration::from_millis(5) + row * rows).await;
            {
                let mut seen = seen.lock().unwrap();
                seen.under_way.retain(|key| !keys.contains(key));
                seen.flights -= 1;
            }
            flight.ok();
        });
    }
}

/// Clients that each write one row after another, and count those that got their own answer.
fn clients(intake: &Intake, clients: i64, each: i64, landed: &Arc<AtomicUsize>) {
    for client in 0..clients {
        let (intake, landed) = (intake.clone(), landed.clone());
        tokio::spawn(async move {
            let source = intake.new_source();
            for n in 0..each {
                let id = client * 1_000_000 + n;
                let outcome = intake.run(source, unit_on(id, id % KEYS)).await;
                assert_eq!(outcome, done(id));
                landed.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
}

#[tokio::test(start_paused = true)]
async fn more_flights_are_found_where_they_pay_and_no_key_is_in_two_of_them() {
    let mut bench = Bench::with(8, Limits::default());
    let (seen, landed) = (Arc::default(), Arc::default());
    clients(&bench.intake, 200, 100, &landed);
    serve(&mut bench, Arc::clone(&seen), &landed, 20_000).await;
    let seen = seen.lock().unwrap();
    assert!(
        seen.most >= 4 && seen.most <= 8,
        "{} flights at most",
        seen.most
    );
    assert_eq!(bench.connects(Purpose::Batches), seen.most);
}

/// A few clients who send many rows ahead fill several flights as many clients do: what waits for
/// the rows before it would be under way if these were not all in one flight.
#[tokio::test(start_paused = true)]
async fn a_few_streams_of_rows_fill_several_flights() {
    let mut bench = Bench::with(8, Limits::default());
    let (seen, landed) = (Arc::default(), Arc::default());
    for stream in 0..8 {
        let rows = stream_of(stream, 15);
        tokio::spawn(pour(bench.intake.clone(), rows, Arc::clone(&landed)));
    }
    let row = Duration::from_micros(200);
    serve_by_row(&mut bench, Arc::clone(&seen), (&landed, 60_000), row).await;
    let most = seen.lock().unwrap().most;
    assert!((4..=8).contains(&most), "{most} flights at most");
}

/// A single stream can use one flight only: no others are waited for, and its batches grow at once.
#[tokio::test(start_paused = true)]
async fn for_a_single_stream_no_further_flights_are_tried() {
    let mut bench = Bench::with(8, Limits::default());
    let (seen, landed) = (Arc::default(), Arc::default());
    let rows = stream_of(0, 1000);
    tokio::spawn(pour(bench.intake.clone(), rows, Arc::clone(&landed)));
    serve(&mut bench, Arc::clone(&seen), &landed, 20_000).await;
    let rows = &seen.lock().unwrap().rows;
    let small = rows.iter().filter(|rows| **rows <= 64).count();
    assert!(small < 20, "{small} flights of no more than 64 rows");
    assert_eq!(bench.connects(Purpose::Batches), 1);
}

/// Portions of so many rows, each on a key that is of this one of eight streams alone.
fn stream_of(stream: i64, portion: usize) -> impl Iterator<Item = Vec<Unit>> {
    let own = KEYS / 8;
    let mut ids = (0..).map(move |n| n * KEYS + stream * own + n % own);
    std::iter::repeat_with(move || {
        let ids = ids.by_ref().take(portion);
        ids.map(|id| unit_on(id, id % KEYS)).collect()
    })
}

/// Writes portions, the next ones before the last are answered.
async fn pour(intake: Intake, portions: impl Iterator<Item = Vec<Unit>>, landed: Arc<AtomicUsize>) {
    const AHEAD: usize = 4;
    let source = intake.new_source();
    let mut waiting = VecDeque::new();
    for units in portions {
        let receipt = intake.submit(source, units, Permit::empty()).await;
        waiting.push_back(receipt.unwrap());
        if waiting.len() == AHEAD {
            let answers = waiting.pop_front().unwrap().await;
            landed.fetch_add(answers.len(), Ordering::Relaxed);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_one_flight_is_kept() {
    let mut bench = Bench::with(
        8,
        Limits {
            flights: Some(1),
            ..Limits::default()
        },
    );
    let (seen, landed) = (Arc::default(), Arc::default());
    clients(&bench.intake, 100, 50, &landed);
    serve(&mut bench, Arc::clone(&seen), &landed, 5_000).await;
    assert_eq!(seen.lock().unwrap().most, 1);
}

#[tokio::test(start_paused = true)]
async fn a_further_connection_that_is_refused_fails_nobody() {
    for class in [FaultClass::Unavailable, FaultClass::Denied] {
        let mut bench = Bench::with(8, Limits::default());
        let first = bench.one(unit(1)).await;
        bench.flight().await.ok();
        first.await;
        bench.door(Some(Fault::new(class, "53300", "too many connections")));
        let (seen, landed) = (Arc::default(), Arc::default());
        clients(&bench.intake, 100, 100, &landed);
        serve(&mut bench, Arc::clone(&seen), &landed, 10_000).await;
        assert_eq!(seen.lock().unwrap().most, 1);
        let asked = bench.connects(Purpose::Batches);
        assert!(
            (2..100).contains(&asked),
            "asked {asked} times for a connection"
        );
        assert_eq!(bench.lane().status().away, None);
    }
}

/// A lane whose flights have taken 2 ms so far.
async fn used_to_2_ms(limits: Limits) -> Bench {
    let mut bench = Bench::with(8, limits);
    for id in 0..20 {
        let receipt = bench.one(unit_on(id, id)).await;
        let flight = bench.flight().await;
        tokio::time::sleep(Duration::from_millis(2)).await;
        flight.ok();
        receipt.await;
    }
    bench
}

#[tokio::test(start_paused = true)]
async fn a_flight_that_takes_much_longer_than_usual_holds_up_only_its_own_rows() {
    let mut bench = used_to_2_ms(Limits::default()).await;
    let late = bench.one(unit_on(100, 1)).await;
    let held = bench.flight().await;
    let (other, same) = (bench.one(unit_on(101, 2)), bench.one(unit_on(102, 1)));
    let (other, same) = (other.await, same.await);
    assert!(bench.try_flight().await.is_none(), "it is not late yet");
    let second = bench.flight().await;
    assert_eq!(second.ids, [101]);
    second.ok();
    assert_eq!(other.await.as_slice(), [done(101)]);
    assert!(bench.try_flight().await.is_none(), "one row in two flights");
    held.ok();
    assert_eq!(late.await.as_slice(), [done(100)]);
    let third = bench.flight().await;
    assert_eq!(third.ids, [102]);
    third.ok();
    assert_eq!(same.await.as_slice(), [done(102)]);
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_one_flight_is_kept_also_where_that_flight_is_late() {
    let limits = Limits {
        flights: Some(1),
        ..Limits::default()
    };
    let mut bench = used_to_2_ms(limits).await;
    let late = bench.one(unit_on(100, 1)).await;
    let held = bench.flight().await;
    let other = bench.one(unit_on(101, 2)).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(bench.try_flight().await.is_none());
    held.ok();
    late.await;
    bench.flight().await.ok();
    assert_eq!(other.await.as_slice(), [done(101)]);
}

#[tokio::test(start_paused = true)]
async fn a_large_row_holds_up_nobody() {
    let mut bench = used_to_2_ms(Limits::default()).await;
    let large = bench.one(large_unit_on(100, 1, 256 << 10)).await;
    let held = bench.flight().await;
    let other = bench.one(unit_on(101, 2)).await;
    let second = bench.flight().await;
    assert_eq!(second.ids, [101]);
    second.ok();
    assert_eq!(other.await.as_slice(), [done(101)]);
    held.ok();
    assert_eq!(large.await.as_slice(), [done(100)]);
}
