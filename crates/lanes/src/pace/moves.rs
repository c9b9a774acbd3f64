//! The next change to try, and the time of its next trial.

use std::time::Duration;

use super::direction::Direction;
use super::window::Sample;
use super::{Bounds, Setting};

/// The first pause after a change that did not pay, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The shortest pause, in multiples of the trial's length.
const PAUSE_PER_TRIAL: u32 = 30;

/// The time for which the opposite of a change that has paid is not tried.
const NOT_BACK_AT_ONCE: Duration = Duration::from_millis(300);

/// The factors by which the rows of a batch are raised: first the large one, then the small one.
const LARGE_STEP: usize = 4;
const SMALL_STEP: usize = 2;

/// A change to try.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) direction: Direction,
    pub(super) candidate: Setting,
    /// True if the change has never failed: then a great gain is believed at once.
    pub(super) eager: bool,
}

/// The times at which each change may be tried next.
#[derive(Clone, Debug)]
pub(super) struct Moves {
    plans: [Plan; Direction::ALL.len()],
    /// The direction that has just paid a lot, which is tried next.
    favourite: Option<Direction>,
    trials: u64,
}

#[derive(Clone, Copy, Debug)]
struct Plan {
    direction: Direction,
    not_before: Duration,
    /// The next pause.
    pause: Duration,
    /// The number of its last trial.
    tried: u64,
    factor: usize,
    eager: bool,
}

impl Moves {
    pub(super) fn new() -> Self {
        let plan = |direction| Plan {
            direction,
            not_before: Duration::ZERO,
            pause: FIRST_PAUSE,
            tried: 0,
            factor: LARGE_STEP,
            eager: true,
        };
        Self {
            plans: Direction::ALL.map(plan),
            favourite: None,
            trials: 0,
        }
    }

    /// Returns the next change to try, if one may be tried now: the favourite, or the one that was
    /// last tried longest ago.
    pub(super) fn choose(
        &mut self,
        now: Duration,
        base: Setting,
        bounds: Bounds,
        sample: &Sample,
    ) -> Option<Step> {
        let is_open = |plan: &Plan| {
            plan.not_before <= now
                && plan.direction.makes_sense(base, sample)
                && plan.candidate(base, bounds, sample) != base
        };
        // If parallel flights help, they are better than waiting, so they are tried first.
        let more = |plan: &Plan| plan.direction == Direction::MoreFlights && is_open(plan);
        let waits = self.plans.iter().any(more);
        let open =
            |plan: &&mut Plan| is_open(plan) && !(waits && plan.direction == Direction::Gather);
        let plans = self.plans.iter_mut().filter(open);
        let plan = plans.min_by_key(|plan| (Some(plan.direction) != self.favourite, plan.tried))?;
        self.trials += 1;
        plan.tried = self.trials;
        Some(Step {
            direction: plan.direction,
            candidate: plan.candidate(base, bounds, sample),
            eager: plan.eager,
        })
    }

    /// Notes that a change did not pay, and that the trial took so long.
    pub(super) fn failed(&mut self, direction: Direction, now: Duration, took: Duration) {
        if self.favourite == Some(direction) {
            self.favourite = None;
        }
        for plan in self.plan(direction) {
            if direction == Direction::MoreRows && plan.factor > SMALL_STEP {
                // The step may have been too large. The smaller step comes next.
                plan.factor = SMALL_STEP;
                plan.tried = 0;
            } else {
                plan.eager = false;
                plan.not_before = now + plan.pause.max(took * PAUSE_PER_TRIAL);
                plan.pause = (plan.pause * 2).min(LONGEST_PAUSE);
            }
        }
    }

    /// Notes that a change paid so much that the next step in its direction comes first.
    pub(super) fn leapt(&mut self, direction: Direction, now: Duration) {
        self.paid(direction, now);
        self.favourite = Some(direction);
    }

    /// Notes that a change paid: changes that did not pay before may do so soon.
    pub(super) fn paid(&mut self, direction: Direction, now: Duration) {
        self.favourite = None;
        for plan in &mut self.plans {
            plan.pause = FIRST_PAUSE;
            plan.not_before = if plan.direction == direction {
                now
            } else if plan.direction == direction.opposite() {
                now + NOT_BACK_AT_ONCE
            } else {
                plan.not_before.min(now + FIRST_PAUSE)
            };
        }
    }

    /// Lets all changes be tried, because the database or the load has changed.
    pub(super) fn end_pauses(&mut self, now: Duration) {
        for plan in &mut self.plans {
            plan.pause = FIRST_PAUSE;
            plan.factor = LARGE_STEP;
            plan.not_before = plan.not_before.min(now);
        }
    }

    fn plan(&mut self, direction: Direction) -> impl Iterator<Item = &mut Plan> {
        self.plans
            .iter_mut()
            .filter(move |plan| plan.direction == direction)
    }
}

impl Plan {
    fn candidate(&self, base: Setting, bounds: Bounds, sample: &Sample) -> Setting {
        self.direction.from(base, bounds, sample, self.factor)
    }
}
