//! The totals of the last hour, one point every ten seconds.

use std::collections::VecDeque;

use serde_json::{Value, json};

/// The number of points kept: one hour.
const POINTS: usize = 360;

/// The totals of one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    /// Seconds since 1970.
    pub(crate) at: f64,
    pub(crate) accepted: f64,
    pub(crate) failed: f64,
}

/// The points of the last hour, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct History(VecDeque<Point>);

impl History {
    pub(crate) fn add(&mut self, point: Point) {
        if self.0.len() >= POINTS {
            self.0.pop_front();
        }
        self.0.push_back(point);
    }

    pub(crate) fn json(&self) -> Value {
        let points = self.0.iter();
        points
            .map(|point| json!([point.at, point.accepted, point.failed]))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_is_kept() {
        let mut history = History::default();
        for at in 0..400 {
            history.add(Point {
                at: f64::from(at),
                accepted: 1.0,
                failed: 0.0,
            });
        }
        let kept = history.json();
        assert_eq!(kept.as_array().unwrap().len(), POINTS);
        assert_eq!(kept[0], json!([40.0, 1.0, 0.0]));
    }
}
