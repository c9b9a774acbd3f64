//! The next change to try, and when to try it again.

use std::time::Duration;

use super::direction::Direction;
use super::window::Sample;
use super::{Bounds, Setting};

/// The first pause after a change that did not pay, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Pauses are so many times as long as the trial was, at least.
const PAUSE_PER_TRIAL: u32 = 30;

/// After a change has paid, its opposite is not tried for so long.
const NOT_BACK_AT_ONCE: Duration = Duration::from_millis(300);

/// Rows are first tried this many times as many, then twice as many.
const LARGE_STEP: usize = 4;
const SMALL_STEP: usize = 2;

/// A change to try.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) direction: Direction,
    pub(super) candidate: Setting,
    /// True if it has never failed: then a great gain is believed at once.
    pub(super) eager: bool,
}

/// When each change may be tried (again).
#[derive(Clone, Debug)]
pub(super) struct Moves {
    plans: [Plan; Direction::ALL.len()],
    /// The direction that has just paid a lot, which is tried first.
    favourite: Option<Direction>,
    trials: u64,
}

#[derive(Clone, Copy, Debug)]
struct Plan {
    direction: Direction,
    not_before: Duration,
    /// The next pause.
    pause: Duration,
    /// Which trial it was the last time.
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

    /// The next change to try, if it is time for one: the favourite, or the one that was not tried
    /// for longest.
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
        // Where flights beside each other are of use, they are better than to wait: so those come
        // first.
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

    /// A change did not pay; finding that out took so long.
    pub(super) fn failed(&mut self, direction: Direction, now: Duration, took: Duration) {
        if self.favourite == Some(direction) {
            self.favourite = None;
        }
        for plan in self.plan(direction) {
            if direction == Direction::MoreRows && plan.factor > SMALL_STEP {
                // Too much at once, perhaps. The smaller step comes next.
                plan.factor = SMALL_STEP;
                plan.tried = 0;
            } else {
                plan.eager = false;
                plan.not_before = now + plan.pause.max(took * PAUSE_PER_TRIAL);
                plan.pause = (plan.pause * 2).min(LONGEST_PAUSE);
            }
        }
    }

    /// A change paid so much that the next step of the kind comes first.
    pub(super) fn leapt(&mut self, direction: Direction, now: Duration) {
        self.paid(direction, now);
        self.favourite = Some(direction);
    }

    /// A change paid: what did not pay before may do so soon.
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

    /// The world has changed: everything may be tried.
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
