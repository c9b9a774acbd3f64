//! What is taken back before it has left.

use windrow_core::sink::Purpose;
use windrow_core::{Fault, UnitOutcome, Verdict};

use crate::support::*;

fn cancelled() -> UnitOutcome {
    Err(Fault::cancelled("canceling statement due to user request").into())
}

#[tokio::test(start_paused = true)]
async fn a_queued_unit_is_answered_at_once_and_those_behind_it_stay() {
    let mut bench = Bench::new();
    let _first = bench.one(unit(1)).await;
    let flight = bench.flight().await;
    let source = bench.intake.new_source();
    let second = bench.submit(source, vec![unit(2)]).await;
    let third = bench.submit(source, vec![unit(3), unit(4)]).await;
    bench.intake.cancel(source);
    // The only flight is still under way.
    assert_eq!(second.await.as_slice(), [cancelled()]);
    assert_eq!(
        bench.metric("windrow_outcomes_total{lane=\"main\",class=\"cancelled\"}"),
        1.0
    );
    bench.intake.cancel(source);
    bench.try_flight().await;
    assert_eq!(bench.lane().status().queued_units, 1);
    flight.ok();
    let flight = bench.flight().await;
    assert_eq!(flight.ids, [4]);
    flight.ok();
    assert_eq!(third.await.as_slice(), [cancelled(), done(4)]);
}

#[tokio::test(start_paused = true)]
async fn a_unit_under_way_goes_on_and_so_do_those_behind_it() {
    let mut bench = Bench::new();
    let source = bench.intake.new_source();
    let first = bench.submit(source, vec![unit(1)]).await;
    let flight = bench.flight().await;
    let second = bench.submit(source, vec![unit(2)]).await;
    bench.intake.cancel(source);
    bench.try_flight().await;
    flight.ok();
    assert_eq!(first.await.as_slice(), [done(1)]);
    bench.flight().await.ok();
    assert_eq!(second.await.as_slice(), [done(2)]);
    // Nothing is there any more, and nobody is known by that name.
    bench.intake.cancel(source);
    bench.intake.cancel(bench.intake.new_source());
    assert!(bench.try_flight().await.is_none());
    let third = bench.submit(source, vec![unit(3)]).await;
    bench.flight().await.ok();
    assert_eq!(third.await.as_slice(), [done(3)]);
}

/// A hint may be read before the submission that it is about.
#[tokio::test(start_paused = true)]
async fn what_was_submitted_just_before_is_found() {
    let mut bench = Bench::new();
    let _first = bench.one(unit(1)).await;
    let flight = bench.flight().await;
    let source = bench.intake.new_source();
    let receipt = bench.submit(source, vec![unit(2)]).await;
    bench.intake.cancel(source);
    let mut others = Vec::new();
    for id in 3..100 {
        others.push(bench.one(unit(id)).await);
    }
    flight.ok();
    assert_eq!(receipt.await.as_slice(), [cancelled()]);
    let flight = bench.flight().await;
    assert_eq!(flight.ids, (3..=66).collect::<Vec<_>>());
    flight.ok();
}

#[tokio::test(start_paused = true)]
async fn a_unit_that_waits_to_run_alone_is_taken_out_and_its_row_is_free() {
    let mut bench = Bench::new();
    let mut receipts = Vec::new();
    let first = bench.one(unit(1000)).await;
    let flight = bench.flight().await;
    let sources: Vec<_> = (0..33).map(|_| bench.intake.new_source()).collect();
    for (id, source) in (0..).zip(&sources) {
        receipts.push(bench.submit(*source, vec![unit_on(id, 500 + id)]).await);
    }
    flight.ok();
    first.await;
    bench
        .flight()
        .await
        .all(Verdict::WaitsForLock(conflict()), true);
    let mut alone = Vec::new();
    while let Some(flight) = bench.try_flight().await {
        assert_eq!(flight.purpose, Purpose::LockWait);
        alone.push(flight);
    }
    assert_eq!(alone.len(), 32);
    let same_row = bench.one(unit_on(2000, 532)).await;
    assert!(bench.try_flight().await.is_none());
    bench.intake.cancel(sources[0]);
    bench.intake.cancel(sources[32]);
    assert_eq!(receipts.pop().unwrap().await.as_slice(), [cancelled()]);
    bench.flight().await.ok();
    assert_eq!(same_row.await.as_slice(), [done(2000)]);
    alone.into_iter().for_each(Flight::ok);
    for (id, receipt) in (0..).zip(receipts) {
        assert_eq!(receipt.await.as_slice(), [done(id)]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_unit_that_rests_after_a_conflict_is_taken_out() {
    let mut bench = Bench::new();
    let source = bench.intake.new_source();
    let receipt = bench.submit(source, vec![unit(1)]).await;
    for _ in 0..4 {
        bench
            .flight()
            .await
            .all(Verdict::RolledBack(conflict()), true);
    }
    assert!(bench.try_flight().await.is_none(), "it rests");
    bench.intake.cancel(source);
    assert_eq!(receipt.await.as_slice(), [cancelled()]);
    let other = bench.submit(source, vec![unit(2)]).await;
    bench.flight().await.ok();
    assert_eq!(other.await.as_slice(), [done(2)]);
}

#[tokio::test(start_paused = true)]
async fn the_memory_of_those_who_leave_is_free_at_once() {
    let mut bench = Bench::new();
    let first = bench.one(unit(1)).await;
    let flight = bench.flight().await;
    let held = bench.intake.budget().held();
    let mut receipts = Vec::new();
    for id in 2..500 {
        receipts.push(bench.one(unit(id)).await);
    }
    let last = receipts.pop();
    receipts.clear();
    assert!(bench.try_flight().await.is_none());
    assert!(bench.intake.budget().held() <= 2 * held);
    assert_eq!(bench.lane().status().queued_units, 1);
    flight.ok();
    first.await;
    assert_eq!(bench.flight().await.ids, [499]);
    drop(last);
}
