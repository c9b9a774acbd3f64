//! What is taken back after it has left.

use std::time::Duration;

use tokio::time::Instant;
use windrow_core::sink::Purpose;
use windrow_core::{Fault, FaultClass, UnitOutcome, Verdict};

use crate::support::*;

fn given_up() -> UnitOutcome {
    Err(Fault::called_back().into())
}

fn lock() -> Verdict {
    Verdict::WaitsForLock(conflict())
}

#[tokio::test(start_paused = true)]
async fn a_unit_that_flies_by_itself_is_interrupted_in_the_databases_words() {
    let mut bench = Bench::new();
    let source = bench.intake.new_source();
    let receipt = bench.submit(source, vec![unit(1)]).await;
    let flight = bench.flight().await;
    bench.intake.cancel(source);
    bench.requests(1).await;
    let words = Fault::late();
    flight.all(Verdict::Final(Err(words.clone().into())), true);
    assert_eq!(receipt.await.as_slice(), [Err(words.into())]);
    let asked = bench.requested();
    // Nobody who comes later is disturbed.
    let next = bench.submit(source, vec![unit(2)]).await;
    bench.flight().await.ok();
    assert_eq!(next.await.as_slice(), [done(2)]);
    assert_eq!(bench.requested(), asked);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_met_nothing_is_made_again() {
    let mut bench = Bench::new();
    let source = bench.intake.new_source();
    let receipt = bench.submit(source, vec![unit(1)]).await;
    let flight = bench.flight().await;
    bench.intake.cancel(source);
    bench.requests(3).await;
    flight.ok();
    assert_eq!(receipt.await.as_slice(), [done(1)]);
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_not_used_while_a_request_is_on_its_way() {
    let mut bench = Bench::new();
    let source = bench.intake.new_source();
    let receipt = bench.submit(source, vec![unit(1)]).await;
    let flight = bench.flight().await;
    bench.hold_requests(true);
    bench.intake.cancel(source);
    bench.requests(1).await;
    let other = bench.one(unit(2)).await;
    flight.ok();
    assert!(bench.try_flight().await.is_none());
    bench.hold_requests(false);
    assert_eq!(receipt.await.as_slice(), [done(1)]);
    bench.flight().await.ok();
    assert_eq!(other.await.as_slice(), [done(2)]);
    assert_eq!(bench.connects(Purpose::Batches), 1);
    // One whose way is not known costs the connection.
    bench.fail_requests(Fault::unavailable("no answer"));
    let receipt = bench.submit(source, vec![unit(3)]).await;
    let flight = bench.flight().await;
    bench.intake.cancel(source);
    bench.requests(2).await;
    flight.ok();
    assert_eq!(receipt.await.as_slice(), [done(3)]);
    let _other = bench.one(unit(4)).await;
    bench.flight().await.ok();
    assert_eq!(bench.connects(Purpose::Batches), 2);
}

#[tokio::test(start_paused = true)]
async fn a_unit_that_runs_alone_is_interrupted_and_those_behind_it_go_on() {
    let mut bench = Bench::new();
    let source = bench.intake.new_source();
    let first = bench.submit(source, vec![unit(1)]).await;
    let second = bench.submit(source, vec![unit(2)]).await;
    bench.flight().await.all(lock(), true);
    let alone = bench.flight().await;
    assert_eq!(
        (alone.ids.as_slice(), alone.purpose),
        (&[1][..], Purpose::LockWait)
    );
    bench.intake.cancel(source);
    bench.requests(1).await;
    alone.all(Verdict::RolledBack(conflict()), true);
    assert_eq!(first.await.as_slice(), [given_up()]);
    let flight = bench.flight().await;
    assert_eq!(flight.ids, [2]);
    flight.ok();
    assert_eq!(second.await.as_slice(), [done(2)]);
}

#[tokio::test(start_paused = true)]
async fn units_of_a_source_that_run_alone_are_answered_one_by_one_on_one_connection() {
    let mut bench = Bench::new();
    let source = bench.intake.new_source();
    let held = bench.one(unit(9)).await;
    let flight = bench.flight().await;
    let first = bench.submit(source, vec![unit(1)]).await;
    let second = bench.submit(source, vec![unit(2)]).await;
    flight.ok();
    held.await;
    let flight = bench.flight().await;
    assert_eq!(flight.ids, [1, 2]);
    flight.all(lock(), true);
    bench.flight().await.ok();
    assert_eq!(first.await.as_slice(), [done(1)]);
    let alone = bench.flight().await;
    assert_eq!(alone.ids, [2]);
    // The first one is answered: now the second is meant.
    bench.intake.cancel(source);
    bench.requests(1).await;
    alone.all(Verdict::Final(given_up()), true);
    assert_eq!(second.await.as_slice(), [given_up()]);
    assert_eq!(bench.connects(Purpose::LockWait), 1);
}

#[tokio::test(start_paused = true)]
async fn in_a_batch_of_several_it_takes_effect_once_the_batch_lets_go_of_the_unit() {
    for verdict in [lock(), Verdict::RolledBack(conflict())] {
        let mut bench = Bench::new();
        let held = bench.one(unit(9)).await;
        let flight = bench.flight().await;
        let sources = [bench.intake.new_source(), bench.intake.new_source()];
        let first = bench.submit(sources[0], vec![unit(1)]).await;
        let second = bench.submit(sources[1], vec![unit(2)]).await;
        flight.ok();
        held.await;
        let flight = bench.flight().await;
        bench.intake.cancel(sources[0]);
        assert!(bench.try_flight().await.is_none());
        assert_eq!(bench.requested(), 0, "its neighbour is not disturbed");
        flight.all(verdict, true);
        assert_eq!(first.await.as_slice(), [given_up()]);
        let flight = bench.flight().await;
        assert_eq!(flight.ids, [2]);
        flight.ok();
        assert_eq!(second.await.as_slice(), [done(2)]);
    }
}

#[tokio::test(start_paused = true)]
async fn who_has_left_is_not_waited_for() {
    let mut bench = Bench::new();
    let receipt = bench.one(unit(1)).await;
    let flight = bench.flight().await;
    drop(receipt);
    assert!(bench.try_flight().await.is_none());
    assert_eq!(bench.requested(), 0, "what has left takes place");
    flight.all(lock(), true);
    assert!(bench.try_flight().await.is_none(), "but waits for nobody");
    let receipt = bench.one(unit(2)).await;
    bench.flight().await.all(lock(), true);
    let alone = bench.flight().await;
    drop(receipt);
    bench.requests(1).await;
    alone.all(Verdict::Final(given_up()), true);
    let abandoned = "windrow_abandoned_units_total{lane=\"main\"}";
    assert_eq!(bench.metric(abandoned), 1.0);
}

#[tokio::test(start_paused = true)]
async fn what_a_client_has_sent_before_it_closed_its_side_is_executed_but_waits_for_no_lock() {
    let mut bench = Bench::new();
    let held = bench.one(unit(9)).await;
    let flight = bench.flight().await;
    let (source, other) = (bench.intake.new_source(), bench.intake.new_source());
    let first = bench.submit(source, vec![unit(1)]).await;
    let second = bench.submit(other, vec![unit(2)]).await;
    bench.intake.closed(source);
    bench.intake.closed(other);
    flight.ok();
    held.await;
    let flight = bench.flight().await;
    assert_eq!(flight.ids, [1, 2]);
    flight.report(vec![told(1), lock()]);
    assert_eq!(first.await.as_slice(), [done(1)]);
    assert_eq!(second.await.as_slice(), [given_up()]);

    let source = bench.intake.new_source();
    let receipt = bench.submit(source, vec![unit(3)]).await;
    bench.flight().await.all(lock(), true);
    let alone = bench.flight().await;
    bench.intake.closed(source);
    bench.requests(1).await;
    alone.all(Verdict::Final(given_up()), true);
    assert_eq!(receipt.await.as_slice(), [given_up()]);
}

#[tokio::test(start_paused = true)]
async fn who_has_waited_for_longer_than_a_statement_may_take_is_told_so() {
    let mut bench = Bench::new();
    bench.allow(Duration::from_secs(2));
    let stuck = bench.one(unit(1)).await;
    let flight = bench.flight().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let since = Instant::now();
    let early = bench.one(unit(2)).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let later = bench.one(unit(3)).await;
    assert_eq!(early.await.as_slice(), [Err(Fault::late().into())]);
    let took = since.elapsed();
    assert!(
        took >= Duration::from_secs(2) && took < Duration::from_millis(2050),
        "{took:?}"
    );
    flight.ok();
    assert_eq!(
        stuck.await.as_slice(),
        [done(1)],
        "it had left: the database decides"
    );
    bench.flight().await.ok();
    assert_eq!(later.await.as_slice(), [done(3)]);
}

#[tokio::test(start_paused = true)]
async fn where_there_is_no_room_for_a_connection_more_those_that_are_there_are_used() {
    let mut bench = Bench::new();
    let held = bench.one(unit(9)).await;
    let flight = bench.flight().await;
    let first = bench.one(unit(1)).await;
    let second = bench.one(unit(2)).await;
    flight.ok();
    held.await;
    let flight = bench.flight().await;
    let alone = {
        flight.report(vec![lock(), Verdict::RolledBack(conflict())]);
        let alone = bench.flight().await;
        assert_eq!(alone.purpose, Purpose::LockWait);
        alone
    };
    let words = "sorry, too many clients already";
    let full = Fault::new(FaultClass::Unavailable, "53300", words);
    bench.door(Some(full));
    bench.flight().await.all(lock(), true);
    assert!(bench.try_flight().await.is_none());
    alone.ok();
    assert_eq!(first.await.as_slice(), [done(1)]);
    let alone = bench.flight().await;
    assert_eq!(
        (alone.ids.as_slice(), alone.purpose),
        (&[2][..], Purpose::LockWait)
    );
    alone.ok();
    assert_eq!(second.await.as_slice(), [done(2)]);
    assert_eq!(bench.connects(Purpose::LockWait), 2);
}
