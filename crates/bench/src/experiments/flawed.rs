//! Rows that the database refuses among good ones, and the check that each client gets its own
//! outcome.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, ensure};

use crate::generator::{Call, Inserts, Job, Outcome, Style, http};
use crate::number::as_f64;
use crate::reading::Reading;
use crate::servers::{Kind, Table};

/// The flaw of a bad row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    Duplicate,
    Check,
    Type,
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
            Flaw::Type => format!("{percent} % of a wrong type"),
        }
    }
}

/// Makes the empty table refuse bad rows: by a check, and on SQLite by strict types. Returns the
/// number of its rows.
pub(super) fn prepare(table: &Table) -> Result<u64> {
    if table.kind == Kind::Sqlite {
        table.query(
            "drop table readings; create table readings (id integer primary key, device integer not null, \
             at text not null, temperature real constraint warm check (temperature > -300), note text) strict",
        )?;
    } else {
        table.query("alter table readings add constraint warm check (temperature > -300)")?;
    }
    table.query(&format!(
        "insert into readings values ({THERE}, 0, '2026-01-01 00:00:00', 0, 'there already')"
    ))?;
    Ok(1)
}

/// Readings of which some are bad.
#[derive(Clone)]
pub(super) struct Flawed {
    pub(super) mix: Mix,
    pub(super) inserts: Inserts,
    wrong: Arc<AtomicU64>,
}

impl Flawed {
    pub(super) fn new(mix: Mix, style: Style) -> Self {
        Self {
            mix,
            inserts: Inserts::from(style, 0),
            wrong: Arc::default(),
        }
    }

    /// Returns the same job with rows from a number on. Both count wrong outcomes together.
    pub(super) fn from(&self, first: u64) -> Arc<dyn Job> {
        let mut job = self.clone();
        job.inserts.first = first;
        Arc::new(job)
    }

    /// Checks that every client got its own outcome.
    pub(super) fn check(&self) -> Result<()> {
        let wrong = self.wrong.load(Ordering::Relaxed);
        let mix = self.mix.name();
        ensure!(
            wrong == 0,
            "{wrong} rows of {mix} got another outcome than their own"
        );
        Ok(())
    }

    /// Clients are out of step, so that bad rows do not come all at once.
    fn is_bad(&self, call: Call<'_>) -> bool {
        let shifted = call.n + call.client as u64 * 37;
        match self.mix.per_mille {
            0 => false,
            share => shifted.is_multiple_of((1000 / share).max(1)),
        }
    }

    fn is_true(&self, call: Call<'_>, outcome: Outcome, answer: &[u8]) -> bool {
        if !self.is_bad(call) {
            return outcome == Outcome::Success;
        }
        let says = |text: &str| memchr::memmem::find(answer, text.as_bytes()).is_some();
        match (self.mix.flaw, outcome) {
            (Flaw::Duplicate, Outcome::Refused(409)) => says("\"23505\""),
            (Flaw::Check, Outcome::Refused(422)) => says("\"23514\"") && says("warm"),
            (Flaw::Type, Outcome::Refused(422)) => says("\"22"),
            (Flaw::Duplicate, Outcome::Failed(code)) => {
                code == *b"23505" || code == *b"23000" && says("Duplicate entry")
            }
            (Flaw::Check, Outcome::Failed(code)) => {
                code == *b"23514" || code == *b"23000" && says("warm")
            }
            _ => false,
        }
    }
}

impl Job for Flawed {
    fn prepare(&self, out: &mut Vec<u8>) {
        self.inserts.prepare(out);
    }

    fn write(&self, call: Call<'_>, out: &mut Vec<u8>) {
        let mut reading = self.inserts.reading(call);
        if self.is_bad(call) {
            reading.note = "bad";
            match self.mix.flaw {
                Flaw::Duplicate => reading.id = THERE,
                Flaw::Check => reading.temperature = -1000.0,
                Flaw::Type => return wrong_type(&reading, out),
            }
        }
        self.inserts.style.write("readings", &reading, out);
    }

    fn seen(&self, call: Call<'_>, outcome: Outcome, answer: &[u8]) {
        let is_wrong = !self.is_true(call, outcome, answer);
        self.wrong.fetch_add(is_wrong.into(), Ordering::Relaxed);
    }
}

/// Appends a request for a row whose device is a text.
fn wrong_type(reading: &Reading<'_>, out: &mut Vec<u8>) {
    http::request(out, http::ROWS, "application/json", "", |out| {
        let mut json = Vec::new();
        reading.json(&mut json);
        let text = String::from_utf8_lossy(&json);
        let device = format!("\"device\":{}", reading.device);
        out.extend_from_slice(text.replace(&device, "\"device\":\"seven\"").as_bytes());
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::pg::Mode;
    use crate::servers::Store;

    #[test]
    fn every_database_refuses_what_is_flawed() {
        for kind in [Kind::Sqlite, Kind::Postgres, Kind::MariaDb] {
            let store = Store::start(kind).unwrap();
            let table = store.table().unwrap();
            assert_eq!(prepare(&table).unwrap(), 1, "{kind:?}");
            assert_eq!(table.count().unwrap(), 1, "{kind:?}");
            for (id, device, temperature) in [(THERE, "7", 1), (2, "7", -1000), (2, "'seven'", 1)] {
                let row = format!("{id}, {device}, '2026-01-01 00:00:00', {temperature}, 'bad'");
                let refused = table.query(&format!("insert into readings values ({row})"));
                assert!(refused.is_err(), "{kind:?}: {row}");
            }
        }
    }

    #[test]
    fn one_in_a_hundred_is_bad_and_only_its_own_error_is_true() {
        let mix = Mix {
            flaw: Flaw::Check,
            per_mille: 10,
        };
        let job = Flawed::new(mix, Style::Pg(Mode::Prepared));
        let bad: Vec<u64> = (0..1000).filter(|n| job.is_bad(Call::new(3, *n))).collect();
        assert_eq!(bad.len(), 10);
        let seen = |n, outcome| job.seen(Call::new(3, n), outcome, b"");
        seen(bad[0], Outcome::Failed(*b"23514"));
        seen(bad[0] + 1, Outcome::Success);
        job.check().unwrap();
        seen(bad[0], Outcome::Failed(*b"23505"));
        let error = job.check().unwrap_err().to_string();
        assert!(error.starts_with("1 rows of 1 % check"), "{error}");
    }

    #[test]
    fn over_http_the_text_of_an_error_counts_too() {
        let mix = Mix {
            flaw: Flaw::Check,
            per_mille: 1000,
        };
        let job = Flawed::new(mix, Style::Http);
        let own = br#"{"error":{"code":"23514","constraint":"warm"}}"#;
        let others = br#"{"error":{"code":"23505"}}"#;
        let is_true = |outcome, answer: &[u8]| job.is_true(Call::new(0, 0), outcome, answer);
        assert!(is_true(Outcome::Refused(422), own));
        assert!(!is_true(Outcome::Refused(422), others));
        assert!(!is_true(Outcome::Success, b""));
        let mut out = Vec::new();
        let mix = Mix {
            flaw: Flaw::Type,
            ..mix
        };
        Flawed::new(mix, Style::Http).write(Call::new(0, 0), &mut out);
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains(r#""device":"seven","#), "{text}");
    }
}
