//! A portion without the rows that are not taken.

use windrow_core::{Claim, Fault, LoadFault, Loaded, Rows, Sifted};

use super::loader::{MysqlLoader, odd, of_mark, of_trouble, send};
use super::marks;
use super::sieve::Sieve;
use super::told::{self, MOST_TOLD, Verdict};

/// How often a portion is sent, each time without the rows that were bent the time before. What
/// else was refused is tried again: a row that was bent may have been in its way.
const TRIES: usize = 3;

/// Marks that are written by one statement: far below the smallest packet that a server can be told
/// to take.
const MARKS: usize = 1000;

impl MysqlLoader {
    /// Writes what can be written, and its marks; commits nothing.
    pub(super) async fn write_sifted(
        &mut self,
        rows: &Rows,
        claim: Option<&Claim<'_>>,
    ) -> Result<Sifted, LoadFault> {
        let mut sieve = Sieve::new(rows.len());
        let loaded = if rows.is_empty() {
            self.open().await?;
            Loaded::default()
        } else {
            self.probe(rows, &mut sieve).await?;
            self.sieve(rows, &mut sieve).await?
        };
        let left = sieve.left();
        if let Some(claim) = claim {
            for spans in claim.spans(&left).chunks(MARKS) {
                let sql = marks::insert(&claim.mark.load, spans);
                self.line.say(&sql).await.map_err(of_mark)?;
            }
        }
        Ok(Sifted { loaded, left })
    }

    /// Leaves out the rows whose values their columns cannot hold, as far as that can be tried out.
    async fn probe(&mut self, rows: &Rows, sieve: &mut Sieve) -> Result<(), LoadFault> {
        let ready = self.probe.ready(&mut self.line, &self.load).await;
        let Some(fill) = ready.map_err(of_trouble)? else {
            return Ok(());
        };
        let filled = send(&mut self.line, &self.load, fill, rows, Some(sieve)).await;
        let found = match filled {
            Ok((_, warnings)) => self.told(warnings, sieve, false).await.map(Some),
            // Whatever is wrong with the table, the rows may be right.
            Err(LoadFault::Refused(_) | LoadFault::Hopeless(_)) => Ok(None),
            Err(fault) => Err(fault),
        };
        let useful = !matches!(found, Ok(None));
        let emptied = self.probe.empty(&mut self.line, useful).await;
        let found = found?;
        emptied.map_err(of_trouble)?;
        if let Some(verdict) = found {
            leave(sieve, &verdict.spoiled);
        }
        Ok(())
    }

    /// Writes the rows that the sieve lets through, until none of them is bent.
    async fn sieve(&mut self, rows: &Rows, sieve: &mut Sieve) -> Result<Loaded, LoadFault> {
        for _ in 0..TRIES {
            self.open().await?;
            let load = &self.load;
            let (written, warnings) =
                send(&mut self.line, load, &load.sql, rows, Some(sieve)).await?;
            let ignores = load.ignores;
            let verdict = self.told(warnings, sieve, ignores).await?;
            leave(sieve, &verdict.spoiled);
            if verdict.bent == 0 {
                leave(sieve, &verdict.skipped);
                let ignored = verdict.ignored;
                let sent = sieve.sent() as u64;
                let skipped = verdict.skipped.len() + verdict.spoiled.len();
                return match written + ignored + skipped as u64 == sent {
                    true => Ok(Loaded { written, ignored }),
                    false => Err(LoadFault::Refused(odd(sent, written))),
                };
            }
            self.line.say("ROLLBACK").await.map_err(of_trouble)?;
        }
        Err(LoadFault::Refused(Fault::internal(format!(
            "LOAD DATA found other values that do not fit each of {TRIES} times"
        ))))
    }

    /// What so many warnings of the last statement mean.
    async fn told(
        &mut self,
        warnings: u64,
        sieve: &Sieve,
        ignores: bool,
    ) -> Result<Verdict, LoadFault> {
        if warnings == 0 {
            return Ok(Verdict::default());
        }
        if warnings > MOST_TOLD {
            let message =
                format!("LOAD DATA gave {warnings} warnings; {MOST_TOLD} are read at most");
            return Err(LoadFault::Refused(Fault::internal(message)));
        }
        let numbering = self.probe.numbering();
        let told = told::read(&mut self.line, warnings).await;
        let told = told.map_err(of_trouble)?;
        match told.and_then(|told| told::judge(&told, sieve, numbering, ignores)) {
            Some(verdict) => Ok(verdict),
            None => {
                let sent = sieve.sent() as u64;
                Err(LoadFault::Refused(self.first_warning(sent, sent).await?))
            }
        }
    }
}

fn leave(sieve: &mut Sieve, places: &[usize]) {
    for place in places {
        sieve.leave(*place);
    }
}
