//! The delays of a source that never stops retrying. Pure.

use std::time::Duration;

use super::{Backoff, Retry};
use crate::fault::Fault;

/// The delay after the second failure in a row. The first one is retried at once.
const FIRST_DELAY: Duration = Duration::from_millis(20);

/// The number of failures in a row from which on they are reported.
const OFTEN: u32 = 3;

/// The delays between attempts of a source in the background, such as the drain. It tries again
/// until it succeeds, so only the delays depend on the fault.
#[derive(Clone, Debug)]
pub struct BackgroundRetry {
    backoff: Backoff,
    /// The longest delay if the next attempt may succeed at any moment.
    soon: Duration,
    /// The longest delay if an operator has to act.
    long: Duration,
}

impl BackgroundRetry {
    /// Begins with no failures. `soon`: the longest delay if the next attempt may succeed at any
    /// moment; `long`: the delay if it cannot before an operator has acted.
    pub fn new(soon: Duration, long: Duration) -> Self {
        Self {
            backoff: Backoff::new(FIRST_DELAY, long).first_at_once(),
            soon: soon.min(long),
            long,
        }
    }

    /// Counts a failure, and returns the delay before the next attempt.
    pub fn delay(&mut self, fault: &Fault) -> Duration {
        match fault.retry() {
            // A read without an outcome means that the server is in trouble.
            Retry::Never | Retry::OutcomeUnknown => self.long,
            Retry::Smaller | Retry::AfterRepair => self.backoff.delay(),
            Retry::Soon | Retry::AfterLock | Retry::WhenBack => self.reconnect_delay(),
        }
    }

    /// Counts a lost connection, and returns the delay before the next one. Over that, the source
    /// finds out what was written.
    pub fn reconnect_delay(&mut self) -> Duration {
        self.backoff.delay_within(self.soon)
    }

    /// True once attempts have failed so often in a row that this should be reported, and that
    /// fewer writes at once may succeed.
    pub fn has_failed_often(&self) -> bool {
        self.backoff.failures() >= OFTEN
    }

    /// Forgets the failures: an attempt has succeeded.
    pub fn reset(&mut self) {
        self.backoff.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::FaultClass;

    #[test]
    fn the_fault_decides_how_long_the_delays_become() {
        let (soon, long) = (Duration::from_secs(1), Duration::from_secs(10));
        let longest = |class, code| {
            let fault = Fault::new(class, code, "no");
            let mut retry = BackgroundRetry::new(soon, long);
            let first = retry.delay(&fault);
            let longest = (0..20).map(|_| retry.delay(&fault)).max();
            (first, longest.unwrap_or_default())
        };
        let (first, most) = longest(FaultClass::Unavailable, "08006");
        assert!(first.is_zero() && most <= soon && most > soon / 2);
        let (first, most) = longest(FaultClass::Other, "57014");
        assert!(first.is_zero() && most <= long && most > long / 2);
        assert_eq!(longest(FaultClass::Denied, "42501"), (long, long));
        assert_eq!(longest(FaultClass::Unknown, "08007"), (long, long));
    }

    #[test]
    fn only_failures_in_a_row_are_reported() {
        let second = Duration::from_secs(1);
        let mut retry = BackgroundRetry::new(second, second);
        let fault = Fault::unavailable("away");
        for _ in 0..2 {
            retry.delay(&fault);
        }
        assert!(!retry.has_failed_often());
        retry.delay(&fault);
        assert!(retry.has_failed_often());
        retry.reset();
        assert!(!retry.has_failed_often());
    }
}
