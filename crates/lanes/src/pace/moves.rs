//! What can be changed, and when to try it again.

use std::time::Duration;

use super::window::Sample;
use super::{Bounds, Setting};

/// A way to change a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    MoreRows,
    MoreFlights,
    FewerRows,
    FewerFlights,
    /// As many rows under way, in half the flights.
    Merge,
}

/// Batches are not made smaller than this: there is nothing to be won by it.
const FEWEST_ROWS: usize = 8;

/// The first pause after a change that did not pay, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A trial may take this part of the time at most.
const TRIAL_SHARE: u32 = 30;

/// After a change has paid, its opposite is not tried for so long.
const NOT_BACK_AT_ONCE: Duration = Duration::from_millis(300);

impl Direction {
    const ALL: [Self; 5] = [
        Self::MoreFlights,
        Self::MoreRows,
        Self::FewerRows,
        Self::FewerFlights,
        Self::Merge,
    ];

    /// How much rows per second must change, as a logarithm, for the change to be made. More rows cost latency,
    /// more flights cost connections and split batches: they must pay. Fewer must not harm.
    pub(super) fn threshold(self) -> f64 {
        match self {
            Self::MoreRows => 0.03,
            Self::MoreFlights => 0.05,
            Self::FewerRows => -0.015,
            Self::FewerFlights => -0.02,
            Self::Merge => 0.0,
        }
    }

    fn opposite(self) -> Self {
        match self {
            Self::MoreRows => Self::FewerRows,
            Self::FewerRows => Self::MoreRows,
            Self::MoreFlights => Self::FewerFlights,
            Self::FewerFlights | Self::Merge => Self::MoreFlights,
        }
    }

    fn candidate(self, base: Setting, bounds: Bounds, sample: &Sample) -> Option<Setting> {
        let Setting { flights, rows } = base;
        let candidate = match self {
            // Batches that nothing cuts would not become larger.
            Self::MoreRows | Self::Merge if !sample.cut => base,
            Self::MoreFlights if !sample.crowded => base,
            Self::FewerRows | Self::FewerFlights if !sample.saturated => base,
            Self::MoreRows => Setting {
                flights,
                rows: (rows * 2).min(bounds.rows),
            },
            Self::MoreFlights => Setting {
                flights: (flights * 2).min(bounds.flights),
                rows,
            },
            Self::FewerRows => Setting {
                flights,
                rows: (rows.min(sample.rows.next_power_of_two()) / 2).max(FEWEST_ROWS.min(rows)),
            },
            Self::FewerFlights => Setting {
                flights: flights.div_ceil(2),
                rows,
            },
            Self::Merge if flights == 1 || rows * 2 > bounds.rows => base,
            Self::Merge => Setting {
                flights: flights.div_ceil(2),
                rows: rows * 2,
            },
        };
        (candidate != base).then_some(candidate)
    }
}

/// When each change may be tried (again).
#[derive(Clone, Debug)]
pub(super) struct Moves {
    /// In the order of [`Direction::ALL`].
    pauses: [Pause; 5],
    /// What paid last is tried first.
    favourite: Option<Direction>,
    trials: u64,
}

#[derive(Clone, Copy, Debug)]
struct Pause {
    until: Duration,
    next: Duration,
    /// When it was tried last, as a count of trials.
    tried: u64,
    /// True until it has failed once.
    eager: bool,
}

impl Moves {
    pub(super) fn new() -> Self {
        let none = Pause {
            until: Duration::ZERO,
            next: FIRST_PAUSE,
            tried: 0,
            eager: true,
        };
        Self {
            pauses: [none; 5],
            favourite: None,
            trials: 0,
        }
    }

    /// The next change to try, if it is time for one: the favourite, or the one that was not tried for longest.
    pub(super) fn choose(
        &mut self,
        now: Duration,
        base: Setting,
        bounds: Bounds,
        sample: &Sample,
    ) -> Option<(Direction, Setting)> {
        let due = Direction::ALL.into_iter().zip(&self.pauses);
        let due = due.filter(|(_, pause)| pause.until <= now);
        let possible = due.filter_map(|(direction, pause)| {
            let candidate = direction.candidate(base, bounds, sample)?;
            Some((
                Some(direction) != self.favourite,
                pause.tried,
                direction,
                candidate,
            ))
        });
        let (_, _, direction, candidate) =
            possible.min_by_key(|(others, tried, ..)| (*others, *tried))?;
        self.trials += 1;
        self.pause(direction).tried = self.trials;
        Some((direction, candidate))
    }

    /// A change did not pay; finding that out took so long.
    pub(super) fn failed(&mut self, direction: Direction, now: Duration, took: Duration) {
        if self.favourite == Some(direction) {
            self.favourite = None;
        }
        let pause = self.pause(direction);
        pause.eager = false;
        pause.until = now + pause.next.max(took * TRIAL_SHARE);
        pause.next = (pause.next * 2).min(LONGEST_PAUSE);
    }

    /// A change paid so much that the next step of the kind comes first.
    pub(super) fn leapt(&mut self, direction: Direction, now: Duration) {
        self.paid(direction, now);
        self.favourite = Some(direction);
    }

    /// A change paid: what did not pay before may do so now.
    pub(super) fn paid(&mut self, direction: Direction, now: Duration) {
        for pause in &mut self.pauses {
            pause.next = FIRST_PAUSE;
            pause.until = pause.until.min(now + FIRST_PAUSE);
        }
        self.favourite = None;
        self.pause(direction).until = now;
        self.pause(direction.opposite()).until = now + NOT_BACK_AT_ONCE;
    }

    pub(super) fn is_eager(&mut self, direction: Direction) -> bool {
        self.pause(direction).eager
    }

    pub(super) fn end_pauses(&mut self, now: Duration) {
        for pause in &mut self.pauses {
            pause.next = FIRST_PAUSE;
            pause.until = pause.until.min(now);
        }
    }

    fn pause(&mut self, direction: Direction) -> &mut Pause {
        let [more_flights, more_rows, fewer_rows, fewer_flights, merge] = &mut self.pauses;
        match direction {
            Direction::MoreRows => more_rows,
            Direction::MoreFlights => more_flights,
            Direction::FewerRows => fewer_rows,
            Direction::FewerFlights => fewer_flights,
            Direction::Merge => merge,
        }
    }
}
