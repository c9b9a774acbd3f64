//! How batches form, and that each client gets its own answer.

use std::time::Duration;

use tokio::time::Instant;
use windrow_core::sink::Purpose;
use windrow_core::{FaultClass, Limits};

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn an_idle_lane_sends_at_once_and_alone() {
    let mut bench = Bench::new();
    let before = Instant::now();
    let receipt = bench.one(unit(7)).await;
    let flight = bench.flight().await;
    assert_eq!(
        (flight.ids.as_slice(), flight.purpose),
        ([7].as_slice(), Purpose::Batches)
    );
    flight.ok();
    assert_eq!(receipt.await.as_slice(), [done(7)]);
    assert_eq!(before.elapsed(), Duration::ZERO);
    assert_eq!(bench.connects(Purpose::Batches), 1);
}

#[tokio::test(start_paused = true)]
async fn a_batch_forms_while_a_flight_is_under_way() {
    let mut bench = Bench::new();
    let mut first = bench.one(unit(1)).await;
    let flight = bench.flight().await;
    let mut receipts = Vec::new();
    for id in 2..=40 {
        receipts.push(bench.one(unit(id)).await);
    }
    assert!(bench.try_flight().await.is_none(), "one flight at a time");
    assert_eq!(bench.lane().status().queued_units, 39);
    flight.ok();
    assert_eq!((&mut first).await.as_slice(), [done(1)]);
    assert!(!first.is_shared(), "it was alone in its batch");
    let flight = bench.flight().await;
    assert_eq!(flight.ids, (2..=40).collect::<Vec<_>>());
    flight.ok();
    for (id, mut receipt) in (2..).zip(receipts) {
        assert_eq!((&mut receipt).await.as_slice(), [done(id)]);
        assert!(receipt.is_shared());
    }
    assert_eq!(bench.metric("windrow_batches_total{lane=\"main\"}"), 2.0);
    assert_eq!(
        bench.metric("windrow_outcomes_total{lane=\"main\",class=\"ok\"}"),
        40.0
    );
}

#[tokio::test(start_paused = true)]
async fn one_flight_at_a_time_for_each_source_and_its_order_is_kept() {
    let mut bench = Bench::with(
        1,
        Limits {
            batch_rows: Some(3),
            ..Limits::default()
        },
    );
    let source = bench.intake.new_source();
    let mut a = bench.submit(source, (1..=4).map(unit).collect()).await;
    let b = bench.submit(source, (5..=6).map(unit).collect()).await;
    for expected in [[1, 2, 3], [4, 5, 6]] {
        let flight = bench.flight().await;
        assert_eq!(flight.ids, expected);
        flight.ok();
    }
    assert_eq!(
        (&mut a).await,
        (1..=4).map(done).collect::<windrow_core::Outcomes>()
    );
    assert!(!a.is_shared(), "both submissions are of one source");
    assert_eq!(
        b.await,
        (5..=6).map(done).collect::<windrow_core::Outcomes>()
    );
}

#[tokio::test(start_paused = true)]
async fn a_single_row_comes_along_beside_a_million() {
    let mut bench = Bench::with(
        1,
        Limits {
            batch_rows: Some(10),
            ..Limits::default()
        },
    );
    let bulk = bench
        .submit(bench.intake.new_source(), (0..5000).map(unit).collect())
        .await;
    let flight = bench.flight().await;
    let single = bench.one(unit(9999)).await;
    assert!(bench.try_flight().await.is_none());
    flight.ok();
    let flight = bench.flight().await;
    assert!(
        flight.ids.contains(&9999) && flight.ids.len() == 10,
        "{:?}",
        flight.ids
    );
    flight.ok();
    assert_eq!(single.await.as_slice(), [done(9999)]);
    drop(bulk);
}

#[tokio::test(start_paused = true)]
async fn a_unit_larger_than_the_limit_travels_alone_and_whole() {
    let mut bench = Bench::with(
        1,
        Limits {
            batch_rows: Some(10),
            ..Limits::default()
        },
    );
    let _first = bench.one(unit(1)).await;
    let flight = bench.flight().await;
    let _others = [
        bench.one(unit(2)).await,
        bench.one(unit_of(3, 50)).await,
        bench.one(unit(4)).await,
    ];
    bench.try_flight().await;
    flight.ok();
    let mut seen = Vec::new();
    for _ in 0..2 {
        let flight = bench.flight().await;
        seen.push(flight.ids.clone());
        flight.ok();
    }
    assert_eq!(seen, [vec![2, 4], vec![3]]);
}

#[tokio::test(start_paused = true)]
async fn units_of_clients_who_have_left_stay_behind() {
    let mut bench = Bench::new();
    let _first = bench.one(unit(1)).await;
    let flight = bench.flight().await;
    let left = bench.one(unit(2)).await;
    let stayed = bench.one(unit(3)).await;
    drop(left);
    flight.ok();
    let flight = bench.flight().await;
    assert_eq!(flight.ids, [3]);
    flight.ok();
    assert_eq!(stayed.await.as_slice(), [done(3)]);
    assert_eq!(bench.intake.budget().held(), 0);
    assert_eq!(
        bench.metric("windrow_abandoned_units_total{lane=\"main\"}"),
        1.0
    );
}

#[tokio::test(start_paused = true)]
async fn memory_is_free_once_the_client_has_its_answer() {
    let mut bench = Bench::new();
    let receipt = bench.one(unit(1)).await;
    assert!(bench.intake.budget().held() > 0);
    bench.flight().await.ok();
    receipt.await;
    assert_eq!(bench.intake.budget().held(), 0);
}

#[tokio::test(start_paused = true)]
async fn nothing_submitted_is_answered_with_nothing() {
    let bench = Bench::new();
    let receipt = bench.submit(bench.intake.new_source(), Vec::new()).await;
    assert_eq!(receipt.await.as_slice(), []);
}

#[tokio::test(start_paused = true)]
async fn max_wait_holds_back_until_its_time_or_a_full_batch() {
    let limits = Limits {
        max_wait: Duration::from_millis(20),
        batch_rows: Some(3),
        ..Limits::default()
    };
    let mut bench = Bench::with(1, limits);
    let before = Instant::now();
    let _one = bench.one(unit(1)).await;
    assert!(bench.try_flight().await.is_none());
    let flight = bench.flight().await;
    assert!(before.elapsed() >= Duration::from_millis(20));
    assert_eq!(flight.ids, [1]);
    flight.ok();
    let before = Instant::now();
    let _three = [
        bench.one(unit(2)).await,
        bench.one(unit(3)).await,
        bench.one(unit(4)).await,
    ];
    let flight = bench.flight().await;
    assert_eq!(
        (flight.ids.as_slice(), before.elapsed()),
        ([2, 3, 4].as_slice(), Duration::ZERO)
    );
}

#[tokio::test(start_paused = true)]
async fn shutdown_finishes_what_was_accepted_and_refuses_the_rest() {
    let mut bench = Bench::new();
    let first = bench.one(unit(1)).await;
    let flight = bench.flight().await;
    let second = bench.one(unit(2)).await;
    let ending = tokio::spawn(bench.lane.take().unwrap().shutdown());
    assert!(bench.try_flight().await.is_none());
    let late = bench.intake.run(bench.intake.new_source(), unit(3)).await;
    assert_eq!(late.unwrap_err().fault.class, FaultClass::Cancelled);
    flight.ok();
    bench.flight().await.ok();
    assert_eq!(
        (first.await, second.await),
        ([done(1)].into(), [done(2)].into())
    );
    ending.await.unwrap();
    assert_eq!(bench.closes(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lane_without_a_handle_serves_until_its_intakes_are_gone() {
    let mut bench = Bench::new();
    drop(bench.lane.take());
    let receipt = bench.one(unit(1)).await;
    bench.flight().await.ok();
    assert_eq!(receipt.await.as_slice(), [done(1)]);
}
