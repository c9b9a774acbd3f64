//! Decides when a flight is overdue, so that others may leave beside it.
//!
//! The rule is that of TCP for round trips (RFC 6298, section 2): a flight is overdue if it takes
//! longer than the average plus four times the mean deviation. A batch may be late because Windrow
//! has to read its table's description first, or because one of its writes fails, waits for a lock
//! or is large. Other clients need not wait for that if the database can run another flight beside
//! it.

use std::time::Duration;

/// The weight of the newest time in the average, and in the mean deviation.
const AVERAGE_WEIGHT: f64 = 1.0 / 8.0;
const DEVIATION_WEIGHT: f64 = 1.0 / 4.0;

/// The number of deviations by which a flight is overdue.
const DEVIATIONS: f64 = 4.0;

/// The shortest time after which a flight is overdue: another flight costs more than such a wait.
const SHORTEST: Duration = Duration::from_millis(1);

/// The number of flights that must have landed before any is overdue.
const EVIDENCE: u32 = 8;

/// The usual time of a flight, in seconds.
#[derive(Debug, Default)]
pub(crate) struct UsualTime {
    average: f64,
    deviation: f64,
    seen: u32,
}

impl UsualTime {
    /// Counts the time of a flight that has landed. An overdue flight counts only as long as it was
    /// allowed to take.
    pub(crate) fn landed(&mut self, took: Duration) {
        let most = self.allowed().unwrap_or(Duration::MAX);
        let took = took.min(most).as_secs_f64();
        self.seen = self.seen.saturating_add(1);
        if self.seen == 1 {
            (self.average, self.deviation) = (took, took / 2.0);
            return;
        }
        let off = (took - self.average).abs();
        self.deviation += (off - self.deviation) * DEVIATION_WEIGHT;
        self.average += (took - self.average) * AVERAGE_WEIGHT;
    }

    /// Returns the time after which a flight is overdue; `None` if nothing is known yet.
    pub(crate) fn allowed(&self) -> Option<Duration> {
        let seconds = self.average + DEVIATIONS * self.deviation;
        let known = self.seen >= EVIDENCE;
        known.then(|| Duration::from_secs_f64(seconds).max(SHORTEST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_usual_is_learned_and_not_spoiled_by_what_is_not() {
        let mut usual = UsualTime::default();
        let flights = |usual: &mut UsualTime, count: u32, millis: u64| {
            for _ in 0..count {
                usual.landed(Duration::from_millis(millis));
            }
        };
        flights(&mut usual, EVIDENCE - 1, 10);
        assert_eq!(usual.allowed(), None);
        flights(&mut usual, 50, 10);
        let allowed = usual.allowed().unwrap();
        assert!(allowed < Duration::from_millis(12), "{allowed:?}");
        // A second is not usual because it happened once.
        flights(&mut usual, 1, 1000);
        let allowed = usual.allowed().unwrap();
        assert!(allowed < Duration::from_millis(15), "{allowed:?}");
        // But a database that has become slower is not late for ever.
        flights(&mut usual, 100, 40);
        let allowed = usual.allowed().unwrap();
        assert!(allowed > Duration::from_millis(40), "{allowed:?}");
    }
}
