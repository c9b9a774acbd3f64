//! A lane, its clients and a database in simulated time. Times in microseconds.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use windrow_lanes::pace::{Bounds, Landing, Pace, Setting};

use crate::database::{Database, Server};

/// Who writes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Load {
    /// So many clients; each sends its next row when it has its answer, so many microseconds later.
    Closed { clients: usize, turnaround: f64 },
    /// There is always more than any batch takes.
    Backlog,
    /// So many rows a second, in even steps.
    Open { rate: f64 },
}

/// Who says how the lane flies.
pub(crate) enum Pilot {
    Fixed(Setting),
    Found(Box<Pace>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Flight {
    rows: usize,
    cut: bool,
    waited: bool,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A flight comes to what flights do one after another, which takes it so many nanoseconds.
    Serial {
        flight: Flight,
        takes: u64,
    },
    Landing(Flight),
    Arrival {
        rows: usize,
    },
}

/// A run: what landed when, under which setting.
pub(crate) struct Run {
    pub(crate) landings: Vec<(f64, usize, Setting)>,
}

struct Lane<'a> {
    pilot: &'a mut Pilot,
    server: Server,
    load: Load,
    now: f64,
    queued: usize,
    /// True while rows are queued because all flights are under way.
    crowded: bool,
    flying: usize,
    /// Ordered by time in nanoseconds, then by the order of making.
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    made: u64,
}

/// Rows that an endless backlog is shown as.
const ENDLESS: usize = 1 << 40;

impl Pilot {
    pub(crate) fn setting(&self) -> Setting {
        match self {
            Self::Fixed(setting) => *setting,
            Self::Found(pace) => pace.setting(),
        }
    }
}

impl Run {
    /// Lets a lane run for so many seconds.
    pub(crate) fn of(
        database: &Database,
        load: Load,
        mut pilot: Pilot,
        seconds: f64,
        seed: u64,
    ) -> (Self, Pilot) {
        let mut lane = Lane {
            pilot: &mut pilot,
            server: Server::new(database.clone(), seed),
            load,
            now: 0.0,
            queued: 0,
            crowded: false,
            flying: 0,
            events: BinaryHeap::new(),
            made: 0,
        };
        let landings = lane.run(seconds * 1e6);
        (Self { landings }, pilot)
    }

    /// Rows per second from the first landing to the last one between two moments.
    pub(crate) fn rate(&self, from: f64, to: f64) -> f64 {
        let mut landings = self.between(from, to);
        let Some((first, _, _)) = landings.next() else {
            return 0.0;
        };
        let (last, rows) = landings.fold((*first, 0), |(_, sum), (at, rows, _)| (*at, sum + rows));
        rows as f64 / (last - first).max(1.0) * 1e6
    }

    pub(crate) fn between(
        &self,
        from: f64,
        to: f64,
    ) -> impl Iterator<Item = &(f64, usize, Setting)> {
        let within = move |at: f64| at >= from * 1e6 && at < to * 1e6;
        self.landings.iter().filter(move |(at, _, _)| within(*at))
    }
}

impl Lane<'_> {
    fn run(&mut self, until: f64) -> Vec<(f64, usize, Setting)> {
        let mut landings = Vec::new();
        self.begin();
        self.depart();
        while let Some(Reverse((at, _, event))) = self.events.pop() {
            self.now = at as f64 / 1e3;
            if self.now > until {
                break;
            }
            match event {
                Event::Serial { flight, takes } => {
                    let at = self.server.finish(self.now, takes as f64 / 1e3);
                    self.push(at, Event::Landing(flight));
                }
                Event::Landing(flight) => {
                    landings.push((self.now, flight.rows, self.setting()));
                    self.land(flight);
                }
                Event::Arrival { rows } => {
                    self.queued += rows;
                    if let Load::Open { rate } = self.load {
                        self.push(self.now + 1e6 / rate, Event::Arrival { rows: 1 });
                    }
                }
            }
            self.depart();
        }
        landings
    }

    fn begin(&mut self) {
        match self.load {
            Load::Closed { clients, .. } => self.queued = clients,
            Load::Backlog => self.queued = ENDLESS,
            Load::Open { .. } => self.push(0.0, Event::Arrival { rows: 1 }),
        }
    }

    fn land(&mut self, flight: Flight) {
        let Flight { rows, cut, waited } = flight;
        self.flying -= 1;
        let landing = Landing {
            at: Duration::from_secs_f64(self.now / 1e6),
            rows,
            cut,
            waited,
            connected: self.setting().flights,
        };
        if let Pilot::Found(pace) = &mut *self.pilot {
            pace.landed(landing);
        }
        match self.load {
            Load::Backlog => self.queued += rows,
            // Answers go out one after another, and so do the next rows come in.
            Load::Closed { turnaround, .. } => {
                let (mut left, mut at) = (rows, self.now + turnaround);
                while left > 0 {
                    let some = left.min(8);
                    at += some as f64;
                    self.push(at, Event::Arrival { rows: some });
                    left -= some;
                }
            }
            Load::Open { .. } => {}
        }
    }

    fn depart(&mut self) {
        let setting = self.setting();
        while self.queued > 0 && self.flying < setting.flights {
            let rows = self.queued.min(setting.rows);
            self.queued -= rows;
            self.flying += 1;
            let (at, serial) = self.server.fly(self.now, rows, self.flying);
            let flight = Flight {
                rows,
                cut: self.queued > 0,
                waited: self.crowded,
            };
            self.push(
                at,
                Event::Serial {
                    flight,
                    takes: nanos(serial),
                },
            );
        }
        self.crowded = self.queued > 0;
    }

    fn setting(&self) -> Setting {
        self.pilot.setting()
    }

    fn push(&mut self, at: f64, event: Event) {
        self.made += 1;
        self.events.push(Reverse((nanos(at), self.made, event)));
    }
}

/// The best fixed setting of the full grid, and its rows per second. The best few between two moments are run again for
/// longer and with other noise: the best of many noisy figures would be too good to be true.
pub(crate) fn best_of_grid(
    database: &Database,
    load: Load,
    bounds: Bounds,
    (from, to): (f64, f64),
) -> (Setting, f64) {
    let rate = |setting, until: f64, seed| {
        let (run, _) = Run::of(database, load, Pilot::Fixed(setting), until, seed);
        run.rate(from, until)
    };
    let rows = (3..)
        .map(|n| 1 << n)
        .take_while(|rows| *rows <= bounds.rows);
    let flights = [1, 2, 4, 8, 16]
        .into_iter()
        .filter(|w| *w <= bounds.flights);
    let grid = flights.flat_map(|flights| rows.clone().map(move |rows| Setting { flights, rows }));
    let mut rated: Vec<_> = grid
        .map(|setting| (rate(setting, to, 42), setting))
        .collect();
    rated.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let finals = rated.into_iter().take(4);
    let longer = finals.map(|(_, setting)| (rate(setting, from + 4.0 * (to - from), 7), setting));
    let (rate, best) = longer.max_by(|(a, _), (b, _)| a.total_cmp(b)).unwrap();
    (best, rate)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a few simulated seconds"
)]
fn nanos(micros: f64) -> u64 {
    (micros * 1e3) as u64
}
