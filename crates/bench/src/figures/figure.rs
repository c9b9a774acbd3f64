//! One measured number.

use serde::{Deserialize, Serialize};

/// One measured number.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Figure {
    /// Which repetition, from 1.
    pub round: u32,
    /// The arm: one of the things that are compared.
    pub arm: String,
    /// The metric, with its unit.
    pub metric: String,
    /// The number.
    pub value: f64,
}
