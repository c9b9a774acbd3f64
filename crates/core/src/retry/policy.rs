//! The number of attempts of a write, and the time for which it is tried again.

use std::num::NonZeroU32;
use std::time::Duration;

use super::Retry;

/// Attempts of a client's unit before the fault is the answer.
const CLIENT_ATTEMPTS: u8 = 10;

/// Attempts of a unit of a background source: about fifteen seconds, most of them alone.
const BACKGROUND_ATTEMPTS: u8 = 120;

/// Attempts of a load's call to the database, with delays of up to a second between them.
const LOAD_ATTEMPTS: u8 = 12;

/// Attempts of a batch of a move, with delays of up to a second between them.
const MOVE_ATTEMPTS: u8 = 20;

/// The number of attempts of writes that fail through no fault of their own, and the time for which
/// they are retried. The source of a lane's units chooses it
/// ([`Intake::with_policy`](crate::Intake::with_policy)). Loads and moves have their own, for
/// writes without a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The time for which units of a background source wait for locks and for a database that is
    /// away; `None` if a client waits for the answers.
    background: Option<Millis>,
    /// The time for which units with an unknown outcome are retried; `None` for never. Only for
    /// units that cannot be executed twice.
    unknown: Option<Millis>,
    /// The most attempts of a write that conflicts with others.
    attempts: u8,
    /// True if only a fault of the write itself ends its attempts.
    is_persistent: bool,
}

/// A duration in four bytes, because each unit carries a policy. The longest one is 49 days.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Millis(NonZeroU32);

impl Millis {
    fn of(duration: Duration) -> Self {
        // At least one millisecond.
        let millis = u32::try_from(duration.as_millis()).unwrap_or(u32::MAX);
        Self(NonZeroU32::new(millis).unwrap_or(NonZeroU32::MIN))
    }

    fn duration(self) -> Duration {
        Duration::from_millis(self.0.get().into())
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::client()
    }
}

impl RetryPolicy {
    /// Returns the policy of units whose client waits: a few attempts, and the lane's own limit for
    /// a database that is away.
    pub const fn client() -> Self {
        Self {
            background: None,
            unknown: None,
            attempts: CLIENT_ATTEMPTS,
            is_persistent: false,
        }
    }

    /// Returns the policy of units of a background source: they wait this long for a database that
    /// is away and for locks of other sessions, with any number of attempts.
    pub fn background(away_wait: Duration) -> Self {
        Self {
            background: Some(Millis::of(away_wait)),
            unknown: None,
            attempts: BACKGROUND_ATTEMPTS,
            is_persistent: false,
        }
    }

    /// Returns the policy of units that must not be lost and may be executed twice: until their
    /// lane ends, only a fault of their own ends their attempts.
    pub fn persistent() -> Self {
        Self {
            is_persistent: true,
            ..Self::background(Duration::MAX).executed_once(Duration::MAX)
        }
    }

    /// Returns the policy of a load's calls to the database without a lane.
    pub fn load(away_wait: Duration) -> Self {
        Self {
            attempts: LOAD_ATTEMPTS,
            ..Self::background(away_wait)
        }
    }

    /// Returns the policy of a move's batches. A batch with an unknown outcome may be retried,
    /// because the source shows which rows were moved.
    pub fn relocation(away_wait: Duration) -> Self {
        Self {
            attempts: MOVE_ATTEMPTS,
            ..Self::background(away_wait).executed_once(away_wait)
        }
    }

    /// Lets the lane retry units with an unknown outcome for this long. Each unit must begin with a
    /// row that the database accepts only once: the unit is executed now, or refused at that row
    /// because it was executed before.
    #[must_use]
    pub fn executed_once(mut self, wait: Duration) -> Self {
        self.unknown = Some(Millis::of(wait));
        self
    }

    /// True if units wait in the background.
    pub const fn is_background(&self) -> bool {
        self.background.is_some()
    }

    /// True for [`RetryPolicy::persistent`].
    pub const fn is_persistent(&self) -> bool {
        self.is_persistent
    }

    /// Returns how long units wait for a database that is away. `usual`: the time for a client's
    /// units.
    pub fn away_wait(&self, usual: Duration) -> Duration {
        self.background.map_or(usual, Millis::duration)
    }

    /// Returns how long units with an unknown outcome are retried; `None` for never.
    pub fn unknown_wait(&self) -> Option<Duration> {
        self.unknown.map(Millis::duration)
    }

    /// True if a write that has waited this long runs again after a fault that would be a client's
    /// answer: its outcome is unknown, or others have to act before it can succeed.
    pub fn outlasts(&self, retry: Retry, waited: Duration) -> bool {
        match retry {
            Retry::OutcomeUnknown => self.unknown_wait().is_some_and(|wait| waited < wait),
            Retry::Smaller | Retry::AfterRepair | Retry::AfterLock | Retry::WhenBack => {
                self.is_persistent
            }
            Retry::Never | Retry::Soon => false,
        }
    }

    /// True if a write runs again after this many attempts and this time. It was rolled back, or
    /// its outcome is unknown. `usual`: as in [`RetryPolicy::away_wait`].
    pub fn allows(&self, retry: Retry, attempts: u32, waited: Duration, usual: Duration) -> bool {
        match retry {
            Retry::OutcomeUnknown => self.outlasts(retry, waited),
            Retry::Smaller | Retry::AfterRepair if self.is_persistent => true,
            // Each attempt fails for all units alike, so only the time counts.
            Retry::AfterLock => waited < self.away_wait(usual),
            Retry::WhenBack if self.is_background() => waited < self.away_wait(usual),
            _ => attempts < self.attempts.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: Duration = Duration::from_secs(5);

    #[test]
    fn clients_are_answered_after_a_few_attempts() {
        let client = RetryPolicy::client();
        let allows = |retry, attempts, waited| client.allows(retry, attempts, waited, USUAL);
        for retry in [Retry::Soon, Retry::WhenBack] {
            assert!(allows(retry, 9, Duration::MAX) && !allows(retry, 10, Duration::ZERO));
        }
        assert!(allows(Retry::AfterLock, 1000, Duration::from_secs(4)));
        assert!(!allows(Retry::AfterLock, 1, USUAL));
        assert!(!allows(Retry::OutcomeUnknown, 0, Duration::ZERO));
    }

    #[test]
    fn only_a_fault_of_its_own_ends_a_persistent_write() {
        let persistent = RetryPolicy::persistent();
        let month = Duration::from_secs(30 * 86_400);
        for retry in [
            Retry::OutcomeUnknown,
            Retry::Smaller,
            Retry::AfterRepair,
            Retry::AfterLock,
            Retry::WhenBack,
        ] {
            assert!(
                persistent.outlasts(retry, month) && !RetryPolicy::client().outlasts(retry, month)
            );
        }
        for retry in [Retry::WhenBack, Retry::AfterLock, Retry::AfterRepair] {
            assert!(persistent.allows(retry, 1000, month, USUAL));
        }
        assert!(!persistent.outlasts(Retry::Never, Duration::ZERO));
        assert!(!persistent.allows(Retry::Soon, 120, Duration::ZERO, USUAL));
    }

    #[test]
    fn the_background_waits_as_long_as_it_says() {
        let wait = Duration::from_secs(60);
        let background = RetryPolicy::background(wait).executed_once(wait);
        let allows = |retry, attempts, waited| background.allows(retry, attempts, waited, USUAL);
        for retry in [Retry::AfterLock, Retry::WhenBack, Retry::OutcomeUnknown] {
            assert!(allows(retry, 1000, Duration::from_secs(59)));
            assert!(!allows(retry, 1, wait));
        }
        assert!(allows(Retry::Soon, 119, Duration::MAX));
        assert!(!allows(Retry::Soon, 120, Duration::ZERO));
        for (policy, most) in [
            (RetryPolicy::load(wait), 12),
            (RetryPolicy::relocation(wait), 20),
        ] {
            let allows = |retry, attempts, waited| policy.allows(retry, attempts, waited, USUAL);
            assert!(allows(Retry::Soon, most - 1, Duration::MAX));
            assert!(!allows(Retry::Soon, most, Duration::ZERO));
            for retry in [Retry::AfterLock, Retry::WhenBack] {
                assert!(allows(retry, 1000, Duration::ZERO) && !allows(retry, 1, wait));
            }
        }
    }
}
