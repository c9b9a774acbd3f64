//! What is in the spool comes into the database: in order, together where it may be, once.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use windrow_core::Intake;
use windrow_core::{Budget, Spooling as _};
use windrow_drain::{DrainState, Handle, Options};

use crate::fake::{Kind, World, entry, entry_on};

const GOOD: Kind = Kind::Good;

#[tokio::test(start_paused = true)]
async fn entries_are_applied_in_order_and_together() {
    let world = World::of(&[GOOD; 250]);
    let drain = world.start();
    drain.all_applied().await;
    assert_eq!(world.written(), Vec::from_iter(0..250));
    assert_eq!(world.tables().position(), Some(250));
    // The first alone, because its table was not known; then as many as the database takes at once.
    assert_eq!(world.database.state().tried, [1, 98, 98, 53]);
    let status = drain.until(|state| *state == DrainState::Level).await;
    assert_eq!(
        (status.applied, status.end, status.entries),
        (Some(250), 250, 0)
    );
    assert_eq!((status.applied_entries, status.rejected_entries), (250, 0));
    assert_eq!(status.age, None);
    // What comes later is applied at once.
    world.log.push(entry(250, &[GOOD, GOOD]));
    drain.all_applied().await;
    assert_eq!(world.tables().rows[250..], [(250, 0), (250, 1)]);
    for line in [
        "windrow_spool_applied_entries_total{partition=\"0\"} 251\n",
        "windrow_spool_transactions_total{partition=\"0\",outcome=\"applied\"} 5\n",
        "windrow_spool_transaction_entries_count{partition=\"0\"} 5\n",
    ] {
        let metrics = drain.metrics();
        assert!(metrics.contains(line), "{line} is missing in {metrics}");
    }
    drain.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_start_goes_on_where_the_last_one_ended() {
    let world = World::of(&[GOOD; 10]);
    let drain = world.start();
    drain.all_applied().await;
    drain.stop().await;
    for number in 10..20 {
        world.log.push(entry(number, &[GOOD]));
    }
    let drain = world.start();
    drain.all_applied().await;
    assert_eq!(world.written(), Vec::from_iter(0..20));
    assert_eq!(drain.status().await.applied_entries, 10);
}

#[tokio::test(start_paused = true)]
async fn what_must_be_alone_is_alone() {
    let world = World::new();
    for number in 0..12 {
        let table = if number % 4 == 3 { "apart" } else { "t" };
        world.log.push(entry_on(table, number, &[GOOD]));
    }
    // An entry without writes takes its position and nothing else.
    world.log.push(entry(12, &[]));
    let drain = world.start();
    drain.all_applied().await;
    assert_eq!(world.written(), Vec::from_iter(0..12));
    assert_eq!(world.tables().position(), Some(13));
    // The database says the same of any company that should not be.
    assert_eq!(world.database.state().tried, [1, 2, 1, 3, 1, 3, 1, 0]);
}

#[tokio::test(start_paused = true)]
async fn what_was_applied_is_given_up_some_time_later() {
    let world = World::of(&[GOOD; 10]);
    let drain = world.start();
    drain.all_applied().await;
    tokio::time::sleep(Duration::from_secs(9)).await;
    assert_eq!(world.log.trimmed(), 0);
    world.log.push(entry(10, &[GOOD]));
    drain.all_applied().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(world.log.trimmed(), 10);
    tokio::time::sleep(Duration::from_secs(7)).await;
    assert_eq!(world.log.trimmed(), 11);
}

/// What comes within a few milliseconds shares a transaction, unless somebody waits for it.
#[tokio::test(start_paused = true)]
async fn few_entries_are_gathered_unless_somebody_waits() {
    let world = World::of(&[GOOD]);
    let drain = world.start();
    drain.all_applied().await;
    world.database.state().tried.clear();
    for number in 1..5 {
        world.log.push(entry(number, &[GOOD]));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    drain.until(|state| *state == DrainState::Level).await;
    assert_eq!(world.database.state().tried, [4]);
    world.log.push(entry(5, &[GOOD]));
    let asked = tokio::time::Instant::now();
    drain.all_applied().await;
    assert!(asked.elapsed() < Duration::from_millis(5));
    assert_eq!(world.written(), Vec::from_iter(0..6));
}

#[tokio::test(start_paused = true)]
async fn it_stops_behind_the_transaction_under_way() {
    let world = World::of(&[GOOD; 300]);
    world.database.state().faults.slow = 100;
    let drain = world.start_with(Options {
        first_entries: 5,
        ..Options::default()
    });
    drain.progress.applied(&place(&drain, 3)).await.unwrap();
    let progress = drain.progress.clone();
    drain.stop().await;
    let applied = world.written().len() as u64;
    assert!((3..300).contains(&applied), "{applied}");
    assert_eq!(world.tables().position(), Some(applied));
    let end = progress.end();
    let fault = progress.applied(&end).await.unwrap_err();
    assert!(fault.message.contains("shutting down"), "{fault}");
    assert_eq!(fault.class, windrow_core::FaultClass::Unavailable);
}

fn place(drain: &crate::fake::Running, position: u64) -> windrow_core::SpoolPlace {
    windrow_core::SpoolPlace {
        positions: [position].into(),
        ..drain.end()
    }
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_place_goes_on_once_it_is_applied() {
    let world = World::of(&[GOOD; 3]);
    let drain = world.start();
    let (intake, _arrivals) = Intake::channel(Budget::new(1), 1);
    let ending = CancellationToken::new();
    let handle = Handle::new(intake, drain.progress.clone(), ending.clone());
    let end = handle.end();
    assert_eq!(end.to_string(), "0000000000000000000000000000004d-3");
    handle.applied(&end).await.unwrap();
    assert_eq!(world.written(), [0, 1, 2]);
    // A place that is long past.
    handle.applied(&place(&drain, 1)).await.unwrap();
    for (spool, positions) in [(78, vec![1]), (77, vec![4]), (77, vec![]), (77, vec![1, 1])] {
        let place = windrow_core::SpoolPlace {
            spool,
            positions: positions.into(),
        };
        let fault = handle.applied(&place).await.unwrap_err();
        assert_eq!(fault.class, windrow_core::FaultClass::Invalid, "{place}");
    }
    // Nobody waits for a database that is away when the program is to end.
    world.database.state().faults.away = Some(windrow_core::Fault::unavailable("away"));
    world.log.push(entry(3, &[GOOD]));
    ending.cancel();
    let fault = handle.applied(&handle.end()).await.unwrap_err();
    assert_eq!(fault.class, windrow_core::FaultClass::Unavailable);
    handle.applied(&end).await.unwrap();
}
