//! The reported outcome of each row, compared with the database.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use crate::http::job::id_of;
use crate::http::{Inserts, Job, Outcome};

/// Checks that a table has all rows that were confirmed, and no others.
///
/// # Errors
/// The numbers differ.
pub fn all_there(confirmed: u64, there: u64) -> anyhow::Result<()> {
    anyhow::ensure!(
        confirmed == there,
        "{confirmed} rows were confirmed, {there} are there"
    );
    Ok(())
}

/// Single inserts whose outcomes are remembered.
#[derive(Debug)]
pub struct Remembered {
    inserts: Inserts,
    /// By connection, in the order of the requests.
    seen: Mutex<Vec<Vec<Outcome>>>,
}

/// The reported outcomes and the true ones. Every field `false_..` must be 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
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
    /// For so many connections.
    pub fn new(connections: usize) -> Self {
        Self {
            inserts: Inserts::new(),
            seen: Mutex::new(vec![Vec::new(); connections]),
        }
    }

    /// Compares with the keys that are in the table.
    pub fn verify(&self, there: &HashSet<u64>) -> Verified {
        let mut sum = Verified::default();
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for (connection, outcomes) in seen.iter().enumerate() {
            for (n, outcome) in (0..).zip(outcomes) {
                sum.add(*outcome, there.contains(&id_of(connection, n)));
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
            Outcome::Refused(_) => {
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
    pub fn metrics(&self) -> Vec<(&'static str, f64)> {
        let number = crate::number::as_f64;
        vec![
            ("confirmed", number(self.confirmed)),
            ("confirmed but not there", number(self.false_confirmed)),
            ("refused", number(self.refused)),
            ("refused but there", number(self.false_refused)),
            ("said to be unknown", number(self.unknown)),
            ("of these there", number(self.unknown_there)),
            ("not answered", number(self.lost)),
        ]
    }

    /// Every confirmation and every refusal must be true.
    ///
    /// # Errors
    /// One is not.
    pub fn check(&self) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.false_confirmed == 0 && self.false_refused == 0,
            "clients got outcomes that are not true: {self:?}"
        );
        Ok(())
    }
}

impl Job for Remembered {
    fn target(&self) -> &str {
        self.inserts.target()
    }

    fn body(&self, connection: usize, n: u64, out: &mut Vec<u8>) {
        self.inserts.body(connection, n, out);
    }

    fn seen(&self, connection: usize, _n: u64, outcome: Outcome, _answer: &[u8]) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(outcomes) = seen.get_mut(connection) {
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
        for (connection, outcome) in outcomes {
            job.seen(connection, 0, outcome, b"");
        }
        let there = HashSet::from([id_of(0, 0), id_of(0, 2), id_of(1, 1)]);
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
            job.verify(&HashSet::from([id_of(0, 0), id_of(0, 1)]))
                .check()
                .is_ok()
        );
    }
}
