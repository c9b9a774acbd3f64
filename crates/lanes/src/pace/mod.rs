//! Finds the best number of flights (W) and of rows in a batch.
//!
//! The controller seeks the knee: the point past which more rows in a batch (or more flights) no
//! longer raise rows per second but only latency and lock time. It judges rows per second over
//! several landings, so a large batch may take longer than a small one.
//!
//! Pure: all input, also the time, comes as arguments, and [`Pace::setting`] returns the decision.
//! Without clock and randomness, the simulations under `tests/simulation` run exactly what a lane
//! runs.
//!
//! How it works:
//!
//! - It starts with one flight and small batches, and climbs in steps. It learns only while the
//!   database is the limit: while most rows have waited for a flight to end. Otherwise rows per
//!   second only show what clients ask for.
//! - It tries one change at a time, and compares **in turns**: some landings with the base setting,
//!   some with the candidate, some with the base again, and so on. So a database that slows down or
//!   stalls meanwhile does not favour one side. It goes on until the difference stands out from the
//!   noise.
//! - **Hysteresis**: to go up, rows per second must rise by some percent, over several turns; to go
//!   down, they must not fall. Between the two nothing changes, so noise does not change the
//!   setting.
//! - **Fewer flights** cost the database less for the same rows: they need not be proven as good,
//!   only not be seen to be worse. They are also tried if nothing waits because each client has a
//!   flight of its own, so that few clients do not keep the flights of many.
//! - **Pauses of all clients** show nothing: the current measurement is discarded.
//! - **Rarely**: a change that did not pay is tried again after a pause that doubles each time. All
//!   pauses end when the time per row changes by half or more, and by more than the noise, because
//!   then the database or the load has changed.

mod direction;
mod gather;
mod moves;
mod setting;
mod trial;
mod window;

use std::time::Duration;

pub use self::gather::Gather;
use self::moves::Moves;
pub use self::setting::{Bounds, Setting};
use self::trial::{Trial, TrialResult};
pub use self::window::Landing;
use self::window::{Hopeless, Sample, Window};

/// The controller of one lane.
#[derive(Clone, Debug)]
pub struct Pace {
    bounds: Bounds,
    /// The setting that has proved best up to now.
    base: Setting,
    /// The landings that are being measured.
    window: Window,
    /// When the last flight landed.
    last_landed: Duration,
    trial: Option<Trial>,
    moves: Moves,
    /// Rows per second when the pauses between trials were last ended, and the number of samples in
    /// a row that have differed from that.
    reference: Option<f64>,
    strange: u32,
    /// The average difference between two samples of the same setting, as a logarithm.
    noise: f64,
    /// The last sample of the base setting.
    last: Option<f64>,
}

/// The limit of a batch's rows at the start. Such batches are fast on every database, so the
/// controller learns much in a short time.
const START_ROWS: usize = 64;

/// The noise that is assumed before any is measured, the weight of a new measurement, and the most.
const START_NOISE: f64 = 0.1;
const NOISE_WEIGHT: f64 = 0.2;
const MOST_NOISE: f64 = 0.5;

/// If nothing was under way for this many times the length of a flight, clients had nothing to
/// write, and the measurement starts again.
const PAUSE: u32 = 4;

/// The time per row has changed if it differs by this factor, and by this many times the noise,
/// twice in a row.
const ANOTHER_WORLD: f64 = 1.5;
const FAR_APART: f64 = 4.0;

impl Pace {
    /// Starts with one flight.
    pub fn new(bounds: Bounds) -> Self {
        let base = Setting {
            flights: 1,
            rows: START_ROWS.min(bounds.rows),
            gather: false,
        };
        Self {
            bounds,
            base,
            window: Window::idle(base),
            last_landed: Duration::ZERO,
            trial: None,
            moves: Moves::new(),
            reference: None,
            strange: 0,
            noise: START_NOISE,
            last: None,
        }
    }

    /// Returns the current setting. It changes only within [`Pace::landed`] and
    /// [`Pace::disturbed`].
    pub fn setting(&self) -> Setting {
        self.trial.as_ref().map_or(self.base, Trial::setting)
    }

    /// Returns the limits of the setting.
    pub fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// Counts a flight that has landed normally.
    pub fn landed(&mut self, landing: Landing) {
        let before = std::mem::replace(&mut self.last_landed, landing.at);
        let left = landing.at.saturating_sub(landing.took);
        if left.saturating_sub(before) > landing.took * PAUSE {
            self.disturbed();
        }
        let Some(sample) = self.window.add(landing) else {
            return;
        };
        match self.trial.take() {
            None => {
                self.listen(&sample);
                self.cruise(landing.at, sample);
            }
            Some(trial) => self.judge(landing.at, trial, sample),
        }
    }

    /// Notes that a flight has ended in a way that says nothing about speed, and discards the
    /// current measurement.
    pub fn disturbed(&mut self) {
        self.trial = None;
        self.window = Window::idle(self.base);
    }

    /// Acts on a sample of the base setting: starts a trial if there is something to try.
    fn cruise(&mut self, now: Duration, sample: Sample) {
        self.measure(0, now);
        if sample.saturated {
            self.look_around(now, &sample);
        }
        if let Some(step) = self.moves.choose(now, self.base, self.bounds, &sample) {
            let trial = Trial::new(step, self.base, now, &sample, self.noise);
            self.start(trial, now);
        }
    }

    fn judge(&mut self, now: Duration, mut trial: Trial, sample: Sample) {
        if trial.setting() == self.base {
            self.listen(&sample);
        }
        match trial.add(now, &sample) {
            TrialResult::GoOn => self.start(trial, now),
            TrialResult::Stop => self.measure(settle(self.base, self.base), now),
            TrialResult::Worse => {
                let took = now.saturating_sub(trial.since);
                self.moves.failed(trial.direction, now, took);
                self.measure(0, now);
            }
            TrialResult::Better => {
                self.change(&trial);
                self.moves.paid(trial.direction, now);
                self.measure(settle(self.base, self.base), now);
            }
            TrialResult::Leap => {
                self.change(&trial);
                self.moves.leapt(trial.direction, now);
                self.cruise(now, sample);
            }
        }
    }

    fn change(&mut self, trial: &Trial) {
        self.base = trial.candidate;
        self.reference = None;
        self.last = None;
    }

    /// Starts the next turn of a trial.
    fn start(&mut self, trial: Trial, now: Duration) {
        let settle = settle(trial.base, trial.candidate);
        self.window = Window::after(settle, trial.setting(), now, trial.hopeless());
        self.trial = Some(trial);
    }

    fn measure(&mut self, settle: usize, now: Duration) {
        self.window = Window::after(settle, self.base, now, Hopeless::NEVER);
    }

    /// Learns the noise from two samples of the same setting. Samples taken while the database was
    /// not the limit say nothing about it.
    fn listen(&mut self, sample: &Sample) {
        let rate = sample.saturated.then(|| sample.rate.max(1.0).ln());
        let last = std::mem::replace(&mut self.last, rate);
        if let (Some(last), Some(rate)) = (last, rate) {
            let apart = (rate - last).abs().min(MOST_NOISE);
            self.noise += (apart - self.noise) * NOISE_WEIGHT;
        }
    }

    /// Ends all pauses once the time per row has changed.
    fn look_around(&mut self, now: Duration, sample: &Sample) {
        let reference = *self.reference.get_or_insert(sample.rate);
        let apart = (sample.rate / reference).ln().abs();
        self.strange = if apart > ANOTHER_WORLD.ln().max(FAR_APART * self.noise) {
            self.strange + 1
        } else {
            0
        };
        if self.strange >= 2 {
            self.strange = 0;
            self.reference = Some(sample.rate);
            self.moves.end_pauses(now);
        }
    }
}

/// Returns the number of landings to skip between two settings: the flights that left under the
/// first one, and one round of those that meet the queue left by it. With one flight it is 0: the
/// next landing is the first of the new setting.
fn settle(a: Setting, b: Setting) -> usize {
    match a.flights + b.flights {
        // Two groups of clients that take turns become one, or one becomes two.
        2 if a.gather != b.gather => 2,
        2 => 0,
        both => both + 1,
    }
}
