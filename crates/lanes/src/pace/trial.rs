//! One change on trial: two settings take turns until one is clearly better, or until the trial has
//! taken too long.

use std::time::Duration;

use super::Setting;
use super::direction::Direction;
use super::moves::Step;
use super::window::{Hopeless, Sample};

/// Turns of the candidate after which a trial without a clear result is given up, and the longest
/// time of a trial: there may be better changes.
const MOST_TURNS: usize = 24;
const LONGEST: Duration = Duration::from_secs(1);

/// The assumed error of a single turn even if all turns agree, as a logarithm.
const DOUBT: f64 = 0.015;

/// The most that one turn may say, as a logarithm: a stall in one turn must not outweigh all
/// others.
const MOST_SAID: f64 = 0.7;

/// The standard error at which the mean is believed.
const ENOUGH: f64 = 0.008;

/// The number of standard errors by which a gain must stand out. For a loss, one is enough.
const CERTAIN: f64 = 2.0;

/// The fewest turns of the candidate before it is believed to be better: a single turn may be an
/// accident, and so may those of the base around it.
const FEWEST: usize = 3;

/// The number of turns as which the noise measured before the trial counts.
const PRIOR: f64 = 3.0;

/// The number of turns from which on the best and the worst are left out.
const MANY_TURNS: usize = 5;

/// The gain, as a logarithm, that is believed at once if this change has never failed.
const LEAP: f64 = 0.2;

#[derive(Clone, Debug)]
pub(super) struct Trial {
    pub(super) direction: Direction,
    pub(super) base: Setting,
    pub(super) candidate: Setting,
    pub(super) since: Duration,
    eager: bool,
    noise: f64,
    /// The time of the first turn.
    first_took: Duration,
    /// Logarithms of rows per second: base, candidate, base, candidate, .., base.
    turns: Vec<f64>,
}

/// The result of a trial up to now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TrialResult {
    GoOn,
    Better,
    /// The candidate is so much better that the next step can be tried from it.
    Leap,
    Worse,
    /// There is too little load to measure anything.
    Stop,
}

impl Trial {
    /// Begins with the last sample of the base.
    pub(super) fn new(
        step: Step,
        base: Setting,
        since: Duration,
        sample: &Sample,
        noise: f64,
    ) -> Self {
        Self {
            direction: step.direction,
            base,
            candidate: step.candidate,
            since,
            eager: step.eager,
            noise,
            first_took: sample.took,
            turns: vec![sample.rate.ln()],
        }
    }

    /// Returns the setting of the next turn.
    pub(super) fn setting(&self) -> Setting {
        if self.turns.len() % 2 == 1 {
            self.candidate
        } else {
            self.base
        }
    }

    /// Returns the point at which the next turn need not go on.
    pub(super) fn hopeless(&self) -> Hopeless {
        match self.turns.last() {
            Some(base) if self.setting() == self.candidate => Hopeless {
                after: self.first_took,
                rate: (base - MOST_SAID).exp(),
            },
            _ => Hopeless::NEVER,
        }
    }

    /// Adds a turn.
    pub(super) fn add(&mut self, now: Duration, sample: &Sample) -> TrialResult {
        let of_candidate = self.setting() == self.candidate;
        self.turns.push(sample.rate.max(f64::MIN_POSITIVE).ln());
        if !sample.connected {
            TrialResult::Worse
        } else if of_candidate {
            match self.turns.as_slice() {
                [base, candidate] if self.eager && candidate - base > LEAP => TrialResult::Leap,
                _ => TrialResult::GoOn,
            }
        } else if !sample.crowded && sample.flying <= 1 {
            TrialResult::Stop
        } else {
            self.verdict(now)
        }
    }

    fn verdict(&self, now: Duration) -> TrialResult {
        let mut gains = self.gains();
        let turns = gains.len();
        if turns >= MANY_TURNS {
            gains.sort_by(f64::total_cmp);
            gains.pop();
            gains.remove(0);
        }
        let count = gains.len() as f64;
        let mean = gains.iter().sum::<f64>() / count;
        let error = self.error(&gains, mean) + DOUBT / count.sqrt();
        let threshold = self.direction.threshold(self.base);
        let believed = error < ENOUGH;
        let is_old = turns >= FEWEST && now.saturating_sub(self.since) > LONGEST;
        let ends = turns >= MOST_TURNS || is_old;
        let stands_out = mean - CERTAIN * error > threshold || (believed && mean > threshold);
        if stands_out && turns >= FEWEST {
            TrialResult::Better
        } else if ends && mean > threshold && self.direction.saves() {
            // A change that costs the database less need not be proven to be as good.
            TrialResult::Better
        } else if mean + error < threshold || (believed && !stands_out) || ends {
            TrialResult::Worse
        } else {
            TrialResult::GoOn
        }
    }

    /// Returns for each turn of the candidate its gain over the turns of the base around it.
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

    /// Returns the standard error of the mean gain: at first from the noise measured before, then
    /// increasingly from the gains.
    fn error(&self, gains: &[f64], mean: f64) -> f64 {
        let count = gains.len() as f64;
        let squares: f64 = gains.iter().map(|gain| (gain - mean).powi(2)).sum();
        let variance = (PRIOR * self.noise.powi(2) + squares) / (PRIOR + count - 1.0);
        (variance / count).sqrt()
    }
}
