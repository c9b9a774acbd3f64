//! Lanes that have nothing to do, and lanes that come and go.

use std::time::Duration;

use windrow_core::sink::Purpose;
use windrow_core::{Fault, FaultClass, Limits};

use crate::support::*;

const SHOWN: &str = "windrow_database_away{lane=\"main\"}";
const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn an_idle_lane_closes_its_connections_and_opens_them_with_the_next_write() {
    let mut bench = Bench::new();
    for turn in 1..=3 {
        let receipt = bench.one(unit(7)).await;
        bench.flight().await.ok();
        assert_eq!(receipt.await.as_slice(), [done(7)]);
        assert_eq!(bench.connects(Purpose::Batches), turn);
        tokio::time::sleep(MINUTE / 2).await;
        assert_eq!(bench.closes(), turn - 1);
        assert_eq!(bench.lane().status().connections, 1);
        tokio::time::sleep(MINUTE).await;
        assert_eq!(
            (bench.closes(), bench.lane().status().connections),
            (turn, 0)
        );
    }
    assert_eq!(bench.lane().status().reconnects, 0);
}

#[tokio::test(start_paused = true)]
async fn a_connection_in_use_stays() {
    let mut bench = Bench::new();
    for id in 0..20 {
        let receipt = bench.one(unit(id)).await;
        let flight = bench.flight().await;
        tokio::time::sleep(MINUTE * 2 / 3).await;
        flight.ok();
        receipt.await;
        tokio::time::sleep(MINUTE * 2 / 3).await;
    }
    assert_eq!((bench.connects(Purpose::Batches), bench.closes()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn connections_can_be_kept_for_ever() {
    let limits = Limits {
        idle_close: Duration::MAX,
        ..Limits::default()
    };
    let mut bench = Bench::with(1, limits);
    let receipt = bench.one(unit(1)).await;
    bench.flight().await.ok();
    receipt.await;
    tokio::time::sleep(1000 * MINUTE).await;
    assert_eq!(bench.closes(), 0);
}

#[tokio::test(start_paused = true)]
async fn it_is_seen_how_long_a_lane_has_had_nothing_to_do() {
    let mut bench = Bench::new();
    tokio::time::sleep(MINUTE).await;
    assert_eq!(bench.lane().status().idle, Some(MINUTE));
    let receipt = bench.one(unit(1)).await;
    let flight = bench.flight().await;
    assert_eq!(bench.lane().status().idle, None);
    tokio::time::sleep(MINUTE).await;
    assert_eq!(bench.lane().status().idle, None);
    flight.ok();
    receipt.await;
    assert_eq!(bench.lane().status().idle, Some(Duration::ZERO));
    tokio::time::sleep(MINUTE).await;
    assert_eq!(bench.lane().status().idle, Some(MINUTE));
}

#[tokio::test(start_paused = true)]
async fn a_lane_whose_intakes_are_gone_ends_and_takes_its_series_with_it() {
    let mut bench = Bench::new();
    let receipt = bench.one(unit(1)).await;
    let flight = bench.flight().await;
    let watch = bench.lane().watch();
    drop(bench.lane.take());
    bench.close_intake();
    flight.ok();
    assert_eq!(receipt.await.as_slice(), [done(1)]);
    assert!(bench.next_flight().await.is_none());
    assert_eq!(bench.closes(), 1);
    assert!(!bench.has_series());
    assert_eq!(watch.status().succeeded, 1);
    let late = bench.intake.run(bench.intake.new_source(), unit(3)).await;
    assert_eq!(late.unwrap_err().fault.class, FaultClass::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_lane_without_work_shows_what_a_probe_of_its_database_found() {
    let mut bench = Bench::new();
    let away = |bench: &Bench| bench.lane().status().away.map(|(_, reason)| reason);
    let found = async |bench: &Bench, result: Result<(), Fault>| {
        bench.intake.probed(result);
        // Lets the lane read it.
        tokio::time::sleep(Duration::from_millis(1)).await;
        away(bench)
    };
    let gone = || Fault::unavailable("nobody listens");
    assert_eq!(
        found(&bench, Err(gone())).await.as_deref(),
        Some("nobody listens")
    );
    assert_eq!(bench.metric(SHOWN), 1.0);
    assert_eq!(found(&bench, Ok(())).await, None);
    assert_eq!(bench.metric(SHOWN), 0.0);

    // However long it was away, a write tries for itself.
    found(&bench, Err(gone())).await;
    tokio::time::sleep(100 * MINUTE).await;
    let receipt = bench.one(unit(1)).await;
    let flight = bench.flight().await;
    assert_eq!(away(&bench), None);
    // A lane that has something to do knows better.
    assert_eq!(found(&bench, Err(gone())).await, None);
    flight.ok();
    assert_eq!(receipt.await.as_slice(), [done(1)]);

    // If the write finds the same, it waits as long as the limit allows.
    bench.door(Some(gone()));
    tokio::time::sleep(2 * MINUTE).await;
    found(&bench, Err(gone())).await;
    let refused = bench.one(unit(2)).await.await;
    let fault = &refused[0].as_ref().unwrap_err().fault;
    assert_eq!(fault.class, FaultClass::Unavailable);
    assert!(fault.message.contains("limits.away_wait"), "{fault}");
}
