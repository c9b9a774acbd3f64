//! The reported outcome of each row, compared with the database.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use crate::figures::Metrics;
use crate::generator::{Call, Inserts, Job, Outcome, Style};
use crate::number::as_f64;

/// Checks that a table has all rows that were confirmed, and no others.
///
/// # Errors
/// The numbers differ.
pub(super) fn all_there(confirmed: u64, there: u64) -> anyhow::Result<()> {
    anyhow::ensure!(
        confirmed == there,
        "{confirmed} rows were confirmed, {there} are there"
    );
    Ok(())
}

/// Single inserts whose outcomes are remembered. Clones remember together.
#[derive(Clone, Debug)]
pub(super) struct Remembered {
    inserts: Inserts,
    /// By client, in the order of the calls.
    seen: Arc<Mutex<Vec<Vec<Outcome>>>>,
}

/// The reported outcomes and the true ones. Every field `false_..` must be 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Verified {
    /// Rows confirmed, all of which must be there.
    pub confirmed: u64,
    /// Of these, rows that are not there.
    pub false_confirmed: u64,
    /// Rows refused with a definite error, none of which may be there.
    pub refused: u64,
    /// Of these, rows that are there.
    pub false_refused: u64,
    /// Rows whose outcome was said to be unknown.
    pub unknown: u64,
    /// Of these, rows that are there.
    pub unknown_there: u64,
    /// Rows that were not answered, because the connection to Windrow ended.
    pub lost: u64,
}

impl Remembered {
    /// Returns the job of so many clients.
    pub(super) fn new(clients: usize) -> Self {
        Self {
            inserts: Inserts::from(Style::Http, 0),
            seen: Arc::new(Mutex::new(vec![Vec::new(); clients])),
        }
    }

    /// Returns the job of some of these clients, from the first one on.
    pub(super) fn of(&self, style: Style, first_client: usize) -> Arc<dyn Job> {
        let mut job = self.clone();
        job.inserts = Inserts {
            first_client,
            ..Inserts::from(style, 0)
        };
        Arc::new(job)
    }

    /// Compares with the keys that are in the table.
    pub(super) fn verify(&self, there: &HashSet<u64>) -> Verified {
        let mut sum = Verified::default();
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for (client, outcomes) in seen.iter().enumerate() {
            for (n, outcome) in (0..).zip(outcomes) {
                sum.add(*outcome, there.contains(&Call::new(client, n).id()));
            }
        }
        sum
    }
}

impl Verified {
    fn add(&mut self, outcome: Outcome, is_there: bool) {
        match outcome {
            Outcome::Success => {
                self.confirmed += 1;
                self.false_confirmed += u64::from(!is_there);
            }
            Outcome::Refused(_) | Outcome::Failed(_) => {
                self.refused += 1;
                self.false_refused += u64::from(is_there);
            }
            Outcome::Unknown => {
                self.unknown += 1;
                self.unknown_there += u64::from(is_there);
            }
            Outcome::Lost => self.lost += 1,
        }
    }

    /// The numbers for a report.
    pub(super) fn metrics(&self) -> Metrics {
        [
            ("confirmed", self.confirmed),
            ("confirmed but not there", self.false_confirmed),
            ("refused", self.refused),
            ("refused but there", self.false_refused),
            ("said to be unknown", self.unknown),
            ("of these there", self.unknown_there),
            ("not answered", self.lost),
        ]
        .into_iter()
        .fold(Metrics::new(), |all, (name, rows)| {
            all.with(name, as_f64(rows))
        })
    }

    /// Every confirmation and every refusal must be true.
    ///
    /// # Errors
    /// One is not.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.false_confirmed == 0 && self.false_refused == 0,
            "clients got outcomes that are not true: {self:?}"
        );
        Ok(())
    }
}

impl Job for Remembered {
    fn prepare(&self, out: &mut Vec<u8>) {
        self.inserts.prepare(out);
    }

    fn write(&self, call: Call<'_>, out: &mut Vec<u8>) {
        self.inserts.write(call, out);
    }

    fn seen(&self, call: Call<'_>, outcome: Outcome, _: &[u8]) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(outcomes) = seen.get_mut(self.inserts.first_client + call.client) {
            outcomes.push(outcome);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_false_word_is_found() {
        let job = Remembered::new(2);
        let outcomes = [
            (0, Outcome::Success),
            (0, Outcome::Success),
            (0, Outcome::Unknown),
            (1, Outcome::Refused(503)),
            (1, Outcome::Refused(409)),
            (1, Outcome::Lost),
        ];
        for (client, outcome) in outcomes {
            job.seen(Call::new(client, 0), outcome, b"");
        }
        let id = |client, n| Call::new(client, n).id();
        let there = HashSet::from([id(0, 0), id(0, 2), id(1, 1)]);
        let verified = job.verify(&there);
        let expected = Verified {
            confirmed: 2,
            false_confirmed: 1,
            refused: 2,
            false_refused: 1,
            unknown: 1,
            unknown_there: 1,
            lost: 1,
        };
        assert_eq!(verified, expected);
        assert!(verified.check().is_err());
        assert!(
            job.verify(&HashSet::from([id(0, 0), id(0, 1)]))
                .check()
                .is_ok()
        );
    }
}
