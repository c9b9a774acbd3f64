//! What the pace leaves alone.

use std::time::Duration;

use proptest::prelude::*;
use windrow_lanes::pace::{Bounds, Landing, Pace, Setting};

use crate::database::Database;
use crate::run::{Load, Pilot, Run};

const BOUNDS: Bounds = Bounds {
    flights: 16,
    rows: 8192,
};

fn found() -> Pilot {
    Pilot::Found(Box::new(Pace::new(BOUNDS)))
}

/// While the database keeps up, rows per second say nothing about it: nothing is tried.
#[test]
fn nothing_is_tried_at_low_load() {
    for rate in [50.0, 500.0, 1500.0] {
        let (run, _) = Run::of(&Database::local(), Load::Open { rate }, found(), 20.0, 1);
        let start = Pace::new(BOUNDS).setting();
        assert!(run.between(0.0, 20.0).count() > 900);
        let tried = run
            .between(0.0, 20.0)
            .find(|(_, _, setting)| *setting != start);
        assert_eq!(tried, None, "at {rate} rows a second");
    }
}

/// Where one flight is best, noise does not make W wander: in half a minute after the first second,
/// nearly all rows leave with one flight.
#[test]
fn noise_does_not_make_it_wander() {
    for jitter in [0.0, 0.1, 0.3] {
        let database = Database {
            jitter,
            ..Database::local()
        };
        let load = Load::Closed {
            clients: 64,
            turnaround: 50.0,
        };
        let (run, _) = Run::of(&database, load, found(), 31.0, 3);
        let rows = |of: &dyn Fn(&Setting) -> bool| -> usize {
            run.between(1.0, 31.0)
                .filter(|(_, _, s)| of(s))
                .map(|(_, rows, _)| rows)
                .sum()
        };
        let share = rows(&|setting| setting.flights == 1) as f64 / rows(&|_| true) as f64;
        assert!(share > 0.9, "jitter {jitter}: {share:.3}");
    }
}

/// On a steady database trials become rare: they take less than a twentieth of the time.
#[test]
fn trials_are_rare_once_it_has_settled() {
    for load in [
        Load::Backlog,
        Load::Closed {
            clients: 1000,
            turnaround: 50.0,
        },
    ] {
        let (run, pilot) = Run::of(&Database::local(), load, found(), 31.0, 3);
        let all = run.between(3.0, 31.0).count() as f64;
        let most = run
            .between(3.0, 31.0)
            .filter(|(_, _, setting)| *setting == pilot.setting())
            .count() as f64;
        assert!(most / all > 0.95, "{load:?}: {:.3}", most / all);
    }
}

/// Where a round trip takes 40 ms, forty of them are enough to come within 10 % of the best.
#[test]
fn far_away_it_takes_forty_round_trips() {
    let database = Database {
        round_trip: 40_000.0,
        ..Database::local()
    };
    let load = Load::Closed {
        clients: 1000,
        turnaround: 50.0,
    };
    let (run, _) = Run::of(&database, load, found(), 5.0, 1);
    let best = run.rate(4.0, 5.0);
    let good = |at: &f64| run.rate(*at, at + 0.4) >= 0.9 * best;
    let settled = (0..50).map(|n| f64::from(n) / 10.0).find(good).unwrap();
    assert!(settled / 0.040 <= 40.0, "{settled} s");
}

proptest! {
    /// Whatever lands: it stays within its bounds.
    #[test]
    fn bounds_hold(
        flights in 1..20usize,
        rows in 1..20_000usize,
        landings in prop::collection::vec((0..100_000u64, 1..20_000usize, any::<[bool; 3]>()), 1..400),
    ) {
        let mut pace = Pace::new(Bounds { flights, rows });
        let mut at = Duration::ZERO;
        for (after, landed, [cut, waited, disturbed]) in landings {
            at += Duration::from_micros(after);
            if disturbed && cut && waited {
                pace.disturbed();
            }
            let connected = if disturbed { 1 } else { flights };
            let took = Duration::from_micros(after / 2);
            pace.landed(Landing { at, took, rows: landed, cut, waited, back: cut, flying: landed % 20, connected, sources: landed % 40 });
            let setting = pace.setting();
            prop_assert!((1..=flights).contains(&setting.flights) && (1..=rows).contains(&setting.rows), "{setting:?}");
        }
    }
}
