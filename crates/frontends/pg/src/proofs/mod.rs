//! Proofs that relayed statements leave nothing behind on their connection that affects other
//! sessions.
//!
//! | module | what it does |
//! | --- | --- |
//! | `catalog` | queries of the catalog about the names in a text |
//! | `verdict` | the verdict on a statement |
//! | here | kept answers, and their expiry |
//!
//! A statement runs before it is judged, and its session keeps the connection until then. The
//! findings about its names are kept while the catalog is unchanged: DDL through this gateway is
//! noticed at once, any other by a stamp of the catalog, which is read again at least every
//! [`MAX_STAMP_AGE`] while answers are used. If an answer has changed meanwhile, all connections
//! that may have run the statement are retired.

mod catalog;
mod verdict;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use windrow_core::Name;
use windrow_pgwire::wire::{Broken, Wire};
use windrow_proof::Trusted;
use windrow_sql::Names;

pub(crate) use catalog::Asking;
pub(crate) use verdict::{Scope, Verdict, of_text};

/// The age up to which the catalog's stamp is trusted. After half of it, one session reads it
/// again, while the others still trust the last one.
const MAX_STAMP_AGE: Duration = Duration::from_secs(2);

/// The most answers kept for a database.
const MAX_VERDICTS: usize = 4_096;

/// The verdicts on statements, by database.
#[derive(Debug, Default)]
pub(crate) struct Proofs(Mutex<HashMap<Name, DatabaseVerdicts>>);

#[derive(Debug, Default)]
struct DatabaseVerdicts {
    /// A number that grows with each change of the catalog that is noticed.
    epoch: u64,
    /// The number of statements under way that change the catalog: meanwhile no kept answer counts.
    changing: usize,
    /// The catalog's stamp, and when it was last read.
    stamp: Option<(Box<str>, Instant)>,
    /// True while a session reads the stamp again.
    claimed: bool,
    answers: HashMap<Question, KeptVerdict, foldhash::fast::RandomState>,
}

type Question = (Arc<Names>, Scope);

#[derive(Debug)]
struct KeptVerdict {
    epoch: u64,
    verdict: Verdict,
}

/// An answer of [`Proofs::ask`].
#[derive(Debug)]
pub(crate) struct Judgement {
    pub(crate) verdict: Verdict,
    /// True if the catalog was asked just now, because nothing was known about the statement.
    pub(crate) is_new: bool,
    /// True if other sessions have relied on another verdict until now.
    pub(crate) has_changed: bool,
}

/// A change of the catalog that is under way, until this is dropped.
#[derive(Debug)]
pub(crate) struct CatalogChange {
    proofs: Arc<Proofs>,
    database: Name,
}

impl Proofs {
    /// Returns the verdict on names, if it is known without asking.
    pub(crate) fn known(
        &self,
        database: &Name,
        names: &Arc<Names>,
        scope: Scope,
    ) -> Option<Verdict> {
        let mut all = self.0.lock();
        let known = all.get_mut(database)?;
        let age = known.age().filter(|age| *age < MAX_STAMP_AGE)?;
        let verdict = known.verdict(&(Arc::clone(names), scope))?;
        let looks = age >= MAX_STAMP_AGE / 2 && !std::mem::replace(&mut known.claimed, true);
        (!looks).then_some(verdict)
    }

    /// Asks the catalog over a connection to the database. `trusted`: functions that the operator
    /// trusts. Cancel safe, except that the connection is lost.
    ///
    /// # Errors
    /// The connection broke. What cannot be asked counts as unproven.
    pub(crate) async fn ask(
        &self,
        wire: &mut Wire,
        database: &Name,
        (names, scope): (&Arc<Names>, Scope),
        asking: Asking<'_>,
        trusted: &Trusted,
    ) -> Result<Judgement, Broken> {
        self.look(wire, database, asking).await?;
        let question = (Arc::clone(names), scope);
        let epoch = {
            let mut all = self.0.lock();
            let known = all.entry(Name::clone(database)).or_default();
            if let Some(verdict) = known.verdict(&question) {
                return Ok(Judgement {
                    verdict,
                    is_new: false,
                    has_changed: false,
                });
            }
            known.epoch
        };
        let verdict = catalog::ask(wire, (names, scope), asking, trusted).await?;
        let mut all = self.0.lock();
        let known = all.entry(Name::clone(database)).or_default();
        if known.answers.len() >= MAX_VERDICTS {
            known.answers.clear();
        }
        let answer = KeptVerdict {
            epoch,
            verdict: verdict.clone(),
        };
        let before = known.answers.insert(question, answer);
        let has_changed = before.is_some_and(|before| !before.verdict.is_like(&verdict));
        Ok(Judgement {
            verdict,
            is_new: true,
            has_changed,
        })
    }

    /// Checks whether the catalog has changed, unless that was done a moment ago.
    async fn look(
        &self,
        wire: &mut Wire,
        database: &Name,
        asking: Asking<'_>,
    ) -> Result<(), Broken> {
        let asked = Instant::now();
        {
            let mut all = self.0.lock();
            let known = all.entry(Name::clone(database)).or_default();
            if known.age().is_some_and(|age| age < MAX_STAMP_AGE / 2) {
                return Ok(());
            }
        }
        let stamp = catalog::stamp(wire, asking).await?;
        let mut all = self.0.lock();
        let known = all.entry(Name::clone(database)).or_default();
        known.claimed = false;
        let is_same = match (&stamp, &known.stamp) {
            (Some(stamp), Some((before, _))) => stamp == before,
            _ => false,
        };
        known.epoch += u64::from(!is_same);
        known.stamp = stamp.map(|stamp| (stamp, asked));
        Ok(())
    }

    /// Returns the newest known epoch of the catalog.
    pub(crate) fn epoch(&self, database: &Name) -> u64 {
        self.0.lock().get(database).map_or(0, |known| known.epoch)
    }

    /// Notes that the catalog is being changed, until the result is dropped.
    pub(crate) fn changing(self: &Arc<Self>, database: &Name) -> CatalogChange {
        let mut all = self.0.lock();
        all.entry(Name::clone(database)).or_default().changing += 1;
        CatalogChange {
            proofs: Arc::clone(self),
            database: Name::clone(database),
        }
    }
}

impl DatabaseVerdicts {
    /// Returns the time since the catalog's stamp was read.
    fn age(&self) -> Option<Duration> {
        let (_, asked) = self.stamp.as_ref()?;
        Some(asked.elapsed())
    }

    fn verdict(&self, question: &Question) -> Option<Verdict> {
        let answer = self.answers.get(question)?;
        let counts = self.changing == 0 && answer.epoch == self.epoch;
        counts.then(|| answer.verdict.clone())
    }
}

impl Drop for CatalogChange {
    fn drop(&mut self) {
        let mut all = self.proofs.0.lock();
        let known = all.entry(Name::clone(&self.database)).or_default();
        known.changing = known.changing.saturating_sub(1);
        known.epoch += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean() -> Verdict {
        Verdict::Clean {
            sequences: Arc::default(),
            runs_hidden: false,
        }
    }

    fn keep(proofs: &Proofs, database: &Name, names: &Arc<Names>, verdict: Verdict) {
        let mut all = proofs.0.lock();
        let known = all.entry(Name::clone(database)).or_default();
        known.stamp = Some(("1".into(), Instant::now()));
        let epoch = known.epoch;
        let answer = KeptVerdict { epoch, verdict };
        known
            .answers
            .insert((Arc::clone(names), Scope::Any), answer);
    }

    #[tokio::test(start_paused = true)]
    async fn answers_are_kept_for_a_moment_and_one_session_renews_them() {
        let (proofs, database) = (Proofs::default(), Name::from("d"));
        let names = Arc::new(windrow_sql::names("select * from t").unwrap());
        assert_eq!(proofs.known(&database, &names, Scope::Any), None);
        keep(&proofs, &database, &names, clean());
        assert_eq!(proofs.known(&database, &names, Scope::Any), Some(clean()));
        tokio::time::advance(MAX_STAMP_AGE * 3 / 4).await;
        assert_eq!(proofs.known(&database, &names, Scope::Any), None);
        assert_eq!(proofs.known(&database, &names, Scope::Any), Some(clean()));
        tokio::time::advance(MAX_STAMP_AGE / 4).await;
        assert_eq!(proofs.known(&database, &names, Scope::Any), None);
    }

    #[test]
    fn a_change_of_the_catalog_ends_the_time_of_all_answers() {
        let (proofs, database) = (Arc::new(Proofs::default()), Name::from("d"));
        let names = Arc::new(windrow_sql::names("select * from t").unwrap());
        keep(&proofs, &database, &names, clean());
        let changing = proofs.changing(&database);
        assert_eq!(proofs.known(&database, &names, Scope::Any), None);
        drop(changing);
        assert_eq!(proofs.known(&database, &names, Scope::Any), None);
        keep(&proofs, &database, &names, clean());
        assert_eq!(proofs.known(&database, &names, Scope::Any), Some(clean()));
    }
}
