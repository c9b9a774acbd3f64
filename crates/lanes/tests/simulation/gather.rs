//! Waiting for clients that come back at once: where it pays it is found, where it does not nobody
//! waits.

use windrow_lanes::pace::{Bounds, Gather, Pace, Setting};

use crate::database::Database;
use crate::run::{Load, Pilot, Run, best_of_grid};

const BOUNDS: Bounds = Bounds {
    flights: 8,
    rows: 8192,
};

/// A local server whose commits take so many microseconds, one after another.
fn commits_in(micros: f64) -> Database {
    Database {
        serial_batch: micros,
        ..Database::local()
    }
}

fn closed(clients: usize, turnaround: f64) -> Load {
    Load::Closed {
        clients,
        turnaround,
    }
}

fn found() -> Pilot {
    Pilot::Found(Box::new(Pace::new(BOUNDS)))
}

/// As it would be without: one flight, batches of any size.
fn plain() -> Pilot {
    Pilot::Fixed(Setting {
        flights: 1,
        rows: BOUNDS.rows,
        gather: false,
    })
}

/// As it would be found if it were not known who comes back.
fn deaf() -> Pilot {
    Pilot::Deaf(Box::new(Pace::new(BOUNDS)))
}

fn rate(database: &Database, load: Load, pilot: Pilot) -> f64 {
    Run::of(database, load, pilot, 6.0, 1).0.rate(3.0, 6.0)
}

/// The share of flights that waited.
fn gathered(run: &Run) -> f64 {
    let all = run.between(0.0, 10.0).count() as f64;
    run.between(0.0, 10.0).filter(|(_, _, s)| s.gather).count() as f64 / all
}

/// With slow commits and clients that come back at once, the pace comes within 10 % of the best
/// fixed setting, and is far above what two groups of clients reach that take turns.
#[test]
fn slow_commits_are_shared_by_all_who_come_back() {
    for commit in [1200.0, 5000.0, 20_000.0] {
        for clients in [2, 8, 64] {
            // A hiccup may let two clients have a flight each, for good: none of them waits for the
            // other then.
            let jitters: &[f64] = if clients > 2 { &[0.0, 0.1] } else { &[0.0] };
            for jitter in jitters.iter().copied() {
                let database = Database {
                    jitter,
                    ..commits_in(commit)
                };
                let load = closed(clients, 100.0);
                let (best, most) =
                    best_of_grid(&database, load, BOUNDS, (0.5, 2.0), &[false, true]);
                let (reached, without) = (
                    rate(&database, load, found()),
                    rate(&database, load, plain()),
                );
                println!(
                    "{commit} us, {clients} clients, jitter {jitter}: {reached:.0} rows/s, without {without:.0}, best {most:.0} of {best:?}"
                );
                assert!(reached >= 0.9 * most, "{commit} us, {clients} clients");
                assert!(reached >= 1.3 * without, "{commit} us, {clients} clients");
            }
        }
    }
}

/// Commits that wait for the same flush: nothing is gained by more flights than one.
fn flushes_in(micros: f64, jitter: f64) -> Database {
    Database {
        serial_batch: 60.0,
        serial_row: 5.0,
        flush: micros,
        jitter,
        ..Database::local()
    }
}

/// Where rows are dear and commits share a flush, many clients are best served by several flights,
/// and few by one that gathers them. Those who are left of many do not keep the many's flights.
#[test]
fn who_is_left_of_many_flies_together() {
    for left in [4, 8, 24] {
        for (seed, jitter) in (0..).zip([0.0, 0.2]) {
            let database = Database {
                parallel_row: 60.0,
                ..flushes_in(1100.0, jitter)
            };
            let (best, most) = best_of_grid(
                &database,
                closed(left, 150.0),
                BOUNDS,
                (0.5, 2.0),
                &[false, true],
            );
            let load = Load::Leaving {
                clients: 400,
                turnaround: 150.0,
                left,
                from: 4.0,
            };
            let (run, pilot) = Run::of(&database, load, found(), 20.0, seed);
            let reached = run.rate(12.0, 20.0);
            let (fixed, _) = Run::of(&database, closed(left, 150.0), Pilot::Fixed(best), 20.0, 1);
            let (cost, least) = (run.cost(12.0, 20.0), fixed.cost(12.0, 20.0));
            let many = run.between(3.0, 4.0).map(|(_, _, s)| s.flights).max();
            println!(
                "{left} left, jitter {jitter}: {reached:.0} rows/s of {most:.0} at {cost:.0} us of {least:.0}, {best:?}, from {many:?} to {:?}",
                pilot.setting()
            );
            assert!(reached >= 0.9 * most, "{left} left, jitter {jitter}");
            assert!(cost <= 1.2 * least, "{left} left, jitter {jitter}");
        }
    }
}

/// A pause says nothing about the flights before it, and nothing about those behind it.
#[test]
fn a_pause_is_not_taken_for_a_slow_database() {
    for clients in [8, 64] {
        for (work, pause) in [(0.5, 0.3), (2.0, 0.5)] {
            for (seed, jitter) in (0..).zip([0.0, 0.2]) {
                let database = flushes_in(1100.0, jitter);
                let load = Load::Coming {
                    clients,
                    turnaround: 150.0,
                    work,
                    pause,
                };
                let (run, _) = Run::of(&database, load, found(), 20.0, seed);
                let one = Setting {
                    flights: 1,
                    rows: 64,
                    gather: true,
                };
                let (best, _) = Run::of(&database, load, Pilot::Fixed(one), 20.0, seed);
                let (reached, most) = (run.rate(5.0, 20.0), best.rate(5.0, 20.0));
                assert!(
                    reached >= 0.9 * most,
                    "{clients} clients, {work} s of work, jitter {jitter}: {reached:.0} of {most:.0}"
                );
            }
        }
    }
}

/// With a fast disk nothing is lost by it.
#[test]
fn fast_commits_lose_nothing() {
    for clients in [1, 2, 8, 64, 256] {
        for turnaround in [50.0, 150.0, 400.0] {
            let database = Database {
                jitter: 0.1,
                ..Database::local()
            };
            let load = closed(clients, turnaround);
            let (reached, without) = (
                rate(&database, load, found()),
                rate(&database, load, plain()),
            );
            println!(
                "{clients} clients, {turnaround} us: {reached:.0} rows/s, without {without:.0}"
            );
            assert!(
                reached >= 0.93 * without,
                "{clients} clients, {turnaround} us"
            );
        }
    }
}

/// Clients who think are not waited for.
#[test]
fn nobody_waits_for_those_who_think() {
    for (commit, think) in [(200.0, 2000.0), (1200.0, 10_000.0), (5000.0, 30_000.0)] {
        for clients in [1, 8, 64] {
            let (run, _) = Run::of(
                &commits_in(commit),
                closed(clients, think),
                found(),
                10.0,
                1,
            );
            let share = gathered(&run);
            assert!(share < 0.01, "{commit} us, {clients} clients: {share}");
        }
    }
}

/// Where writes come at a fixed rate, each waits as long as it would without: hardly anything is
/// tried.
#[test]
fn an_open_load_waits_no_longer() {
    for commit in [200.0, 1200.0, 5000.0, 20_000.0] {
        for rate in [50.0, 500.0, 2000.0, 8000.0] {
            let database = Database {
                jitter: 0.1,
                ..commits_in(commit)
            };
            let load = Load::Open { rate };
            let (run, _) = Run::of(&database, load, found(), 10.0, 1);
            let (without, _) = Run::of(&database, load, deaf(), 10.0, 1);
            assert!(gathered(&run) < 0.01, "{commit} us, {rate} rows/s");
            for part in [0.5, 0.99] {
                let (waits, least) = (run.wait(part), without.wait(part));
                assert!(
                    waits <= 1.03 * least,
                    "{commit} us, {rate} rows/s, quantile {part}: {waits} us against {least} us"
                );
            }
        }
    }
}

/// A lane that gathers and is left by all clients but some does not keep those waiting.
#[test]
fn fewer_clients_are_not_kept_waiting() {
    // The lane has gathered 64 clients, and then only so many are left, which come back at once.
    for left in [1, 2, 8] {
        let mut gather = Gather::default();
        let ms = std::time::Duration::from_millis(1);
        let mut at = ms;
        for _ in 0..50 {
            gather.landed(at, 2 * ms, 64, 1);
            gather.arrived(at + ms / 10, 64);
            at += 2 * ms;
        }
        gather.landed(at, 2 * ms, 64, 1);
        gather.arrived(at + ms / 10, left);
        assert!(gather.holds(at + ms / 10).is_some());
        // That once it is half of a flight; from then on they are all who are expected.
        for _ in 0..3 {
            at += 3 * ms;
            gather.landed(at, 2 * ms, left, 1);
            gather.arrived(at + ms / 10, left);
            assert_eq!(gather.holds(at + ms / 10), None, "{left} clients");
        }
    }
}
