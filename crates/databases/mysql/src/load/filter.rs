//! Writes a portion without the rows that the server does not accept.

use windrow_core::{Fault, Filtered, LoadFault, Loaded, Rows};

use super::connection::{MysqlLoader, send};
use super::fault::miscounted;
use super::plan::Way;
use super::selection::Selection;
use super::verdict::{Verdict, judge};
use super::warnings;
use super::warnings::MAX_WARNINGS_READ;

/// The number of attempts to send a portion, each without the rows whose values were changed in the
/// attempt before. Other refused rows are sent again, because such a row may have been the reason.
const MAX_TRIES: usize = 3;

impl MysqlLoader {
    /// Writes the rows that can be written. Does not commit.
    pub(super) async fn write_filtered(&mut self, rows: &Rows) -> Result<Filtered, LoadFault> {
        if self.load.way == Way::Insert {
            let why = "only LOAD DATA leaves out the rows that are not taken";
            return Err(LoadFault::Refused(Fault::internal(why)));
        }
        let mut selection = Selection::new(rows.len());
        let loaded = if rows.is_empty() {
            self.open().await?;
            Loaded::default()
        } else {
            self.probe(rows, &mut selection).await?;
            self.write_selected(rows, &mut selection).await?
        };
        let left = selection.left();
        Ok(Filtered { loaded, left })
    }

    /// Leaves out the rows whose values their columns cannot hold, as far as the temporary table
    /// shows it.
    async fn probe(&mut self, rows: &Rows, selection: &mut Selection) -> Result<(), LoadFault> {
        let Some(fill) = self.probe.ready(&mut self.session, &self.load).await? else {
            return Ok(());
        };
        let filled = send(&mut self.session, &self.load, fill, rows, Some(selection)).await;
        let found = match filled {
            Ok((_, warnings)) => self.verdict(warnings, selection, false).await.map(Some),
            // Whatever is wrong with the temporary table, the rows may be right.
            Err(LoadFault::Refused(_) | LoadFault::Hopeless(_)) => Ok(None),
            Err(fault) => Err(fault),
        };
        let useful = !matches!(found, Ok(None));
        let emptied = self.probe.empty(&mut self.session, useful).await;
        let found = found?;
        emptied?;
        if let Some(verdict) = found {
            leave(selection, &verdict.spoiled);
        }
        Ok(())
    }

    /// Writes the selected rows, again until the server changes none of their values.
    async fn write_selected(
        &mut self,
        rows: &Rows,
        selection: &mut Selection,
    ) -> Result<Loaded, LoadFault> {
        for _ in 0..MAX_TRIES {
            self.open().await?;
            let load = &self.load;
            let (written, warnings) =
                send(&mut self.session, load, &load.sql, rows, Some(selection)).await?;
            let ignores = load.ignores;
            let verdict = self.verdict(warnings, selection, ignores).await?;
            leave(selection, &verdict.spoiled);
            if verdict.bent == 0 {
                leave(selection, &verdict.skipped);
                let ignored = verdict.ignored;
                let sent = selection.sent() as u64;
                let skipped = verdict.skipped.len() + verdict.spoiled.len();
                return match written + ignored + skipped as u64 == sent {
                    true => Ok(Loaded { written, ignored }),
                    false => Err(LoadFault::Refused(miscounted(sent, written))),
                };
            }
            self.session.say("ROLLBACK").await?;
        }
        Err(LoadFault::Refused(Fault::internal(format!(
            "LOAD DATA found other values that do not fit each of {MAX_TRIES} times"
        ))))
    }

    /// Classifies the warnings of the last statement.
    async fn verdict(
        &mut self,
        count: u64,
        selection: &Selection,
        ignores: bool,
    ) -> Result<Verdict, LoadFault> {
        if count == 0 {
            return Ok(Verdict::default());
        }
        if count > MAX_WARNINGS_READ {
            let message =
                format!("LOAD DATA gave {count} warnings; {MAX_WARNINGS_READ} are read at most");
            return Err(LoadFault::Refused(Fault::internal(message)));
        }
        let numbering = self.probe.numbering();
        let warnings = warnings::read(&mut self.session, count).await?;
        match warnings.and_then(|warnings| judge(&warnings, selection, numbering, ignores)) {
            Some(verdict) => Ok(verdict),
            None => {
                let sent = selection.sent() as u64;
                Err(LoadFault::Refused(self.first_warning(sent, sent).await?))
            }
        }
    }
}

fn leave(selection: &mut Selection, places: &[usize]) {
    for place in places {
        selection.leave(*place);
    }
}
