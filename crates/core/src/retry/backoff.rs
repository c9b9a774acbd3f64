//! Delays between attempts. Pure.

use std::hash::BuildHasher;
use std::time::Duration;

use foldhash::fast::RandomState;

/// The delays between attempts: each is twice the one before, up to a limit, and reduced at random,
/// so that writers that collided do not meet again.
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    /// The number of failures that are retried at once.
    free: u32,
    failures: u32,
    dice: RandomState,
    drawn: u64,
}

impl Backoff {
    /// Begins with no failures. The first delay is `first`; no delay is longer than `longest`.
    pub fn new(first: Duration, longest: Duration) -> Self {
        Self {
            first,
            longest,
            free: 0,
            failures: 0,
            dice: RandomState::default(),
            drawn: 0,
        }
    }

    /// Retries the first failure at once: the transaction in the way has usually ended by then.
    #[must_use]
    pub fn first_at_once(mut self) -> Self {
        self.free = 1;
        self
    }

    /// Forgets the failures: an attempt has succeeded.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// The number of failures since the last success.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Counts a failure, and returns the delay before the next attempt.
    pub fn delay(&mut self) -> Duration {
        self.delay_within(self.longest)
    }

    /// Counts a failure, and returns the delay before the next attempt, at most `longest`.
    pub fn delay_within(&mut self, longest: Duration) -> Duration {
        self.failures = self.failures.saturating_add(1);
        self.spread(self.whole(self.failures, longest))
    }

    /// Returns the delay after this number of failures, which the caller counts.
    pub fn delay_after(&mut self, failures: u32) -> Duration {
        self.spread(self.whole(failures, self.longest))
    }

    fn whole(&self, failures: u32, longest: Duration) -> Duration {
        match failures.checked_sub(self.free + 1) {
            None => Duration::ZERO,
            Some(doublings) => {
                let factor = 2_u32.saturating_pow(doublings);
                self.first.saturating_mul(factor).min(longest)
            }
        }
    }

    /// Reduces a delay at random by up to a quarter.
    fn spread(&mut self, delay: Duration) -> Duration {
        self.drawn = self.drawn.wrapping_add(1);
        let part = self.dice.hash_one(self.drawn) % 1024;
        delay.saturating_sub(delay.mul_f64(part as f64 / 4096.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_millis(20);
    const LONGEST: Duration = Duration::from_secs(1);

    #[test]
    fn delays_double_within_their_bounds() {
        let mut backoff = Backoff::new(FIRST, LONGEST);
        let delays: Vec<_> = (0..200).map(|_| backoff.delay()).collect();
        assert!(delays[0] >= FIRST.mul_f64(0.75) && delays[0] <= FIRST);
        assert!(delays[199] >= LONGEST.mul_f64(0.75) && delays[199] <= LONGEST);
        assert!(delays.windows(2).all(|p| p[1] >= p[0].mul_f64(0.75)));
        assert_eq!(backoff.failures(), 200);
        backoff.reset();
        assert!(backoff.delay() <= FIRST);
        let within = Duration::from_millis(1);
        assert!(backoff.delay_within(within) <= within);
    }

    #[test]
    fn the_first_failure_may_be_followed_at_once() {
        let mut backoff = Backoff::new(FIRST, LONGEST).first_at_once();
        assert_eq!(backoff.delay(), Duration::ZERO);
        assert!(backoff.delay() >= FIRST.mul_f64(0.75));
        assert_eq!(backoff.delay_after(1), Duration::ZERO);
        assert!(backoff.delay_after(3) <= FIRST * 2);
        assert!(backoff.delay_after(u32::MAX) <= LONGEST);
    }
}
