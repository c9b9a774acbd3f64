//! When what was rolled back runs again. Pure.

use std::time::Duration;

use foldhash::fast::RandomState;
use std::hash::BuildHasher;

/// How often a unit is under way before its fault is told.
pub(crate) const MAX_ATTEMPTS: u32 = 10;

/// How long a unit rests that has lost so many times to others: not at all after the first time,
/// for they have finished.
pub(crate) fn rest(attempts: u32, jitter: &mut Jitter) -> Option<Duration> {
    let doublings = attempts.checked_sub(2)?.min(6);
    Some(jitter.spread(Duration::from_millis(2 << doublings)))
}

/// The pauses between attempts to reach a database: 20 ms, doubling up to a second, jittered.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
}

impl Backoff {
    const FIRST: Duration = Duration::from_millis(20);
    const LONGEST: Duration = Duration::from_secs(1);

    pub(crate) fn new() -> Self {
        Self { next: Self::FIRST }
    }

    pub(crate) fn pause(&mut self, jitter: &mut Jitter) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(Self::LONGEST);
        jitter.spread(pause)
    }
}

/// Spreads pauses, so that those who collided once do not meet again.
#[derive(Debug)]
pub(crate) struct Jitter {
    seed: RandomState,
    drawn: u64,
}

impl Jitter {
    pub(crate) fn new() -> Self {
        Self {
            seed: RandomState::default(),
            drawn: 0,
        }
    }

    /// Between three quarters and the whole of a pause.
    fn spread(&mut self, pause: Duration) -> Duration {
        self.drawn += 1;
        let dice = self.seed.hash_one(self.drawn) % 1024;
        let cut = pause.as_nanos() as f64 * 0.25 * dice as f64 / 1024.0;
        pause.saturating_sub(Duration::from_secs_f64(cut / 1e9))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_within_their_bounds() {
        let (mut backoff, mut jitter) = (Backoff::new(), Jitter::new());
        let pauses: Vec<_> = (0..9).map(|_| backoff.pause(&mut jitter)).collect();
        assert!(pauses[0] >= Duration::from_millis(15) && pauses[0] <= Duration::from_millis(20));
        assert!(pauses[8] >= Duration::from_millis(750) && pauses[8] <= Duration::from_secs(1));
        assert!(pauses.windows(2).all(|p| p[1] >= p[0].mul_f64(0.75)));
    }

    #[test]
    fn the_first_conflict_runs_again_at_once() {
        let mut jitter = Jitter::new();
        assert_eq!(rest(1, &mut jitter), None);
        assert!(rest(2, &mut jitter).unwrap() <= Duration::from_millis(2));
        assert!(rest(MAX_ATTEMPTS, &mut jitter).unwrap() <= Duration::from_millis(128));
    }
}
