//! One change on trial: two settings fly in turns until one stands out, or patience ends.

use std::time::Duration;

use super::Setting;
use super::moves::Direction;
use super::window::Sample;

/// Turns of each side after which a change that does not stand out is given up.
const MOST_TURNS: usize = 24;

/// What a single turn may be wrong by even where all turns agree, as a logarithm.
const DOUBT: f64 = 0.015;

/// A standard error at which the mean is believed.
const ENOUGH: f64 = 0.008;

/// A turn says no more than this, as a logarithm: a stall in one of them is not to outweigh all others.
const MOST_SAID: f64 = 0.7;

/// A gain by this, as a logarithm, is believed at once where nothing has been tried yet.
const LEAP: f64 = 0.2;

#[derive(Clone, Debug)]
pub(super) struct Trial {
    pub(super) direction: Direction,
    pub(super) base: Setting,
    pub(super) candidate: Setting,
    pub(super) since: Duration,
    /// Logarithms of rows per second: base, candidate, base, candidate, .., base.
    turns: Vec<f64>,
    eager: bool,
}

/// What a trial says so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    GoOn,
    Better,
    /// So much better at once that the next step can be tried from here.
    Leap,
    Worse,
    /// There is not enough to do any more to say anything.
    Stop,
}

impl Trial {
    /// Begins with what the base has shown just now.
    pub(super) fn new(
        direction: Direction,
        base: Setting,
        candidate: Setting,
        since: Duration,
        rate: f64,
        eager: bool,
    ) -> Self {
        Self {
            direction,
            base,
            candidate,
            since,
            turns: vec![rate.ln()],
            eager,
        }
    }

    /// Who flies next.
    pub(super) fn setting(&self) -> Setting {
        if self.turns.len() % 2 == 1 {
            self.candidate
        } else {
            self.base
        }
    }

    /// Adds a turn.
    pub(super) fn add(&mut self, sample: &Sample) -> Verdict {
        let was_base = self.setting() == self.base;
        self.turns.push(sample.rate.max(f64::MIN_POSITIVE).ln());
        if !sample.connected {
            Verdict::Worse
        } else if !was_base {
            match self.turns.as_slice() {
                [base, candidate] if self.eager && candidate - base > LEAP => Verdict::Leap,
                _ => Verdict::GoOn,
            }
        } else if !sample.crowded {
            Verdict::Stop
        } else {
            self.verdict()
        }
    }

    fn verdict(&self) -> Verdict {
        let gains = self.gains();
        let turns = gains.len();
        let count = turns as f64;
        let mean = gains.iter().sum::<f64>() / count;
        let error = self.error(&gains, mean) + DOUBT / count.sqrt();
        let threshold = self.direction.threshold();
        let believed = error < ENOUGH;
        if mean - 1.5 * error > threshold || (believed && mean > threshold) {
            Verdict::Better
        } else if mean + error < threshold || believed || turns >= MOST_TURNS {
            Verdict::Worse
        } else {
            Verdict::GoOn
        }
    }

    /// How much better each turn of the candidate was than the turns of the base around it.
    fn gains(&self) -> Vec<f64> {
        let around = self.turns.windows(3).step_by(2);
        around
            .filter_map(|turns| match turns {
                [before, candidate, after] => Some(candidate - (before + after) / 2.0),
                _ => None,
            })
            .map(|gain| gain.clamp(-MOST_SAID, MOST_SAID))
            .collect()
    }

    /// The standard error of the mean gain. From one turn it is guessed by how far the base's own turns are apart.
    fn error(&self, gains: &[f64], mean: f64) -> f64 {
        let count = gains.len() as f64;
        match (gains, self.turns.as_slice()) {
            ([_], [first, _, last]) => (first - last).abs() / 2.0,
            _ => {
                let squares: f64 = gains.iter().map(|gain| (gain - mean).powi(2)).sum();
                (squares / (count - 1.0) / count).sqrt()
            }
        }
    }
}
