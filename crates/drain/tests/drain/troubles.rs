//! Whatever happens on the way, each entry is applied once.

use std::time::Duration;

use tokio::time::Instant;
use windrow_core::{Fault, FaultClass};
use windrow_drain::DrainState;

use crate::fake::{Kind, World, Wrong, entry};

const GOOD: Kind = Kind::Good;

fn is_waiting(state: &DrainState) -> bool {
    matches!(state, DrainState::Waiting { .. })
}

#[tokio::test(start_paused = true)]
async fn whatever_a_unit_meets_it_is_applied_once() {
    for wrong in [
        Wrong::Conflict,
        Wrong::Overload,
        Wrong::Lock,
        Wrong::Lost,
        Wrong::UnknownDone,
        Wrong::UnknownUndone,
        Wrong::UnknownLater,
    ] {
        for (entries, times) in [(1, 1), (1, 5), (30, 1), (30, 2), (30, 7)] {
            let world = World::of(&vec![GOOD; entries]);
            world.database.state().faults.slow = 20;
            world.database.state().faults.next = vec![wrong; times];
            let drain = world.start();
            drain.all_applied().await;
            let all = Vec::from_iter(0..entries as i64);
            assert_eq!(world.written(), all, "{wrong:?} {times} times");
            let applied = drain.status().await.applied_entries;
            assert_eq!(applied, entries as u64, "{wrong:?} {times} times");
            drain.stop().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_database_that_is_away_is_waited_for() {
    let world = World::of(&[GOOD; 5]);
    world.database.state().faults.away = Some(Fault::unavailable("nobody listens"));
    let drain = world.start();
    let status = drain.until(is_waiting).await;
    assert_eq!(status.state.why(), Some("nobody listens (08001)"));
    assert_eq!((status.applied, status.entries), (None, 5));
    tokio::time::sleep(Duration::from_secs(60)).await;
    // Once a second at most, once it has been away for a while.
    let connects = world.database.state().connects;
    assert!((40..90).contains(&connects), "{connects}");
    let DrainState::Waiting { since, .. } = drain.status().await.state else {
        panic!("it does not wait")
    };
    assert!(since >= Duration::from_secs(60));
    world.database.state().faults.away = None;
    let back = Instant::now();
    drain.all_applied().await;
    assert!(back.elapsed() <= Duration::from_secs(1));
    drain.until(|state| *state == DrainState::Level).await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_connection_is_tried_again_at_leisure() {
    let world = World::of(&[GOOD; 5]);
    let wrong = Fault::new(FaultClass::Denied, "28P01", "wrong password");
    world.database.state().faults.away = Some(wrong);
    let drain = world.start();
    let status = drain.until(is_waiting).await;
    assert_eq!(status.state.why(), Some("wrong password (28P01)"));
    tokio::time::sleep(Duration::from_secs(60)).await;
    let connects = world.database.state().connects;
    assert!(connects < 9, "{connects}");
    world.database.state().faults.away = None;
    drain.all_applied().await;
    assert_eq!(drain.progress.stopped(), None);
}

/// Locks that others hold are waited for, however long; operators are told.
#[tokio::test(start_paused = true)]
async fn locks_are_waited_for() {
    let world = World::of(&[GOOD; 5]);
    let drain = world.start();
    drain.all_applied().await;
    world.database.state().faults.next = vec![Wrong::Lock; 40];
    world.log.push(entry(5, &[GOOD]));
    let status = drain.until(is_waiting).await;
    assert_eq!(status.state.why(), Some("in the way (40P01)"));
    assert_eq!(status.entries, 1);
    drain.all_applied().await;
    assert_eq!(world.written(), Vec::from_iter(0..6));
    assert_eq!(world.database.state().connects, 1);
    let metrics = drain.metrics();
    let line = "windrow_spool_transactions_total{partition=\"0\",outcome=\"again\"} 40\n";
    assert!(metrics.contains(line), "{metrics}");
}

/// PostgreSQL with `synchronous_commit = off`.
#[tokio::test(start_paused = true)]
async fn a_database_that_loses_its_last_commits_gets_them_again() {
    let world = World::of(&[GOOD; 5]);
    let drain = world.start();
    drain.all_applied().await;
    let tables = world.tables();
    world.database.state().synced = Some((Instant::now(), tables));
    for number in 5..20 {
        world.log.push(entry(number, &[GOOD]));
    }
    drain.all_applied().await;
    tokio::time::sleep(Duration::from_secs(8)).await;
    world.database.state().crash();
    assert_eq!(world.written().len(), 5);
    // It is noticed when the connection is used next.
    world.log.push(entry(20, &[GOOD]));
    let end = drain.end();
    while world.tables().position() != Some(end.positions[0]) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(world.written(), Vec::from_iter(0..21));
}

/// The same, and it is away for longer than what was applied is kept while it is there: nobody
/// knows then whether it still has that.
#[tokio::test(start_paused = true)]
async fn nothing_is_given_up_while_the_database_is_away() {
    for applying in [false, true] {
        let world = World::of(&[GOOD; 5]);
        let drain = world.start();
        drain.all_applied().await;
        let tables = world.tables();
        world.database.state().synced = Some((Instant::now(), tables));
        for number in 5..20 {
            world.log.push(entry(number, &[GOOD]));
        }
        drain.all_applied().await;
        world.database.state().crash();
        world.database.state().faults.away = Some(Fault::unavailable("nobody listens"));
        if applying {
            world.log.push(entry(20, &[GOOD]));
            drain.until(is_waiting).await;
        }
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert!(world.log.trimmed() <= 5);
        world.database.state().faults.away = None;
        // It is found out without a further write.
        let entries = if applying { 21 } else { 20 };
        while world.written().len() < entries {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(world.written(), Vec::from_iter(0..entries as i64));
        assert_eq!(drain.progress.stopped(), None);
        // What it has is given up a while later.
        tokio::time::sleep(Duration::from_secs(13)).await;
        assert_eq!(world.log.trimmed(), entries as u64);
        drain.stop().await;
    }
}

/// It comes back even without Windrow's tables.
#[tokio::test(start_paused = true)]
async fn lost_tables_are_made_again() {
    let world = World::of(&[GOOD; 5]);
    let drain = world.start();
    drain.all_applied().await;
    let made = world.database.state().prepared;
    assert_eq!(made, 1);
    world.database.state().crash();
    world.log.push(entry(5, &[GOOD]));
    drain.all_applied().await;
    assert_eq!(world.database.state().prepared, 2);
}

#[tokio::test(start_paused = true)]
async fn somebody_else_who_applies_the_same_is_noticed() {
    let world = World::of(&[GOOD; 10]);
    let first = world.start();
    first.all_applied().await;
    let second = world.start();
    second.all_applied().await;
    world.database.state().faults.slow = 30;
    for number in 10..400 {
        world.log.push(entry(number, &[GOOD]));
        if number % 50 == 0 {
            tokio::time::sleep(Duration::from_millis(60)).await;
        }
    }
    first.all_applied().await;
    second.all_applied().await;
    assert_eq!(world.written(), Vec::from_iter(0..400));
    let metrics = first.metrics() + &second.metrics();
    let never = "outcome=\"overtaken\"} 0\n";
    assert!(metrics.matches(never).count() < 2, "{metrics}");
}
