//! Rows that the database refuses among many good ones: does every client get its own outcome, and
//! what does it cost?

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::flawed::{self, Flaw, Flawed, Mix};
use super::measure::{Bed, Offer};
use super::outcomes;
use crate::figures::{LIMIT, Run};
use crate::generator::{Style, limit};
use crate::servers::{Kind, Store};

/// Settings of the experiment.
#[derive(Clone, Debug, clap::Args)]
pub struct Poison {
    /// The database.
    #[arg(long, value_enum, default_value = "postgres")]
    pub to: Kind,
    /// Clients, each with one request under way.
    #[arg(long, default_value_t = 64)]
    pub connections: usize,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 8)]
    pub seconds: u64,
    /// Alternating repetitions.
    #[arg(long, default_value_t = 3)]
    pub rounds: u32,
}

/// The mixes by their names.
const MIXES: [(&str, Flaw, u64); 5] = [
    (CLEAN, Flaw::Duplicate, 0),
    ("1 % duplicate keys", Flaw::Duplicate, 10),
    ("1 % check violations", Flaw::Check, 10),
    ("1 % of a wrong type", Flaw::Type, 10),
    ("1 check violation in 1,000", Flaw::Check, 1),
];

const CLEAN: &str = "clean";

impl Poison {
    /// Measures, prints and stores.
    ///
    /// # Errors
    /// A program cannot be started, or a client gets an outcome that is not true.
    pub fn run(&self, root: &Path) -> Result<()> {
        let to = self.to.as_str();
        ensure!(
            self.to != Kind::CrateDb,
            "bad rows are not measured on CrateDB"
        );
        let mut run = Run::new(
            format!("poison-{to}"),
            format!("Bad rows among good ones into {to}"),
        );
        let store = Store::start(self.to)?;
        store.report_version(&mut run)?;
        run.rounds(self.rounds, &MIXES, |run, round, mix| {
            self.measure(&store, run, round, mix)
        })?;
        let clean = run.median(CLEAN, "rows/s")?;
        for (arm, ..) in MIXES.iter().filter(|(arm, ..)| *arm != CLEAN) {
            let share = run.median(arm, "rows/s")? / clean;
            run.remark(format!("{arm}: {share:.2} of the clean rate"));
        }
        run.remark("every good row was confirmed and is there; every bad one got its own error");
        run.store(root)?;
        Ok(())
    }

    fn measure(
        &self,
        store: &Store,
        run: &mut Run,
        round: u32,
        (arm, flaw, per_mille): (&str, Flaw, u64),
    ) -> Result<()> {
        let table = store.table()?;
        let there = flawed::prepare(&table)?;
        let bed = Bed::before(table, &[])?;
        let job = Flawed::new(Mix { flaw, per_mille }, Style::Http);
        let offer = Offer::closed(arm, self.connections, Duration::from_secs(self.seconds));
        let measured = offer.measure(&bed.target(), bed.meter(store), |first| job.from(first))?;
        let limit = limit::of_rows(self.connections, Style::Http)?;
        run.add_all(round, arm, &measured.metrics.clone().with(LIMIT, limit));
        job.check()?;
        outcomes::all_there(there + measured.written(), bed.table.count()?)
    }
}
