//! What a simulated database costs. Times in microseconds.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// A database, and the way to it.
#[derive(Clone, Debug)]
pub(crate) struct Database {
    /// There and back.
    pub(crate) round_trip: f64,
    /// Per batch and per row, on a resource that flights use one after another (one core, one
    /// log).
    pub(crate) serial_batch: f64,
    pub(crate) serial_row: f64,
    /// The same on resources that each flight has to itself.
    pub(crate) parallel_batch: f64,
    pub(crate) parallel_row: f64,
    /// A commit waits for the log to be flushed, which takes so long. A flush is for all who came
    /// before it began; who comes while one is under way waits for the next.
    pub(crate) flush: f64,
    /// Past so many rows in a batch, every row costs more: twice as much at twice as many rows.
    pub(crate) knee: Option<f64>,
    /// How much every cost rises with each further flight under way.
    pub(crate) contention: f64,
    /// The spread of the noise on every cost (sigma of a log-normal factor of mean 1), with one
    /// flight in a hundred five times as slow.
    pub(crate) jitter: f64,
    /// Between these seconds all costs are so many times as high.
    pub(crate) slow: Option<(f64, f64, f64)>,
    /// Between these seconds nothing moves.
    pub(crate) stall: Option<(f64, f64)>,
    /// Others who use the same machine from time to time.
    pub(crate) neighbours: Option<Neighbours>,
}

/// Others on the same machine, who come and go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Neighbours {
    /// How long they are there, and how long they are away, on average, in microseconds.
    pub(crate) there: f64,
    pub(crate) away: f64,
    /// How many times as high all costs are at most while they are there.
    pub(crate) times: f64,
}

/// A database as it runs.
pub(crate) struct Server {
    database: Database,
    free_at: f64,
    /// When the last flush that is known of begins and ends.
    flush: (f64, f64),
    dice: StdRng,
    /// What all flights have cost so far, without the delays that neighbours caused.
    spent: f64,
    /// How many times as long everything takes, and up to when; with dice of its own, so that all
    /// who are compared have the same neighbours.
    pressed: (f64, f64),
    visits: StdRng,
}

impl Database {
    /// One local server with a fast disk: 250 us a batch, 4 us a row.
    pub(crate) fn local() -> Self {
        Self {
            round_trip: 50.0,
            serial_batch: 200.0,
            serial_row: 4.0,
            parallel_batch: 0.0,
            parallel_row: 0.0,
            flush: 0.0,
            knee: None,
            contention: 0.0,
            jitter: 0.0,
            slow: None,
            stall: None,
            neighbours: None,
        }
    }
}

impl Server {
    pub(crate) fn new(database: Database, seed: u64) -> Self {
        Self {
            database,
            free_at: 0.0,
            flush: (0.0, 0.0),
            dice: StdRng::seed_from_u64(seed),
            spent: 0.0,
            pressed: (1.0, 0.0),
            visits: StdRng::seed_from_u64(1),
        }
    }

    /// What all flights have cost so far, in microseconds.
    pub(crate) fn spent(&self) -> f64 {
        self.spent
    }

    /// A flight leaves, as one of so many under way: when it comes to what flights do one after
    /// another, and how long that takes.
    pub(crate) fn fly(&mut self, now: f64, rows: usize, flights: usize) -> (f64, f64) {
        let factor = self.factor(now, flights);
        let db = &self.database;
        let n = rows as f64;
        let dear = db.knee.map_or(1.0, |knee| 1.0 + (n / knee - 1.0).max(0.0));
        let parallel = (db.parallel_batch + db.parallel_row * n * dear) * factor;
        let serial = (db.serial_batch + db.serial_row * n * dear) * factor;
        self.spent += parallel + serial;
        let pressed = self.pressed(now);
        let db = &self.database;
        let (parallel, serial) = (parallel * pressed, serial * pressed);
        (now + db.round_trip / 2.0 + parallel, serial)
    }

    /// When a flight lands that has come to what flights do one after another.
    pub(crate) fn finish(&mut self, now: f64, serial: f64) -> f64 {
        let mut end = now.max(self.free_at) + serial;
        if let Some((from, to)) = self.database.stall
            && now < to * 1e6
            && end > from * 1e6
        {
            end += (to - from) * 1e6;
        }
        self.free_at = end;
        self.flushed(end) + self.database.round_trip / 2.0
    }

    /// When a commit is on disk that asks for it now.
    fn flushed(&mut self, now: f64) -> f64 {
        let (begins, ends) = self.flush;
        if now > begins {
            let begins = now.max(ends);
            self.flush = (begins, begins + self.database.flush * self.pressed(begins));
        }
        self.flush.1
    }

    /// How many times as long everything takes because of neighbours.
    fn pressed(&mut self, now: f64) -> f64 {
        let Some(neighbours) = self.database.neighbours else {
            return 1.0;
        };
        while self.pressed.1 <= now {
            let is_away = self.pressed.0 > 1.0;
            let mean = if is_away {
                neighbours.away
            } else {
                neighbours.there
            };
            let (u, v): (f64, f64) = (self.visits.random(), self.visits.random());
            let times = if is_away {
                1.0
            } else {
                1.1 + (neighbours.times - 1.1) * v
            };
            self.pressed = (times, self.pressed.1.max(now) - mean * (1.0 - u).ln());
        }
        self.pressed.0
    }

    fn factor(&mut self, now: f64, flights: usize) -> f64 {
        let db = &self.database;
        let mut factor = 1.0 + db.contention * (flights - 1) as f64;
        if let Some((from, to, times)) = db.slow
            && (from * 1e6..to * 1e6).contains(&now)
        {
            factor *= times;
        }
        if db.jitter > 0.0 {
            let (u, v): (f64, f64) = (self.dice.random(), self.dice.random());
            let normal = (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos();
            factor *= (db.jitter * normal - db.jitter * db.jitter / 2.0).exp();
            if self.dice.random_bool(0.01) {
                factor *= 5.0;
            }
        }
        factor
    }
}
