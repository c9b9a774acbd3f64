//! Clients that come back at once are waited for where that pays.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::support::*;

const FLIGHT: Duration = Duration::from_millis(20);
const TURNAROUND: Duration = Duration::from_millis(1);

/// A client that writes again as soon as it has its answer, until it is to stop.
fn client(bench: &Bench, id: i64, stop: &Arc<AtomicBool>) -> JoinHandle<()> {
    let (intake, stop) = (bench.intake.clone(), Arc::clone(stop));
    tokio::spawn(async move {
        let source = intake.new_source();
        while !stop.load(Ordering::Relaxed) {
            assert_eq!(intake.run(source, unit(id)).await, done(id));
            sleep(TURNAROUND).await;
        }
    })
}

/// Flies so many batches of a database that takes the same time for each; gives how large they
/// were.
async fn fly(bench: &mut Bench, batches: usize) -> Vec<usize> {
    let mut sizes = Vec::new();
    for _ in 0..batches {
        let flight = bench.flight().await;
        sizes.push(flight.ids.len());
        sleep(FLIGHT).await;
        flight.ok();
    }
    sizes
}

#[tokio::test(start_paused = true)]
async fn two_groups_of_clients_become_one() {
    let mut bench = Bench::new();
    let stops: Vec<_> = (0..8).map(|_| Arc::new(AtomicBool::new(false))).collect();
    let start = |bench: &Bench, ids: std::ops::Range<usize>| -> Vec<_> {
        let ids = ids.map(|id| (i64::try_from(id).unwrap(), &stops[id]));
        ids.map(|(id, stop)| client(bench, id, stop)).collect()
    };
    let mut clients = start(&bench, 0..4);
    let flight = bench.flight().await;
    clients.extend(start(&bench, 4..8));
    sleep(FLIGHT).await;
    flight.ok();
    assert_eq!(fly(&mut bench, 10).await, [4; 10]);
    fly(&mut bench, 400).await;
    let all = fly(&mut bench, 20).await;
    assert!(
        all.iter().filter(|size| **size == 8).count() > 15,
        "{all:?}"
    );
    // All but one leave: nobody keeps that one waiting, but for a moment at first.
    stops[1..]
        .iter()
        .for_each(|stop| stop.store(true, Ordering::Relaxed));
    fly(&mut bench, 10).await;
    let before = Instant::now();
    assert_eq!(fly(&mut bench, 20).await, [1; 20]);
    assert!(before.elapsed() <= 20 * (FLIGHT + 2 * TURNAROUND));
    // The last answer is given; its client sees this before it writes again.
    stops[0].store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }
}
