//! What a drain may take.

use std::sync::atomic::Ordering;

use windrow_core::{Database, Executor, Fault, FaultClass, Profile, Purpose, Sink};
use windrow_drain::{Drain, DrainMetrics, Options};

use crate::fake::{FakeLog, Kind, World, Wrong, entry};

/// While the database does nothing, no more is read than may be held.
#[tokio::test(start_paused = true)]
async fn what_is_read_ahead_is_bounded() {
    let world = World::of(&[Kind::Good; 5_000]);
    world.database.state().faults.slow = 1_000_000;
    let options = Options {
        memory: 20_000,
        ..Options::default()
    };
    let drain = world.start_with(options.clone());
    let read = || world.log.inner.read.load(Ordering::Relaxed);
    while world.database.state().tried.is_empty() {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
    // A chunk of a few hundred entries that are not decoded yet may come on top.
    assert!((10..1_000).contains(&read()), "{}", read());
    world.database.state().faults.slow = 0;
    drain.all_applied().await;
    assert_eq!(world.written(), Vec::from_iter(0..5_000));
}

/// An entry that is larger than everything is applied by itself.
#[tokio::test(start_paused = true)]
async fn a_large_entry_is_applied_all_the_same() {
    let world = World::of(&[Kind::Good; 3]);
    world.log.push(entry(3, &[Kind::Good; 500]));
    world.log.push(entry(4, &[Kind::Good]));
    let drain = world.start_with(Options {
        memory: 1_000,
        unit_bytes: 1_000,
        ..Options::default()
    });
    drain.all_applied().await;
    assert_eq!(world.tables().rows.len(), 504);
    assert!(world.database.state().tried.contains(&500));
}

/// A unit that the database rolls back again and again becomes smaller.
#[tokio::test(start_paused = true)]
async fn after_many_conflicts_fewer_go_together() {
    let world = World::of(&[Kind::Good; 64]);
    let drain = world.start_with(Options {
        first_entries: 2,
        ..Options::default()
    });
    drain.all_applied().await;
    world.database.state().tried.clear();
    world.database.state().faults.next = vec![Wrong::Conflict; 9];
    for number in 64..150 {
        world.log.push(entry(number, &[Kind::Good]));
    }
    drain.all_applied().await;
    let tried = world.database.state().tried.clone();
    assert_eq!(tried[..3], [tried[0]; 3]);
    assert!(tried[9] * 8 < tried[0], "{tried:?}");
    assert_eq!(world.written(), Vec::from_iter(0..150));
}

/// A database that cannot keep how far a spool has come.
struct Without;

#[async_trait::async_trait]
impl Sink for Without {
    fn profile(&self) -> &Profile {
        static PROFILE: Profile = Profile {
            name: "Heap",
            transactional: false,
            flights: 1,
            batch_rows: 1,
            limitations: &[],
        };
        &PROFILE
    }

    async fn connect(&self, _: Purpose) -> Result<Box<dyn Executor>, Fault> {
        Err(Fault::unavailable("never"))
    }
}

#[async_trait::async_trait]
impl Database for Without {
    async fn ping(&self) -> Result<(), Fault> {
        Ok(())
    }
}

#[test]
fn a_database_without_transactions_is_refused_by_name() {
    let metrics = DrainMetrics::register(&mut prometheus_client::registry::Registry::default());
    let database = std::sync::Arc::new(Without);
    let refused = Drain::new(&FakeLog::new(), database, Options::default(), &metrics);
    let fault = refused.err().unwrap();
    assert_eq!(fault.class, FaultClass::Unsupported);
    assert!(fault.message.contains("Heap"), "{fault}");
}
