//! The cases: for each database and each kind of load, what the pace reaches against the best fixed
//! setting of the grid.

use windrow_lanes::pace::{Bounds, Pace};

use crate::database::Database;
use crate::run::{Load, Pilot, Run, best_of_grid};

const BOUNDS: Bounds = Bounds {
    flights: 16,
    rows: 8192,
};

/// Clients turn around in 50 us: what a fast local client needs.
const fn closed(clients: usize) -> Load {
    Load::Closed {
        clients,
        turnaround: 50.0,
    }
}

const LOADS: [Load; 4] = [Load::Backlog, closed(1000), closed(64), closed(8)];

struct Case {
    database: Database,
    /// What the database is like while it is measured, where that is not what it is like at first.
    steady: Option<Database>,
    bounds: Bounds,
    /// The seconds in which the pace is measured; it starts at 0, cold: one flight, small batches.
    measured: (f64, f64),
    /// The seconds in which the fixed settings are.
    grid: (f64, f64),
    /// How many times it is run, each with other noise.
    runs: u32,
}

impl Case {
    /// Settled within a second.
    fn of(database: Database) -> Self {
        Self {
            database,
            steady: None,
            bounds: BOUNDS,
            measured: (1.0, 3.0),
            grid: (0.2, 0.7),
            runs: 1,
        }
    }

    #[expect(clippy::print_stdout, reason = "figures for those who tune the pace")]
    /// The shares of the best fixed setting's rows per second that it reaches, for each load and
    /// run.
    fn shares(&self, load: Load) -> Vec<f64> {
        let steady = self.steady.as_ref().unwrap_or(&self.database);
        let (best, rate) = best_of_grid(steady, load, self.bounds, self.grid, &[false]);
        let (from, to) = self.measured;
        let share = |seed| {
            let pilot = Pilot::Found(Box::new(Pace::new(self.bounds)));
            let (run, pilot) = Run::of(&self.database, load, pilot, to, u64::from(seed));
            let share = run.rate(from, to) / rate;
            println!(
                "{load:?}: {share:.3} of {rate:.0} rows/s of {best:?}, ends with {:?}",
                pilot.setting()
            );
            share
        };
        (0..self.runs).map(share).collect()
    }

    #[track_caller]
    fn settles_within_ten_percent(&self) {
        for load in LOADS {
            let shares = self.shares(load);
            let mean = shares.iter().sum::<f64>() / shares.len() as f64;
            assert!(mean >= 0.9, "{load:?}: {mean:.3}");
            assert!(
                shares.iter().all(|share| *share >= 0.8),
                "{load:?}: {shares:.3?}"
            );
        }
    }
}

/// Commits take 2 ms and run in parallel; flights are a little in each other's way.
fn parallel_commits() -> Database {
    Database {
        serial_batch: 50.0,
        parallel_batch: 2000.0,
        contention: 0.05,
        ..Database::local()
    }
}

/// Many servers: nearly all of the work of a flight is done beside that of others.
fn distributed() -> Database {
    Database {
        serial_batch: 0.0,
        serial_row: 1.0,
        parallel_batch: 3000.0,
        parallel_row: 20.0,
        contention: 0.02,
        ..Database::local()
    }
}

#[test]
fn constant_cost() {
    Case::of(Database::local()).settles_within_ten_percent();
}

#[test]
fn one_writer() {
    let database = Database {
        round_trip: 0.0,
        serial_batch: 300.0,
        serial_row: 1.6,
        ..Database::local()
    };
    let bounds = Bounds {
        flights: 1,
        ..BOUNDS
    };
    Case {
        bounds,
        ..Case::of(database)
    }
    .settles_within_ten_percent();
}

#[test]
fn knee() {
    let knee = Some(100.0);
    Case::of(Database {
        knee,
        ..Database::local()
    })
    .settles_within_ten_percent();
}

#[test]
fn knee_of_a_distributed_database() {
    let knee = Some(200.0);
    Case::of(Database {
        knee,
        ..distributed()
    })
    .settles_within_ten_percent();
}

#[test]
fn jitter() {
    let database = Database {
        jitter: 0.3,
        ..Database::local()
    };
    let runs = 6;
    let grid = (0.5, 1.5);
    Case {
        runs,
        grid,
        ..Case::of(database)
    }
    .settles_within_ten_percent();
}

#[test]
fn a_knee_in_jitter() {
    let database = Database {
        jitter: 0.3,
        knee: Some(100.0),
        ..Database::local()
    };
    let runs = 6;
    let grid = (0.5, 1.5);
    Case {
        runs,
        grid,
        ..Case::of(database)
    }
    .settles_within_ten_percent();
}

#[test]
fn parallel_commits_in_jitter() {
    let database = Database {
        jitter: 0.3,
        ..parallel_commits()
    };
    let (runs, grid, measured) = (6, (0.5, 1.5), (4.0, 8.0));
    Case {
        runs,
        grid,
        measured,
        ..Case::of(database)
    }
    .settles_within_ten_percent();
}

#[test]
fn distributed_in_jitter() {
    let database = Database {
        jitter: 0.3,
        ..distributed()
    };
    let (runs, grid, measured) = (6, (0.5, 1.5), (4.0, 8.0));
    Case {
        runs,
        grid,
        measured,
        ..Case::of(database)
    }
    .settles_within_ten_percent();
}

/// Five times as slow from the second second on, and as before from the fourth.
fn step() -> Database {
    Database {
        slow: Some((2.0, 4.0, 5.0)),
        ..Database::local()
    }
}

#[test]
fn a_second_after_the_database_has_become_slow() {
    let slow = Some((0.0, 100.0, 5.0));
    let steady = Some(Database { slow, ..step() });
    let measured = (3.0, 4.0);
    Case {
        steady,
        measured,
        ..Case::of(step())
    }
    .settles_within_ten_percent();
}

#[test]
fn a_second_after_the_database_has_become_fast_again() {
    let steady = Some(Database::local());
    let measured = (5.0, 6.0);
    Case {
        steady,
        measured,
        ..Case::of(step())
    }
    .settles_within_ten_percent();
}

#[test]
fn a_second_after_a_stall_of_a_second() {
    let database = Database {
        stall: Some((2.0, 3.0)),
        ..Database::local()
    };
    let steady = Some(Database::local());
    let measured = (4.0, 6.0);
    Case {
        steady,
        measured,
        ..Case::of(database)
    }
    .settles_within_ten_percent();
}

#[test]
fn lock_contention() {
    let database = Database {
        serial_batch: 0.0,
        serial_row: 0.0,
        parallel_batch: 200.0,
        parallel_row: 4.0,
        contention: 1.5,
        ..Database::local()
    };
    Case::of(database).settles_within_ten_percent();
}

#[test]
fn commits_in_parallel() {
    Case::of(parallel_commits()).settles_within_ten_percent();
}

/// Large batches take 100 ms here.
#[test]
fn distributed_over_many_servers() {
    let grid = (0.5, 2.0);
    Case {
        grid,
        ..Case::of(distributed())
    }
    .settles_within_ten_percent();
}

/// 40 ms there and back: nothing can be learned in less.
#[test]
fn far_away() {
    let database = Database {
        round_trip: 40_000.0,
        ..Database::local()
    };
    let (grid, measured) = ((1.0, 3.0), (2.0, 5.0));
    Case {
        grid,
        measured,
        ..Case::of(database)
    }
    .settles_within_ten_percent();
}
