//! A lane, its clients and a database in simulated time. Times in microseconds.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use windrow_lanes::pace::{Bounds, Gather, Landing, Pace, Setting};

use crate::database::{Database, Server};

/// Who writes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Load {
    /// So many clients; each sends its next row when it has its answer, so many microseconds later.
    Closed { clients: usize, turnaround: f64 },
    /// The same, and from a second on only so many of them.
    Leaving {
        clients: usize,
        turnaround: f64,
        left: usize,
        from: f64,
    },
    /// The same, but nobody writes for `pause` seconds after each `work` seconds.
    Coming {
        clients: usize,
        turnaround: f64,
        work: f64,
        pause: f64,
    },
    /// There is always more than any batch takes.
    Backlog,
    /// So many rows a second, in even steps.
    Open { rate: f64 },
}

/// Who says how the lane flies.
pub(crate) enum Pilot {
    Fixed(Setting),
    Found(Box<Pace>),
    /// The same, but never told that clients come back at once.
    Deaf(Box<Pace>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Flight {
    rows: usize,
    cut: bool,
    waited: bool,
    /// How many were under way when it left, with it.
    flying: usize,
    /// When it left, in nanoseconds.
    departed: u64,
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
    /// Time to look whether those who are held back can leave.
    Alarm,
}

/// A run: what landed when, under which setting.
pub(crate) struct Run {
    pub(crate) landings: Vec<(f64, usize, Setting)>,
    /// When rows landed that had come by an open load, and how long they had waited, in
    /// microseconds.
    waits: Vec<(f64, f64)>,
    /// What all flights had cost the database when each landed, in microseconds.
    spent: Vec<f64>,
}

struct Lane<'a> {
    pilot: &'a mut Pilot,
    server: Server,
    load: Load,
    now: f64,
    queued: usize,
    /// Clients that are gone.
    gone: usize,
    /// When the rows that are queued came, where the load is an open one.
    since: VecDeque<f64>,
    waits: Vec<(f64, f64)>,
    spent: Vec<f64>,
    gather: Gather,
    /// When timers look, in microseconds: as coarse as those of a lane.
    alarm: Option<u64>,
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
            Self::Found(pace) | Self::Deaf(pace) => pace.setting(),
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
            gone: 0,
            since: VecDeque::new(),
            waits: Vec::new(),
            spent: Vec::new(),
            gather: Gather::default(),
            alarm: None,
            crowded: false,
            flying: 0,
            events: BinaryHeap::new(),
            made: 0,
        };
        let landings = lane.run(seconds * 1e6);
        let waits = std::mem::take(&mut lane.waits);
        let spent = std::mem::take(&mut lane.spent);
        let run = Self {
            landings,
            waits,
            spent,
        };
        (run, pilot)
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

    /// What a row cost the database between two moments, in microseconds.
    pub(crate) fn cost(&self, from: f64, to: f64) -> f64 {
        let within = |at: f64| at >= from * 1e6 && at < to * 1e6;
        let landings = self.landings.iter().zip(&self.spent);
        let (mut rows, mut costs) = (0, Vec::new());
        for ((_, landed, _), spent) in landings.filter(|((at, _, _), _)| within(*at)) {
            rows += landed;
            costs.push(*spent);
        }
        match costs.as_slice() {
            [first, .., last] => (last - first) / rows as f64,
            _ => 0.0,
        }
    }

    /// How long a row waits, from its arrival to its landing, at this quantile: in microseconds, of
    /// an open load.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a part of a number of rows"
    )]
    pub(crate) fn wait(&self, quantile: f64) -> f64 {
        let mut waits: Vec<f64> = self.waits.iter().map(|(_, wait)| *wait).collect();
        waits.sort_by(f64::total_cmp);
        waits
            .get((waits.len() as f64 * quantile) as usize)
            .copied()
            .unwrap()
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
                    self.spent.push(self.server.spent());
                    self.land(flight);
                }
                Event::Arrival { rows } => {
                    self.queued += rows;
                    self.gather
                        .arrived(Duration::from_secs_f64(self.now / 1e6), rows);
                    if let Load::Open { rate } = self.load {
                        self.since.push_back(self.now);
                        self.push(self.now + 1e6 / rate, Event::Arrival { rows: 1 });
                    }
                }
                Event::Alarm => self.alarm = None,
            }
            self.depart();
        }
        landings
    }

    fn begin(&mut self) {
        match self.load {
            Load::Closed { clients, .. }
            | Load::Leaving { clients, .. }
            | Load::Coming { clients, .. } => self.queued = clients,
            Load::Backlog => self.queued = ENDLESS,
            Load::Open { .. } => self.push(0.0, Event::Arrival { rows: 1 }),
        }
    }

    fn land(&mut self, flight: Flight) {
        let Flight {
            rows, cut, waited, ..
        } = flight;
        self.flying -= 1;
        let at = Duration::from_secs_f64(self.now / 1e6);
        let took = at.saturating_sub(Duration::from_nanos(flight.departed));
        let back = self.gather.landed(at, took, rows, flight.flying);
        let landing = Landing {
            at,
            rows,
            cut,
            waited,
            took,
            flying: flight.flying,
            back: back && matches!(self.pilot, Pilot::Found(_)),
            connected: self.setting().flights,
            // Each row is a client's own.
            sources: self.queued + rows,
        };
        if let Pilot::Found(pace) | Pilot::Deaf(pace) = &mut *self.pilot {
            pace.landed(landing);
        }
        match self.load {
            Load::Backlog => self.queued += rows,
            Load::Closed {
                clients,
                turnaround,
            } => self.come_back(rows, clients, turnaround),
            Load::Leaving {
                clients,
                turnaround,
                left,
                from,
            } => {
                let leave = match self.now < from * 1e6 {
                    true => 0,
                    false => rows.min(clients - left - self.gone),
                };
                self.gone += leave;
                self.come_back(rows - leave, clients - self.gone, turnaround);
            }
            Load::Coming {
                clients,
                turnaround,
                work,
                pause,
            } => {
                let period = (work + pause) * 1e6;
                let left = period - self.now % period;
                let away = if left > pause * 1e6 { 0.0 } else { left };
                self.come_back(rows, clients, turnaround + away);
            }
            Load::Open { .. } => {
                let landed = self
                    .since
                    .drain(..rows)
                    .map(|since| (self.now, self.now - since));
                self.waits.extend(landed);
            }
        }
    }

    /// Answers go out one after another, and so do the next rows come in.
    fn come_back(&mut self, mut rows: usize, clients: usize, turnaround: f64) {
        let mut at = self.now + turnaround;
        while rows > 0 {
            let some = rows.min((clients / 8).clamp(1, 8));
            at += some as f64;
            self.push(at, Event::Arrival { rows: some });
            rows -= some;
        }
    }

    /// True while those who are queued wait for others who come back.
    fn is_held_back(&mut self, setting: Setting) -> bool {
        let now = Duration::from_secs_f64(self.now / 1e6);
        let holds = setting.gather && self.queued < setting.rows;
        let Some(until) = self.gather.holds(now).filter(|_| holds) else {
            return false;
        };
        // Timers count in milliseconds, and are never early.
        let rings = (until.as_secs_f64() * 1e3).ceil() * 1e3;
        if self.alarm.is_none_or(|alarm| nanos(rings) < alarm) {
            self.alarm = Some(nanos(rings));
            self.push(rings, Event::Alarm);
        }
        true
    }

    fn depart(&mut self) {
        let setting = self.setting();
        while self.queued > 0 && self.flying < setting.flights {
            if self.is_held_back(setting) {
                break;
            }
            let rows = self.queued.min(setting.rows);
            self.queued -= rows;
            self.flying += 1;
            let (at, serial) = self.server.fly(self.now, rows, self.flying);
            let flight = Flight {
                rows,
                cut: self.queued > 0,
                waited: self.crowded || (setting.gather && self.gather.expects()),
                flying: self.flying,
                departed: nanos(self.now),
            };
            self.push(
                at,
                Event::Serial {
                    flight,
                    takes: nanos(serial),
                },
            );
        }
        self.crowded = self.queued > 0 && self.flying >= setting.flights;
    }

    fn setting(&self) -> Setting {
        self.pilot.setting()
    }

    fn push(&mut self, at: f64, event: Event) {
        self.made += 1;
        self.events.push(Reverse((nanos(at), self.made, event)));
    }
}

/// The best fixed setting of the full grid, with or without waiting for those who come back, and
/// its rows per second. The best few between two moments are run again for longer and with other
/// noise: the best of many noisy figures would be too good to be true.
pub(crate) fn best_of_grid(
    database: &Database,
    load: Load,
    bounds: Bounds,
    (from, to): (f64, f64),
    gathers: &[bool],
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
    let settings = |flights| {
        let rows = rows.clone();
        rows.flat_map(move |rows| {
            gathers.iter().map(move |gather| Setting {
                flights,
                rows,
                gather: *gather,
            })
        })
    };
    let grid = flights
        .flat_map(settings)
        .filter(|setting| !setting.gather || setting.flights == 1);
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
