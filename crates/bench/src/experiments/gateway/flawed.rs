//! Rows that the database refuses among good ones, and the check that each client gets its own
//! outcome.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, ensure};

use crate::http::job::id_of;
use crate::number::as_f64;
use crate::pg::{CallOutcome, Job, Values};
use crate::reading::Reading;
use crate::servers::pg::Gate;

/// The flaw of a bad row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    Duplicate,
    Check,
}

/// Which rows are bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mix {
    pub(super) flaw: Flaw,
    pub(super) per_mille: u64,
}

/// The row that duplicates collide with.
const THERE: u64 = 1;

impl Mix {
    pub(super) fn name(self) -> String {
        let percent = as_f64(self.per_mille) / 10.0;
        match self.flaw {
            Flaw::Duplicate => format!("{percent} % duplicate keys"),
            Flaw::Check => format!("{percent} % check violations"),
        }
    }
}

/// Makes the table refuse bad rows; says how many rows it has then.
pub(super) fn prepare(gate: &Gate) -> Result<u64> {
    gate.exec("alter table readings add constraint warm check (temperature > -300)")?;
    gate.exec(&format!(
        "insert into readings values ({THERE}, 0, '2026-01-01T00:00:00Z', 0, 'there already')"
    ))?;
    Ok(1)
}

/// Readings of which some are bad.
pub(super) struct Flawed {
    mix: Mix,
    first: u64,
    wrong: AtomicU64,
}

impl Flawed {
    /// `first`: the number of each client's first row.
    pub(super) fn new(mix: Mix, first: u64) -> Self {
        let wrong = AtomicU64::new(0);
        Self { mix, first, wrong }
    }

    /// Checks that every client got its own outcome.
    pub(super) fn check(&self) -> Result<()> {
        let wrong = self.wrong.load(Ordering::Relaxed);
        ensure!(
            wrong == 0,
            "{wrong} rows of {} got another outcome than their own",
            self.mix.name()
        );
        Ok(())
    }

    /// Clients are out of step, so that bad rows do not come all at once.
    fn is_bad(&self, connection: usize, n: u64) -> bool {
        let shifted = n + connection as u64 * 37;
        match self.mix.per_mille {
            0 => false,
            share => shifted.is_multiple_of((1000 / share).max(1)),
        }
    }
}

impl Job for Flawed {
    fn values(&self, connection: usize, n: u64, out: &mut Values<'_>) {
        let id = id_of(connection, self.first + n);
        if !self.is_bad(connection, n) {
            return out.reading(Reading::new(id));
        }
        let (id, temperature) = match self.mix.flaw {
            Flaw::Duplicate => (THERE, "1"),
            Flaw::Check => (id, "-1000"),
        };
        out.add(id);
        out.add(7);
        out.add("2026-01-01T00:00:00Z");
        out.add(temperature);
        out.add("bad");
    }

    fn seen(&self, connection: usize, n: u64, outcome: CallOutcome) {
        let expected = match (self.is_bad(connection, n), self.mix.flaw) {
            (false, _) => CallOutcome::Success,
            (true, Flaw::Duplicate) => CallOutcome::Error(*b"23505"),
            (true, Flaw::Check) => CallOutcome::Error(*b"23514"),
        };
        if outcome != expected {
            self.wrong.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_a_hundred_is_bad_and_only_its_own_error_is_true() {
        let mix = Mix {
            flaw: Flaw::Check,
            per_mille: 10,
        };
        let job = Flawed::new(mix, 0);
        let bad: Vec<u64> = (0..1000).filter(|n| job.is_bad(3, *n)).collect();
        assert_eq!(bad.len(), 10);
        job.seen(3, bad[0], CallOutcome::Error(*b"23514"));
        job.seen(3, bad[0] + 1, CallOutcome::Success);
        job.check().unwrap();
        job.seen(3, bad[0], CallOutcome::Error(*b"23505"));
        let error = job.check().unwrap_err().to_string();
        assert!(error.starts_with("1 rows of 1 % check"), "{error}");
    }
}
