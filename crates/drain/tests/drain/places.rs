//! Where the database and the spool do not fit together, nothing is applied.

use std::sync::atomic::Ordering;

use windrow_core::{FaultClass, Value};
use windrow_drain::DrainState;
use windrow_spool::Spool as _;

use crate::fake::{Kind, Running, World, entry};

const GOOD: Kind = Kind::Good;

async fn stopped(drain: &Running) -> String {
    let is_stopped = |state: &DrainState| matches!(state, DrainState::Stopped { .. });
    let status = drain.until(is_stopped).await;
    let why = status.state.why().unwrap().to_owned();
    assert_eq!(drain.progress.stopped().as_deref(), Some(&*why));
    let fault = drain.progress.applied(&drain.end()).await.unwrap_err();
    assert_eq!(fault.class, FaultClass::Unavailable);
    assert!(fault.message.contains(&why), "{fault}");
    assert!(
        drain
            .metrics()
            .contains("windrow_spool_stopped{partition=\"0\"} 1\n")
    );
    why
}

#[tokio::test(start_paused = true)]
async fn a_database_that_has_fallen_behind_the_spool_gets_nothing() {
    let world = World::of(&[GOOD; 10]);
    let drain = world.start();
    drain.progress.applied(&drain.end()).await.unwrap();
    drain.stop().await;
    let copy = world.tables();
    for number in 10..20 {
        world.log.push(entry(number, &[GOOD]));
    }
    let drain = world.start();
    drain.all_applied().await;
    drain.stop().await;
    world.log.trim_to(15);
    world.database.state().tables = copy;
    world.log.push(entry(20, &[GOOD]));
    let drain = world.start();
    let why = stopped(&drain).await;
    assert!(why.contains("position 10 is gone"), "{why}");
    assert_eq!(world.written().len(), 10);
    drain.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_spool_from_an_old_copy_is_not_applied() {
    let world = World::of(&[GOOD; 10]);
    let drain = world.start();
    drain.all_applied().await;
    drain.stop().await;
    let old = World::of(&[GOOD; 6]);
    *old.database.state() = std::mem::take(&mut *world.database.state());
    let drain = old.start();
    let why = stopped(&drain).await;
    assert!(why.contains("beyond the end"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn another_database_gets_nothing_of_what_is_left() {
    let world = World::of(&[GOOD; 10]);
    world.log.trim_to(4);
    let drain = world.start();
    let why = stopped(&drain).await;
    assert!(why.contains("knows nothing of the spool"), "{why}");
    assert!(world.written().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_entry_of_a_newer_version_stops_the_drain_behind_those_before_it() {
    let world = World::of(&[GOOD; 4]);
    let mut newer = entry(4, &[GOOD]);
    newer[0] = 9;
    world.log.push(newer);
    world.log.push(entry(5, &[GOOD]));
    let drain = world.start();
    let why = stopped(&drain).await;
    assert!(
        why.contains("position 4") && why.contains("version 9"),
        "{why}"
    );
    assert_eq!(world.written(), [0, 1, 2, 3]);
    assert_eq!(drain.status().await.entries, 2);
    // What is applied already is no reason to wait.
    let place = windrow_core::SpoolPlace {
        positions: [4].into(),
        ..drain.end()
    };
    drain.progress.applied(&place).await.unwrap();
    drain.stop().await;
}

/// The row that says how far it is has gone while the drain ran.
#[tokio::test(start_paused = true)]
async fn a_row_that_has_gone_stops_the_drain() {
    let world = World::of(&[GOOD; 4]);
    let drain = world.start();
    drain.all_applied().await;
    world.database.state().tables.progress.clear();
    world.log.push(entry(4, &[GOOD]));
    let is_stopped = |state: &DrainState| matches!(state, DrainState::Stopped { .. });
    drain.until(is_stopped).await;
    world.log.push(entry(5, &[GOOD]));
    let why = stopped(&drain).await;
    assert!(why.contains("windrow_progress"), "{why}");
    assert_eq!(world.written(), Vec::from_iter(0..5));
}

/// A spool that comes back from an older copy gives positions to other entries that the database
/// has applied already.
#[tokio::test(start_paused = true)]
async fn another_spool_of_the_same_name_is_not_applied() {
    let world = World::of(&[GOOD; 3]);
    let drain = world.start();
    drain.all_applied().await;
    drain.stop().await;
    let other = World::of(&[GOOD; 5]);
    other.log.inner.gateway.store(2, Ordering::Relaxed);
    *other.database.state() = std::mem::take(&mut *world.database.state());
    let drain = other.start();
    let why = stopped(&drain).await;
    assert!(
        why.contains("the entry at position 2 is not the one"),
        "{why}"
    );
    assert_eq!(other.written().len(), 3);
    // Nothing more is acknowledged that could come behind it.
    assert_eq!(other.log.failure().as_deref(), Some(&*why));
}

/// Two gateways that use copies of one spool, on one database.
#[tokio::test(start_paused = true)]
async fn who_is_overtaken_by_a_copy_stops() {
    let world = World::of(&[GOOD; 3]);
    let drain = world.start();
    drain.all_applied().await;
    let row = |position: i64| [Value::Int(position), Value::text("00000000000000aa-7")];
    for found in world.database.state().tables.progress.values_mut() {
        *found = row(4);
    }
    for number in 3..6 {
        world.log.push(entry(number, &[GOOD]));
    }
    let why = stopped(&drain).await;
    assert!(
        why.contains("the entry at position 3 is not the one"),
        "{why}"
    );
    assert_eq!(world.written(), [0, 1, 2]);
}
