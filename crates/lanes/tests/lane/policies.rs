//! Units whose source lets the lane try them again for longer than those of a client.

use std::time::Duration;

use tokio::time::Instant;
use windrow_core::sink::Purpose;
use windrow_core::{Fault, FaultClass, Permit, RetryPolicy, Verdict};

use crate::support::*;

const WAIT: Duration = Duration::from_secs(30);

fn bench(policy: RetryPolicy) -> Bench {
    let mut bench = Bench::new();
    bench.intake = bench.intake.with_policy(policy);
    bench
}

fn once() -> Bench {
    bench(RetryPolicy::client().executed_once(WAIT))
}

fn unknown() -> Fault {
    Fault::unknown("the connection was lost")
}

fn refused(fault: Fault) -> Verdict {
    Verdict::Final(Err(fault.into()))
}

#[tokio::test(start_paused = true)]
async fn in_the_background_many_conflicts_are_no_answer() {
    let mut bench = bench(RetryPolicy::background(WAIT));
    let receipt = bench.one(unit(1)).await;
    for _ in 0..100 {
        let flight = bench.flight().await;
        flight.all(Verdict::RolledBack(conflict()), true);
    }
    bench.flight().await.ok();
    assert_eq!(receipt.await.as_slice(), [done(1)]);
}

#[tokio::test(start_paused = true)]
async fn the_background_waits_for_a_database_as_long_as_it_says() {
    let mut bench = bench(RetryPolicy::background(WAIT));
    bench.door(Some(Fault::unavailable("connection refused")));
    let begun = Instant::now();
    let first = bench.one(unit(1)).await;
    tokio::time::sleep(WAIT - Duration::from_secs(1)).await;
    let second = bench.one(unit(2)).await;
    let fault = first.await.pop().unwrap().unwrap_err().fault;
    assert_eq!(fault.class, FaultClass::Unavailable);
    assert!(begun.elapsed() >= WAIT && begun.elapsed() < WAIT + Duration::from_secs(1));
    bench.door(None);
    bench.flight().await.ok();
    assert_eq!(second.await.as_slice(), [done(2)]);
}

#[tokio::test(start_paused = true)]
async fn the_background_waits_for_a_lock_again() {
    let mut bench = bench(RetryPolicy::background(WAIT));
    let held = Fault::new(FaultClass::Conflict, "55P03", "lock timeout");
    let receipt = bench.one(unit(1)).await;
    bench
        .flight()
        .await
        .all(Verdict::WaitsForLock(held.clone()), true);
    for _ in 0..3 {
        let flight = bench.flight().await;
        assert_eq!(flight.purpose, Purpose::LockWait);
        flight.all(Verdict::WaitsForLock(held.clone()), true);
    }
    bench.flight().await.ok();
    assert_eq!(receipt.await.as_slice(), [done(1)]);
}

#[tokio::test(start_paused = true)]
async fn a_unit_that_cannot_be_executed_twice_is_tried_until_its_outcome_is_known() {
    let mut bench = once();
    let source = bench.intake.new_source();
    let receipt = bench.submit(source, vec![unit(1), unit(2)]).await;
    let begun = Instant::now();
    let flight = bench.flight().await;
    flight.answer(vec![refused(unknown()), told(2)], false);
    let flight = bench.flight().await;
    assert_eq!(flight.ids, [1], "the other one has its outcome");
    assert!(
        begun.elapsed() >= Duration::from_millis(75),
        "the server may still execute it"
    );
    let there = Fault::new(FaultClass::Unique, "23505", "there already");
    flight.all(refused(there.clone()), true);
    assert_eq!(receipt.await.as_slice(), [Err(there.into()), done(2)]);
}

#[tokio::test(start_paused = true)]
async fn what_rolls_the_next_attempt_back_says_nothing_of_the_one_before() {
    let mut bench = once();
    let receipt = bench.one(unit(1)).await;
    bench.flight().await.all(refused(unknown()), false);
    while let Some(flight) = {
        tokio::time::sleep(Duration::from_secs(2)).await;
        bench.try_flight().await
    } {
        flight.all(Verdict::RolledBack(conflict()), true);
    }
    assert_eq!(receipt.await.as_slice(), [Err(unknown().into())]);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_waits_for_the_database_and_stays_unknown() {
    let mut bench = once();
    let receipt = bench.one(unit(1)).await;
    let begun = Instant::now();
    let flight = bench.flight().await;
    bench.door(Some(Fault::unavailable("connection refused")));
    flight.all(refused(unknown()), false);
    assert_eq!(receipt.await.as_slice(), [Err(unknown().into())]);
    assert!(begun.elapsed() >= WAIT && begun.elapsed() < WAIT + Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn the_outcome_of_a_unit_that_waits_for_a_lock_is_found_out_as_well() {
    let mut bench = once();
    let receipt = bench.one(unit(1)).await;
    bench
        .flight()
        .await
        .all(Verdict::WaitsForLock(conflict()), true);
    bench.flight().await.all(refused(unknown()), false);
    let flight = bench.flight().await;
    assert_eq!(flight.purpose, Purpose::LockWait);
    flight.ok();
    assert_eq!(receipt.await.as_slice(), [done(1)]);
}

#[tokio::test(start_paused = true)]
async fn to_give_up_a_unit_of_unknown_outcome_does_not_make_it_unwritten() {
    let mut bench = once();
    let source = bench.intake.new_source();
    let receipt = bench.submit(source, vec![unit(1)]).await;
    let flight = bench.flight().await;
    bench.door(Some(Fault::unavailable("connection refused")));
    flight.all(refused(unknown()), false);
    assert!(bench.try_flight().await.is_none());
    bench.intake.cancel(source);
    assert_eq!(receipt.await.as_slice(), [Err(unknown().into())]);
}

/// Faults that others have to mend, and connections that a database refuses, keep a persistent unit
/// waiting; its own fault is its outcome.
#[tokio::test(start_paused = true)]
async fn a_persistent_unit_ends_only_in_a_fault_of_its_own() {
    let mut bench = bench(RetryPolicy::persistent());
    bench.allow(Duration::from_secs(2));
    let denied = denied();
    bench.door(Some(denied));
    let receipt = bench.one(unit(1)).await;
    tokio::time::sleep(WAIT).await;
    bench.door(None);
    let (broken, late) = (
        Fault::new(FaultClass::Other, "58030", "could not read a block"),
        Fault::new(FaultClass::Other, "57014", "statement timeout"),
    );
    for fault in [broken, late, unknown()] {
        bench.flight().await.all(refused(fault), true);
    }
    let own = Fault::new(FaultClass::Unique, "23505", "there already");
    bench.flight().await.all(refused(own.clone()), true);
    assert_eq!(receipt.await.as_slice(), [Err(own.into())]);
}

/// A lock that is held for longer than the time limits of the role keeps a persistent unit waiting:
/// each attempt has all of them.
#[tokio::test(start_paused = true)]
async fn a_persistent_unit_outlasts_a_lock_and_the_time_limits_of_its_role() {
    let mut bench = bench(RetryPolicy::persistent());
    let held = Fault::new(FaultClass::Conflict, "55P03", "lock timeout");
    let receipt = bench.one(unit(1)).await;
    let flight = bench.flight().await;
    flight.all(Verdict::WaitsForLock(held.clone()), true);
    for _ in 0..3 {
        let flight = bench.flight().await;
        let arrived = (flight.purpose, flight.arrived);
        assert_eq!(arrived, (Purpose::LockWait, Some(Instant::now())));
        tokio::time::sleep(WAIT).await;
        flight.all(refused(held.clone()), true);
    }
    bench.flight().await.ok();
    assert_eq!(receipt.await.as_slice(), [done(1)]);
}

/// A client is answered with the refusal that persistent units outlast.
#[tokio::test(start_paused = true)]
async fn clients_do_not_wait_with_persistent_units() {
    let mut bench = Bench::new();
    let denied = denied();
    bench.door(Some(denied.clone()));
    let persistent = bench.intake.with_policy(RetryPolicy::persistent());
    let source = persistent.new_source();
    let kept = persistent.submit(source, [unit(1)], Permit::empty()).await;
    let client = bench.one(unit(2)).await;
    assert_eq!(client.await.as_slice(), [Err(denied.clone().into())]);
    let lane = bench.lane.take().unwrap();
    lane.shutdown().await;
    assert_eq!(kept.unwrap().await.as_slice(), [Err(denied.into())]);
}
