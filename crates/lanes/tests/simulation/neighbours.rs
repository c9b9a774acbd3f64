//! On a machine that others use too: noise is not mistaken for a gain, and what gains little is not
//! paid for by the database.

use windrow_lanes::pace::{Bounds, Pace, Setting};

use crate::database::{Database, Neighbours};
use crate::run::{Load, Pilot, Run};

const BOUNDS: Bounds = Bounds {
    flights: 16,
    rows: 8192,
};

fn closed(clients: usize) -> Load {
    Load::Closed {
        clients,
        turnaround: 150.0,
    }
}

/// Short and long visits, heavy and light ones.
fn neighbourhoods() -> impl Iterator<Item = Neighbours> {
    [(5e3, 20e3), (50e3, 100e3), (1e6, 2e6)]
        .into_iter()
        .flat_map(|(there, away)| [2.0, 4.0].map(|times| Neighbours { there, away, times }))
}

/// A server on the cores that its clients use: flights only get into each other's way.
fn local() -> Database {
    Database {
        jitter: 0.2,
        contention: 0.15,
        ..Database::local()
    }
}

#[test]
fn on_the_same_cores() {
    neighbours_neither_slow_it_down_nor_make_it_dear(&local());
}

#[test]
fn on_cores_of_which_some_are_its_own() {
    neighbours_neither_slow_it_down_nor_make_it_dear(&Database {
        serial_batch: 120.0,
        serial_row: 6.0,
        parallel_batch: 150.0,
        parallel_row: 4.0,
        contention: 0.25,
        ..local()
    });
}

#[test]
fn with_commits_in_parallel() {
    neighbours_neither_slow_it_down_nor_make_it_dear(&Database {
        serial_batch: 50.0,
        parallel_batch: 2000.0,
        contention: 0.05,
        ..local()
    });
}

#[test]
fn with_commits_that_share_a_flush() {
    neighbours_neither_slow_it_down_nor_make_it_dear(&Database {
        serial_batch: 60.0,
        serial_row: 5.0,
        flush: 1100.0,
        ..local()
    });
}

/// Rows a second, and what a row costs the database.
fn measure(database: &Database, clients: usize, pilot: Pilot, seed: u64) -> (f64, f64) {
    let (run, _) = Run::of(database, closed(clients), pilot, 20.0, seed);
    (run.rate(2.0, 20.0), run.cost(2.0, 20.0))
}

/// The best fixed number of flights, or one that gathers where commits share a flush: its rows a
/// second, and what a row costs with it.
fn best(database: &Database, clients: usize) -> (f64, f64) {
    let fixed = |(flights, gather)| {
        let setting = Setting {
            flights,
            rows: BOUNDS.rows,
            gather,
        };
        measure(database, clients, Pilot::Fixed(setting), 9)
    };
    let plain = [1, 2, 4, 8, 16].map(|flights| (flights, false));
    let gathers = (database.flush > 0.0).then_some((1, true));
    let all = plain.into_iter().chain(gathers).map(fixed);
    all.fold(
        (0.0, 0.0),
        |best, each| if each.0 > best.0 { each } else { best },
    )
}

/// As many rows a second as with the best fixed setting, within an eighth, and no row costs the
/// database more than a quarter above what it costs there: on average over all kinds of neighbours.
fn neighbours_neither_slow_it_down_nor_make_it_dear(database: &Database) {
    for clients in [8, 64, 256] {
        let (mut rates, mut costs) = (Vec::new(), Vec::new());
        for (seed, neighbours) in (0..).zip(neighbourhoods()) {
            let database = Database {
                neighbours: Some(neighbours),
                ..database.clone()
            };
            let (most, least) = best(&database, clients);
            let found = Pilot::Found(Box::new(Pace::new(BOUNDS)));
            let (rate, cost) = measure(&database, clients, found, seed);
            rates.push(rate / most);
            costs.push(cost / least);
        }
        let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
        assert!(mean(&rates) >= 0.875, "{clients} clients: {rates:.2?}");
        assert!(mean(&costs) <= 1.25, "{clients} clients: {costs:.2?}");
    }
}
