//! The ways to change a setting.

use super::window::Sample;
use super::{Bounds, Setting};

/// A way to change a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    MoreFlights,
    MoreRows,
    FewerRows,
    FewerFlights,
    /// The same number of rows under way, in half the flights.
    Merge,
    /// The same number of rows under way, in twice the flights.
    Split,
    /// Wait a moment for the clients that were just answered.
    Gather,
    /// Do not wait for them any more.
    Scatter,
}

/// The smallest limit of a batch's rows: nothing is gained below it.
const FEWEST_ROWS: usize = 64;

/// The size of a batch, in rows, from which on no clients are waited for.
const LARGE_ROWS: usize = 256;

impl Direction {
    pub(super) const ALL: [Self; 8] = [
        Self::MoreFlights,
        Self::Gather,
        Self::MoreRows,
        Self::FewerRows,
        Self::FewerFlights,
        Self::Merge,
        Self::Split,
        Self::Scatter,
    ];

    /// Returns the change of rows per second, as a logarithm, at which the setting is changed. More
    /// rows cost latency, and more flights cost connections and split batches: they must pay. Fewer
    /// must not harm.
    pub(super) fn threshold(self, base: Setting) -> f64 {
        match self {
            // One flight instead of several costs the database less.
            Self::Gather if base.flights > 1 => 0.0,
            Self::MoreRows => 0.03,
            Self::MoreFlights => 0.06,
            Self::Split | Self::Gather => 0.05,
            Self::FewerRows => -0.015,
            Self::FewerFlights => -0.03,
            Self::Merge | Self::Scatter => 0.0,
        }
    }

    /// True if the same rows cost the database less, because there are fewer batches.
    pub(super) fn saves(self) -> bool {
        matches!(self, Self::FewerFlights | Self::Merge)
    }

    pub(super) fn opposite(self) -> Self {
        match self {
            Self::MoreRows => Self::FewerRows,
            Self::FewerRows => Self::MoreRows,
            Self::MoreFlights => Self::FewerFlights,
            Self::FewerFlights => Self::MoreFlights,
            Self::Merge => Self::Split,
            Self::Split => Self::Merge,
            Self::Gather => Self::Scatter,
            Self::Scatter => Self::Gather,
        }
    }

    /// True if a sample gives a reason to try this change.
    pub(super) fn makes_sense(self, base: Setting, sample: &Sample) -> bool {
        match self {
            // Further flights can help as soon as rows wait for one. All other changes are judged
            // only while nearly all rows wait. A source is in one flight at a time.
            Self::MoreFlights => sample.crowded && sample.sources > base.flights,
            Self::Split => sample.cut && sample.sources > base.flights,
            // Batches that no limit cuts would not become larger.
            Self::MoreRows => sample.cut,
            Self::FewerRows => sample.saturated,
            // If nothing waits although several flights are under way, each client has a flight of
            // its own.
            Self::FewerFlights => sample.saturated || sample.flying > 1,
            // A smaller limit would cut batches of twice the size.
            Self::Merge => sample.rows * 2 > base.rows,
            // Large batches are worth their commit without waiting, and full ones have no room for
            // clients that come back.
            Self::Gather => {
                (sample.saturated || sample.flying > 1)
                    && sample.back
                    && !sample.cut
                    && sample.rows * sample.flying <= LARGE_ROWS
            }
            Self::Scatter => sample.saturated,
        }
    }

    /// Returns the setting after this change, with `factor` times the rows if there are to be more.
    /// It may equal `base`.
    pub(super) fn from(
        self,
        base: Setting,
        bounds: Bounds,
        sample: &Sample,
        factor: usize,
    ) -> Setting {
        let Setting {
            flights,
            rows,
            gather,
        } = base;
        let gather = match self {
            Self::Gather => true,
            Self::Scatter => false,
            _ => gather,
        };
        let (flights, rows) = match self {
            // One flight that gathers is as good as two that do not, so the step starts from two.
            Self::MoreFlights if gather => ((flights * 4).min(bounds.flights), rows),
            Self::MoreFlights => ((flights * 2).min(bounds.flights), rows),
            Self::MoreRows => (flights, (rows * factor).min(bounds.rows)),
            // Half of the flights that were under way: a limit that does not bind would change
            // nothing.
            Self::FewerFlights => (flights.min(sample.flying).div_ceil(2), rows),
            // Half of the rows that batches have had, for the same reason.
            Self::FewerRows => {
                let half = rows.min(sample.rows.next_power_of_two()) / 2;
                (flights, half.max(FEWEST_ROWS.min(rows)))
            }
            Self::Merge if flights > 1 && rows * 2 <= bounds.rows => {
                (flights.div_ceil(2), rows * 2)
            }
            Self::Split if flights * 2 <= bounds.flights && rows >= 2 * FEWEST_ROWS => {
                (flights * 2, rows / 2)
            }
            // With several flights, there is always one with which clients that come back can
            // leave.
            Self::Gather => (1, rows),
            Self::Merge | Self::Split | Self::Scatter => (flights, rows),
        };
        Setting {
            flights,
            rows,
            gather: gather && flights == 1,
        }
    }
}
