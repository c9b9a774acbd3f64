//! Waits after a landing for the clients that were just answered.
//!
//! If each client sends its next write when it has its answer, one flight at a time splits the
//! clients into two groups that take turns: each batch is half of what it could be, and if a commit
//! is expensive, half of the commits are wasted. Waiting a moment joins the two groups.
//! [`super::Pace`] finds out whether that pays; this module only decides how long to wait: until as
//! many clients are back as came back after earlier landings, and at most half the time of a
//! flight.
//!
//! If clients write independently of their answers (an open load), half as many as were answered
//! arrive in that time, whatever the rate: then waiting is not even tried. Beside other flights the
//! time is shorter, because their clients arrive in it too. On an idle lane nothing is waited for:
//! the first client that arrives is all that are expected.

use std::collections::VecDeque;
use std::time::Duration;

/// The clients that came back, and those that are expected. Pure: times are since the start of the
/// lane.
#[derive(Clone, Debug, Default)]
pub struct Gather {
    /// Averages over landings: units answered, and how many of their clients were back in time. A
    /// flight that takes much longer than others does not distort their ratio.
    usually_answered: f64,
    usually_back: f64,
    /// The average time of a flight, in seconds.
    usually_takes: f64,
    /// The last landing.
    last: Answered,
    /// Landings whose clients may still come back, the oldest first. A client that arrives is
    /// counted for the oldest one, because flights may land together.
    open: VecDeque<Answered>,
    /// The number of landings so far.
    seen: u32,
}

/// A landing.
#[derive(Clone, Copy, Debug, Default)]
struct Answered {
    /// Units that the landing answered.
    units: usize,
    /// Units that have arrived since.
    back: usize,
    /// The time until which arriving units count as coming back.
    until: Duration,
}

/// The longest wait: a client that is not back by then is not coming back at once.
const LONGEST: Duration = Duration::from_millis(5);

/// The weight of the newest sample of the share.
const WEIGHT: f64 = 0.1;

/// The share of clients back in time from which on a load counts as one that waits for its answers.
const MOST_ARE_BACK: f64 = 0.85;

/// The number of landings before the share is believed.
const EVIDENCE: u32 = 16;

/// The part of a client that rounding may take away.
const ROUNDING: f64 = 0.05;

impl Gather {
    /// Counts a flight that has landed: its time, the units that it answered, and how many were
    /// under way. Returns true if the clients of earlier landings mostly came back at once.
    pub fn landed(&mut self, at: Duration, took: Duration, units: usize, flying: usize) -> bool {
        let flying = u32::try_from(flying).unwrap_or(u32::MAX / 4);
        while let Some(answered) = self.open.front().copied()
            && answered.until < at
        {
            self.open.pop_front();
            self.learn(answered);
        }
        let takes = took.as_secs_f64();
        self.usually_takes += match self.usually_takes {
            0.0 => takes,
            usually => (takes - usually) * WEIGHT,
        };
        // Half of the time with one flight. Beside W flights so little that two thirds of an open
        // load arrive in it.
        let part = took.min(Duration::from_secs_f64(self.usually_takes)) * 2 / (3 * flying + 1);
        self.last = Answered {
            units,
            back: 0,
            until: at + part.min(LONGEST),
        };
        self.open.push_back(self.last);
        self.seen = self.seen.saturating_add(1);
        self.seen > EVIDENCE && self.share() >= MOST_ARE_BACK
    }

    /// Notes that a flight has ended in a way that says nothing about speed: no clients are waited
    /// for.
    pub fn disturbed(&mut self) {
        self.last = Answered::default();
        self.open.clear();
    }

    /// Counts units that have arrived.
    pub fn arrived(&mut self, at: Duration, units: usize) {
        if at <= self.last.until {
            self.last.back += units;
        }
        let mut left = units;
        for answered in self.open.iter_mut().filter(|answered| at <= answered.until) {
            let some = left.min(answered.units - answered.back);
            answered.back += some;
            left -= some;
        }
    }

    fn learn(&mut self, answered: Answered) {
        self.usually_back += (answered.back as f64 - self.usually_back) * WEIGHT;
        self.usually_answered += (answered.units as f64 - self.usually_answered) * WEIGHT;
    }

    /// True if clients are expected to come back after the last landing.
    pub fn expects(&self) -> bool {
        self.expected() > 0
    }

    /// Returns the time until which queued units wait for others; `None` if they can leave.
    pub fn holds(&self, now: Duration) -> Option<Duration> {
        let Answered { back, until, .. } = self.last;
        (now < until && back < self.expected()).then_some(until)
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a number of units"
    )]
    fn expected(&self) -> usize {
        (self.share() * self.last.units as f64 + ROUNDING) as usize
    }

    /// Returns the share of answered clients that are back in time.
    fn share(&self) -> f64 {
        if self.usually_answered > 0.0 {
            self.usually_back / self.usually_answered
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn waits_for_those_who_always_come_back_and_not_longer_than_half_a_flight() {
        let mut gather = Gather::default();
        let mut at = Duration::ZERO;
        let mut back = false;
        for _ in 0..30 {
            at += 2 * MS;
            back = gather.landed(at, 2 * MS, 8, 1);
            assert!(gather.holds(at).is_none_or(|until| until <= at + MS));
            gather.arrived(at + MS / 10, 8);
            assert_eq!(gather.holds(at + MS / 10), None);
        }
        assert!(back);
        at += 2 * MS;
        gather.landed(at, 2 * MS, 8, 1);
        gather.arrived(at + MS / 10, 7);
        assert!(gather.holds(at + MS / 2).is_some());
        assert_eq!(gather.holds(at + MS), None);
        // Who comes later is not one who came back at once.
        gather.arrived(at + MS * 3 / 2, 1);
        assert_eq!(gather.last.back, 7);
        gather.disturbed();
        assert_eq!((gather.holds(at), gather.expects()), (None, false));
    }

    #[test]
    fn nobody_is_waited_for_where_few_come_back() {
        let mut gather = Gather::default();
        for n in 0..100 {
            let at = n * 2 * MS;
            assert!(!gather.landed(at, 2 * MS, 10, 1));
            // An open load: five while half a flight passes.
            for each in 0..10 {
                gather.arrived(at + MS / 5 * each, 1);
            }
        }
    }
}
