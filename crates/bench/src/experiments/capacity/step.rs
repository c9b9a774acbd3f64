//! The figures of one rate.

use crate::figures::Metrics;

/// The metric: the percentage of its core that the database used.
pub(super) const DATABASE_CORE: &str = "database core %";

/// The metric: the percentage of the other cores that the gateway and the generator used.
pub(super) const OTHER_CORES: &str = "other cores %";

/// The metric: the percentage of one core that all other programs used.
pub(super) const STRANGERS: &str = "other programs %";

/// The figures of one rate.
pub(super) struct Step {
    /// Calls a second that were answered.
    pub(super) answered: f64,
    /// True if the 99th percentile of the latency was above the limit.
    pub(super) is_late: bool,
    /// All figures.
    pub(super) metrics: Metrics,
}
