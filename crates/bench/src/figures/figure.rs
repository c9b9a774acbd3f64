//! One measured number.

use serde::{Deserialize, Serialize};

/// One measured number.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Figure {
    /// Which repetition, from 1.
    pub round: u32,
    /// What was measured: one of the things that are compared.
    pub arm: String,
    /// Its property, with the unit.
    pub metric: String,
    /// The number.
    pub value: f64,
}
