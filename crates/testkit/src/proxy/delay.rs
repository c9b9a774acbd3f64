//! The time that bytes are under way.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// A fixed delay, and on top of it a random one from a seed. Order is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    base: Duration,
    jitter: Duration,
    seed: u64,
}

impl Delay {
    /// No delay.
    pub fn none() -> Self {
        Self::of(Duration::ZERO)
    }

    /// Makes a fixed delay.
    pub fn of(base: Duration) -> Self {
        Self {
            base,
            jitter: Duration::ZERO,
            seed: 0,
        }
    }

    /// Up to `jitter` more, evenly distributed, the same sequence for the same seed.
    #[must_use]
    pub fn jitter(mut self, jitter: Duration, seed: u64) -> Self {
        self.jitter = jitter;
        self.seed = seed;
        self
    }

    /// Returns the delays of one connection.
    pub(crate) fn draws(self, connection: u64) -> Draws {
        Draws {
            delay: self,
            rng: StdRng::seed_from_u64(self.seed ^ connection.rotate_left(32)),
        }
    }
}

/// The delays of the chunks of one direction of one connection.
pub(crate) struct Draws {
    delay: Delay,
    rng: StdRng,
}

impl Draws {
    pub(crate) fn next(&mut self) -> Duration {
        self.delay.base + self.delay.jitter.mul_f64(self.rng.random::<f64>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_delays_within_bounds() {
        let delay = Delay::of(Duration::from_millis(10)).jitter(Duration::from_millis(5), 7);
        let draw = |connection| {
            let mut draws = delay.draws(connection);
            (0..50).map(|_| draws.next()).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        let bounds = Duration::from_millis(10)..=Duration::from_millis(15);
        assert!(draw(1).iter().all(|d| bounds.contains(d)));
    }
}
