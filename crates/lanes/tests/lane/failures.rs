//! What a lane does when something fails.

use std::time::Duration;

use tokio::time::Instant;
use windrow_core::sink::Purpose;
use windrow_core::{Fault, FaultClass, Limits, Outcomes, Verdict};

use crate::support::*;

fn gone() -> Fault {
    Fault::unavailable("connection refused")
}

#[tokio::test(start_paused = true)]
async fn what_was_rolled_back_runs_again_in_order_and_in_smaller_batches() {
    let mut bench = Bench::new();
    let source = bench.intake.new_source();
    let receipt = bench.submit(source, (1..=8).map(unit).collect()).await;
    let flight = bench.flight().await;
    assert_eq!(flight.ids.len(), 8);
    let later = bench.submit(source, vec![unit(9)]).await;
    bench.try_flight().await;
    flight.all(Verdict::RolledBack(conflict()), true);
    let flight = bench.flight().await;
    assert_eq!(flight.ids, [1, 2, 3, 4]);
    flight.all(Verdict::RolledBack(conflict()), true);
    let flight = bench.flight().await;
    assert_eq!(flight.ids, [1, 2], "halved once more");
    flight.ok();
    let mut order = Vec::new();
    while order.len() < 7 {
        let flight = bench.flight().await;
        assert!(flight.ids.len() <= 4);
        order.extend(flight.ids.clone());
        flight.ok();
    }
    assert_eq!(order, (3..=9).collect::<Vec<_>>());
    assert_eq!(receipt.await, (1..=8).map(done).collect::<Outcomes>());
    assert_eq!(later.await.as_slice(), [done(9)]);
    assert_eq!(
        bench.metric("windrow_retried_units_total{lane=\"main\"}"),
        12.0
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_rolled_back_here_and_there_keeps_its_order() {
    let mut bench = Bench::new();
    let source = bench.intake.new_source();
    let receipt = bench.submit(source, (1..=6).map(unit).collect()).await;
    let again = || Verdict::RolledBack(conflict());
    let verdicts = vec![again(), told(2), again(), told(4), told(5), again()];
    bench.flight().await.report(verdicts);
    let flight = bench.flight().await;
    assert_eq!(flight.ids, [1, 3, 6]);
    flight.ok();
    assert_eq!(receipt.await, (1..=6).map(done).collect::<Outcomes>());
}

#[tokio::test(start_paused = true)]
async fn what_runs_again_takes_turns_with_the_rest() {
    let mut bench = Bench::new();
    let _many = bench
        .submit(bench.intake.new_source(), (1..=8).map(unit).collect())
        .await;
    bench
        .flight()
        .await
        .all(Verdict::RolledBack(conflict()), true);
    let flight = bench.flight().await;
    assert_eq!(flight.ids, [1, 2, 3, 4]);
    let _other = bench.one(unit(9)).await;
    bench.try_flight().await;
    flight.ok();
    let flight = bench.flight().await;
    assert_eq!(flight.ids, [9], "the other half waits for its next turn");
    flight.ok();
    assert_eq!(bench.flight().await.ids, [5, 6, 7, 8]);
}

#[tokio::test(start_paused = true)]
async fn others_go_on_while_conflicts_are_sorted_out() {
    let mut bench = Bench::new();
    let stuck = bench.one(unit(1)).await;
    bench
        .flight()
        .await
        .all(Verdict::RolledBack(conflict()), true);
    bench
        .flight()
        .await
        .all(Verdict::RolledBack(conflict()), true);
    // From the second conflict on it rests for a moment.
    let other = bench.one(unit(2)).await;
    let flight = bench.flight().await;
    assert_eq!(flight.ids, [2]);
    flight.ok();
    assert_eq!(other.await.as_slice(), [done(2)]);
    bench.flight().await.ok();
    assert_eq!(stuck.await.as_slice(), [done(1)]);
}

#[tokio::test(start_paused = true)]
async fn a_fault_that_goes_on_is_told_in_the_end() {
    let mut bench = Bench::new();
    let receipt = bench.one(unit(1)).await;
    for _ in 0..10 {
        bench
            .flight()
            .await
            .all(Verdict::RolledBack(conflict()), true);
    }
    assert_eq!(receipt.await.as_slice(), [Err(conflict().into())]);
    assert!(bench.try_flight().await.is_none());
}

/// However many wait for a database that another process holds, each waits as long as one does.
#[tokio::test(start_paused = true)]
async fn a_database_that_is_held_is_waited_for_as_long_by_many_as_by_one() {
    for units in [1, 7, 40] {
        let mut bench = Bench::new();
        let mut receipts = Vec::new();
        for id in 1..=units {
            receipts.push(bench.one(unit(id)).await);
        }
        let begun = Instant::now();
        let held = Fault::new(FaultClass::Conflict, "55P03", "database is locked");
        while begun.elapsed() < Duration::from_secs(5) {
            let flight = bench.flight().await;
            let flown = flight.ids.len();
            assert!(flown == 1 || flown + 1 >= receipts.len(), "{flown}");
            tokio::time::sleep(Duration::from_millis(500)).await;
            flight.all(Verdict::RolledBack(held.clone()), true);
        }
        for receipt in receipts {
            let fault = receipt.await.pop().unwrap().unwrap_err().fault;
            assert_eq!((fault.class, &*fault.code), (held.class, &*held.code));
            assert!(fault.message.contains("nothing was written"), "{fault}");
        }
        assert!(begun.elapsed() < Duration::from_millis(6500), "{units}");
        assert!(bench.try_flight().await.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn a_unit_that_waits_for_a_lock_runs_alone_while_others_go_on() {
    let mut bench = Bench::new();
    let source = bench.intake.new_source();
    let waiting = bench.submit(source, vec![unit_on(1, 77), unit(2)]).await;
    let flight = bench.flight().await;
    let behind = bench.submit(source, vec![unit(3)]).await;
    flight.report(vec![Verdict::WaitsForLock(conflict()), told(2)]);
    let alone = bench.flight().await;
    assert_eq!(
        (alone.ids.as_slice(), alone.purpose),
        ([1].as_slice(), Purpose::LockWait)
    );
    // The same row waits with it, its own source too; others do not.
    let same_row = bench.one(unit_on(4, 77)).await;
    let other = bench.one(unit_on(5, 78)).await;
    let flight = bench.flight().await;
    assert_eq!(flight.ids, [5]);
    flight.ok();
    assert_eq!(other.await.as_slice(), [done(5)]);
    assert!(bench.try_flight().await.is_none());
    alone.ok();
    assert_eq!(waiting.await.as_slice(), [done(1), done(2)]);
    let mut rest = Vec::new();
    while rest.len() < 2 {
        let flight = bench.flight().await;
        rest.extend(flight.ids.clone());
        flight.ok();
    }
    rest.sort_unstable();
    assert_eq!(rest, [3, 4]);
    assert_eq!(
        (behind.await, same_row.await),
        ([done(3)].into(), [done(4)].into())
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_held_back_runs_behind_the_unit_that_it_follows() {
    let mut bench = Bench::new();
    let source = bench.intake.new_source();
    let receipt = bench.submit(source, (1..=5).map(unit).collect()).await;
    let other = bench.one(unit(6)).await;
    let flight = bench.flight().await;
    let ids = flight.ids.clone();
    let rest = bench.submit(source, vec![unit(7)]).await;
    // The first batch may have left before the other one came.
    let verdicts = ids.iter().map(|id| match id {
        2 | 4 => Verdict::WaitsForLock(conflict()),
        3 | 5 => Verdict::NotTried,
        id => told(*id),
    });
    flight.report(verdicts.collect());
    let mut alone = None;
    let mut seen = Vec::new();
    while let Some(flight) = bench.try_flight().await {
        match flight.purpose {
            Purpose::LockWait => alone = Some(flight),
            Purpose::Batches => {
                seen.extend(flight.ids.clone());
                flight.ok();
            }
        }
    }
    let alone = alone.unwrap();
    assert_eq!(alone.ids, [2], "4 waits for 3, which waits for 2");
    assert!(seen.iter().all(|id| *id == 6), "{seen:?}");
    alone.ok();
    let mut order = Vec::new();
    while let Some(flight) = bench.try_flight().await {
        order.extend(flight.ids.clone());
        flight.ok();
    }
    assert_eq!(order, [3, 4, 5, 7]);
    assert_eq!(receipt.await, (1..=5).map(done).collect::<Outcomes>());
    assert_eq!(rest.await.as_slice(), [done(7)]);
    assert_eq!(other.await.as_slice(), [done(6)]);
}

#[tokio::test(start_paused = true)]
async fn to_be_held_back_is_no_attempt() {
    let mut bench = Bench::new();
    let source = bench.intake.new_source();
    let receipt = bench.submit(source, vec![unit(1), unit(2)]).await;
    let mut tries = 0;
    while tries < 10 {
        let flight = bench.flight().await;
        tries += flight.ids.iter().filter(|id| **id == 1).count();
        let verdict = |id: &i64| match id {
            1 => Verdict::RolledBack(conflict()),
            _ => Verdict::NotTried,
        };
        let verdicts = flight.ids.iter().map(verdict).collect();
        flight.report(verdicts);
    }
    // The first one has used up its attempts, the second one none.
    bench
        .flight()
        .await
        .all(Verdict::RolledBack(conflict()), true);
    bench.flight().await.ok();
    assert_eq!(receipt.await.as_slice(), [Err(conflict().into()), done(2)]);
}

#[tokio::test(start_paused = true)]
async fn only_so_many_run_alone_at_once() {
    let mut bench = Bench::new();
    let mut receipts = Vec::new();
    let first = bench.one(unit(1000)).await;
    let flight = bench.flight().await;
    for id in 0..40 {
        receipts.push(bench.one(unit(id)).await);
    }
    flight.ok();
    first.await;
    bench
        .flight()
        .await
        .all(Verdict::WaitsForLock(conflict()), true);
    let mut alone = Vec::new();
    while let Some(flight) = bench.try_flight().await {
        alone.push(flight);
    }
    assert_eq!(alone.len(), 32);
    alone.into_iter().for_each(Flight::ok);
    for _ in 0..8 {
        bench.flight().await.ok();
    }
    for (id, receipt) in (0..).zip(receipts) {
        assert_eq!(receipt.await.as_slice(), [done(id)]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_is_opened_again_and_nothing_is_lost() {
    let mut bench = Bench::new();
    let source = bench.intake.new_source();
    let receipt = bench.submit(source, vec![unit(1), unit(2)]).await;
    bench.flight().await.all(Verdict::RolledBack(gone()), false);
    let flight = bench.flight().await;
    assert_eq!(
        flight.ids,
        [1],
        "a batch that may have broken the connection is halved"
    );
    flight.ok();
    bench.flight().await.ok();
    assert_eq!(receipt.await.as_slice(), [done(1), done(2)]);
    assert_eq!(bench.connects(Purpose::Batches), 2);
    assert_eq!(bench.metric("windrow_reconnects_total{lane=\"main\"}"), 1.0);
}

#[tokio::test(start_paused = true)]
async fn writes_wait_for_a_database_that_is_away_but_not_for_ever() {
    let mut bench = Bench::new();
    bench.door(Some(gone()));
    let before = Instant::now();
    let waiting = bench.one(unit(1)).await;
    let outcome = waiting.await.pop().unwrap().unwrap_err().fault;
    assert_eq!(outcome.class, FaultClass::Unavailable);
    assert!(
        outcome.message.contains("nothing was written") && outcome.message.contains("away_wait")
    );
    assert!(
        before.elapsed() >= Duration::from_secs(5)
            && before.elapsed() < Duration::from_millis(5200)
    );
    let (away_for, reason) = bench.lane().status().away.unwrap();
    assert!(away_for >= Duration::from_secs(5) && reason.contains("refused"));

    let before = Instant::now();
    let late = bench.one(unit(2)).await;
    let fault = late.await.pop().unwrap().unwrap_err().fault;
    assert_eq!(fault.class, FaultClass::Unavailable);
    assert!(fault.message.contains("did not wait") && fault.message.contains("away_wait"));
    assert_eq!(before.elapsed(), Duration::ZERO, "fails fast by now");
    let judged = bench.lane().watch().takes_writes(|| {}).await;
    assert!(judged.unwrap_err().message.contains("did not wait"));

    bench.door(None);
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert_eq!(bench.lane().watch().takes_writes(|| {}).await, Ok(()));
    let back = bench.one(unit(3)).await;
    let flight = bench.flight().await;
    assert_eq!(flight.ids, [3]);
    flight.ok();
    assert_eq!(back.await.as_slice(), [done(3)]);
    assert_eq!(bench.lane().status().away, None);
    assert!(bench.connects(Purpose::Batches) < 20);
}

#[tokio::test(start_paused = true)]
async fn a_short_outage_is_only_a_delay() {
    let mut bench = Bench::new();
    bench.door(Some(gone()));
    let first = bench.one(unit(1)).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let second = bench.one(unit(2)).await;
    bench.door(None);
    let flight = bench.flight().await;
    assert_eq!(flight.ids, [1, 2]);
    flight.ok();
    assert_eq!(
        (first.await, second.await),
        ([done(1)].into(), [done(2)].into())
    );
}

#[tokio::test(start_paused = true)]
async fn a_unit_that_arrives_during_an_outage_has_its_own_time() {
    let bench = Bench::new();
    bench.door(Some(gone()));
    let _first = bench.one(unit(1)).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let before = Instant::now();
    let second = bench.one(unit(2)).await;
    assert!(second.await.pop().unwrap().is_err());
    assert!(before.elapsed() >= Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_told_at_once() {
    let mut bench = Bench::new();
    let denied = denied();
    bench.door(Some(denied.clone()));
    let before = Instant::now();
    let receipt = bench.one(unit(1)).await;
    assert_eq!(receipt.await.as_slice(), [Err(denied.into())]);
    assert_eq!(before.elapsed(), Duration::ZERO);
    bench.door(None);
    let receipt = bench.one(unit(2)).await;
    bench.flight().await.ok();
    assert_eq!(receipt.await.as_slice(), [done(2)]);
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_told_as_unknown_and_the_lane_goes_on() {
    let mut bench = Bench::new();
    let receipt = bench
        .submit(bench.intake.new_source(), vec![unit(1), unit(2)])
        .await;
    bench.flight().await.crash();
    for outcome in receipt.await {
        assert_eq!(outcome.unwrap_err().fault.class, FaultClass::Unknown);
    }
    let receipt = bench.one(unit(3)).await;
    bench.flight().await.ok();
    assert_eq!(receipt.await.as_slice(), [done(3)]);
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_a_unit_alone_is_told_as_unknown() {
    let mut bench = Bench::new();
    let receipt = bench.one(unit(1)).await;
    bench
        .flight()
        .await
        .all(Verdict::WaitsForLock(conflict()), true);
    bench.flight().await.crash();
    assert_eq!(
        receipt.await.pop().unwrap().unwrap_err().fault.class,
        FaultClass::Unknown
    );
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_reports_on_too_few_leaves_nobody_waiting() {
    let mut bench = Bench::new();
    let receipt = bench
        .submit(bench.intake.new_source(), vec![unit(1), unit(2)])
        .await;
    bench.flight().await.report(vec![told(1)]);
    let outcomes = receipt.await;
    assert_eq!(outcomes[0], done(1));
    assert_eq!(
        outcomes[1].clone().unwrap_err().fault.class,
        FaultClass::Unknown
    );
}

#[tokio::test(start_paused = true)]
async fn shutdown_waits_for_a_database_that_is_away_only_as_long_as_writes_do() {
    let limits = Limits {
        away_wait: Duration::from_secs(1),
        ..Limits::default()
    };
    let mut bench = Bench::with(1, limits);
    bench.door(Some(gone()));
    let receipt = bench.one(unit(1)).await;
    let before = Instant::now();
    bench.lane.take().unwrap().shutdown().await;
    assert!(before.elapsed() < Duration::from_secs(2));
    assert_eq!(
        receipt.await.pop().unwrap().unwrap_err().fault.class,
        FaultClass::Unavailable
    );
}
