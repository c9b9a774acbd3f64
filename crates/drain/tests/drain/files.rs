//! The whole way with a spool in files: from the intake into the database, over restarts.

use std::path::Path;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use windrow_core::{Budget, Intake, Spooling, Unit};
use windrow_drain::{Drain, DrainMetrics, Handle, Options};
use windrow_spool::codec::decode_unit;
use windrow_spool::{Appender, FileSpool, Options as SpoolOptions, Spool};

use crate::fake::{Kind, World, entry};

fn unit(number: usize) -> Unit {
    let kind = match number % 10 {
        7 => Kind::Bad,
        _ => Kind::Good,
    };
    Unit::of(decode_unit(&entry(number, &[kind, Kind::Good])).unwrap())
}

/// Everything between clients and the database, from a start to a stop.
async fn run(directory: &Path, world: &World, numbers: std::ops::Range<usize>) {
    let options = SpoolOptions {
        segment_bytes: 10_000,
        ..SpoolOptions::default()
    };
    let spool = FileSpool::open(directory, options.clone()).await.unwrap();
    let metrics = DrainMetrics::register(&mut prometheus_client::registry::Registry::default());
    let database = Arc::new(world.database.clone());
    let drain = Drain::new(&spool, database, Options::default(), &metrics);
    let drain = drain.map_err(|fault| fault.to_string()).unwrap();
    let (intake, arrivals) = Intake::channel(Budget::new(1 << 20), 4);
    let stop = CancellationToken::new();
    let handle = Handle::new(intake, drain.progress(), stop.clone());
    let log = Arc::clone(&spool.logs()[0]);
    let appending = tokio::spawn(Appender::new(arrivals, log, &options).run(stop.clone()));
    let draining = tokio::spawn(drain.run(stop.clone()));
    let source = handle.intake().new_source();
    let mut receipts = Vec::new();
    for number in numbers {
        let unit = unit(number);
        let permit = handle.intake().budget().take(unit.bytes()).await.unwrap();
        let submitted = handle.intake().submit(source, [unit], permit).await;
        receipts.push(submitted.unwrap());
    }
    for receipt in receipts {
        assert!(receipt.await.iter().all(Result::is_ok));
    }
    // Once in three times it stops with much of it left.
    if world.database.state().connects != 2 {
        handle.applied(&handle.end()).await.unwrap();
    }
    stop.cancel();
    appending.await.unwrap();
    draining.await.unwrap();
    spool.close().await.unwrap();
}

#[tokio::test]
async fn what_was_acknowledged_is_applied_over_restarts() {
    let directory = tempfile::tempdir().unwrap();
    let world = World::new();
    world.database.state().faults.slow = 2;
    for round in 0..3 {
        run(directory.path(), &world, round * 400..(round + 1) * 400).await;
    }
    let good = (0..1_200).filter(|number| number % 10 != 7);
    let expected: Vec<i64> = good.flat_map(|number| [number, number]).collect();
    assert_eq!(world.written(), expected);
    assert_eq!(world.tables().letters.len(), 120);
    assert_eq!(world.tables().position(), Some(1_200));
}
