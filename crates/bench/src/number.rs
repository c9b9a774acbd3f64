//! Numbers of measurements.

/// Returns a count as a float. Counts of a measurement are far below 2^53, so none is rounded.
pub fn as_f64(n: u64) -> f64 {
    n as f64
}
