//! The result of a program that writes rows.

use crate::figures::Metrics;

/// Rows that were written, and the cost besides the database's CPU time.
#[derive(Clone, Debug)]
pub struct Written {
    /// The number of rows.
    pub rows: u64,
    /// The rate, and what else is known.
    pub metrics: Metrics,
}
