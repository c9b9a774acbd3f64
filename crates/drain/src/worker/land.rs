//! The outcome of a unit, and the next step.

use std::time::Duration;

use tokio::time::Instant;
use windrow_bookkeeping::{DeadLetter, KeyPart, PROGRESS, REJECTED, is_of_content};
use windrow_core::{Fault, FaultClass, Report, Retry, Unit};

use super::session::answer_of;
use super::state::{StepEnd, Worker};
use crate::flight::{Flight, UnitPlan};
use crate::judge::{Judgement, judge};
use crate::{aside, letter};

/// The shortest time between two log lines about dead letters.
const REPORT_EVERY: Duration = Duration::from_secs(10);

impl Worker {
    /// Acts on the report of a unit.
    pub(super) async fn landed(&mut self, flight: Flight, report: Report) -> Result<(), StepEnd> {
        match judge(report, flight.progress) {
            Judgement::Applied => self.applied(&flight),
            Judgement::AppliedToNewRow => {
                self.applied(&flight);
                return Err(StepEnd::Never(self.row_was_gone().into()));
            }
            Judgement::Unknown(fault) => return Err(self.unknown(&fault)),
            Judgement::NoProgress(fault) => return Err(self.no_progress(&fault)),
            Judgement::Again(fault) => match self.fails_by_itself(&flight, &fault) {
                true => self.refused(&flight, None, &fault).await?,
                false => self.again(&fault).await,
            },
            Judgement::Locked(fault) => {
                self.failing = None;
                self.again(&fault).await;
            }
            Judgement::Refused(at, fault) => self.refused(&flight, at, &fault).await?,
            Judgement::Overtaken(fault) => {
                self.partition.meters.tried.overtaken.inc();
                if !self.connection.is_open() {
                    return Err(self.reconnect());
                }
                self.overtaken(&flight, &fault).await?;
            }
        }
        Ok(())
    }

    fn applied(&mut self, flight: &Flight) {
        let entries = flight.entries();
        if let Some(found) = &mut self.found {
            found.reader.pop(entries);
            found.from = Some(flight.to);
        }
        if flight.is_full_sized {
            self.size.applied(entries);
        }
        self.wanted = UnitPlan::Many;
        self.failing = None;
        self.retry.reset();
        let meters = &self.partition.meters;
        meters.tried.applied.inc();
        meters.applied.inc_by(entries as u64);
        meters.committed.observe(entries as f64);
        if let Some(letter) = &flight.letter {
            meters.rejected.inc();
            self.tell_of(letter);
        }
        self.partition.applying();
        self.partition.reached(flight.to);
    }

    /// Returns an explanation for the missing row: behind a proxy, the database may have come back
    /// without its last commits, from an old copy or as another server.
    fn row_was_gone(&self) -> String {
        format!(
            "the row of spool {}, partition {} had gone from the table {}; if nobody has taken it \
             away, the database has lost what was applied before, and the spool goes on from the \
             new row at the next start",
            self.spool, self.row.number, PROGRESS
        )
    }

    /// Logs a dead letter, unless one was logged a moment ago.
    fn tell_of(&mut self, letter: &DeadLetter) {
        if self.reported.is_some_and(|at| at.elapsed() < REPORT_EVERY) {
            return;
        }
        self.reported = Some(Instant::now());
        tracing::warn!(
            source = %letter.source,
            table = %letter.destination,
            code = %letter.code,
            reason = %letter.message,
            so_far = self.partition.meters.rejected.get(),
            "the database refuses a write that had been acknowledged; it is in the table {}",
            REJECTED
        );
    }

    /// Notes that the outcome of a unit is unknown. The next connection will show it.
    fn unknown(&mut self, fault: &Fault) -> StepEnd {
        self.failing = None;
        self.partition.meters.tried.unknown.inc();
        let partition = self.partition.log.partition();
        tracing::warn!(partition, %fault, "it is found out whether the spool was applied");
        self.reconnect()
    }

    /// True once an entry by itself has failed again and again with a fault that is usually not its
    /// own, for so long that it counts as its own.
    fn fails_by_itself(&mut self, flight: &Flight, fault: &Fault) -> bool {
        if !fault.may_be_of_write() {
            self.failing = None;
            return false;
        }
        if flight.entries() > 1 || flight.letter.is_some() {
            return false;
        }
        match self.failing {
            Some((to, since)) if to == flight.to => since.elapsed() >= self.options.refuse_after,
            _ => {
                self.failing = Some((flight.to, Instant::now()));
                false
            }
        }
    }

    /// Waits before the next attempt after a failure through no fault of the entries.
    async fn again(&mut self, fault: &Fault) {
        self.partition.meters.tried.again.inc();
        let delay = self.retry.delay(fault);
        let many = self.retry.has_failed_often();
        if many {
            self.partition.waits(fault);
        }
        // Fewer entries take less time, and in the end it is known if one alone fails. A lane could
        // not halve them, because the unit is one transaction with the position that it moves.
        if many || fault.retry() == Retry::Smaller {
            self.size.halve();
            self.wanted = UnitPlan::Many;
        }
        self.pause(delay).await;
    }

    /// Handles a database that does not accept Windrow's own rows.
    fn no_progress(&mut self, fault: &Fault) -> StepEnd {
        self.failing = None;
        let mut unwritten = fault.clone();
        unwritten.message = format!(
            "how far the spool has come cannot be written to the table {}: {}",
            PROGRESS, fault.message
        )
        .into();
        self.partition.waits(&unwritten);
        self.wanted = UnitPlan::Many;
        StepEnd::Again(self.options.long_pause)
    }

    /// Handles a unit that found another position: another process has moved the row, or an earlier
    /// attempt was committed after all.
    async fn overtaken(&mut self, flight: &Flight, fault: &Fault) -> Result<(), StepEnd> {
        let before = self.found.as_ref().and_then(|found| found.from);
        self.locate().await?;
        let now = self.found.as_ref().and_then(|found| found.from);
        match now == before {
            // The position is unchanged: something else was refused at the commit.
            true => self.refused(flight, None, fault).await,
            false => Ok(()),
        }
    }

    /// Handles a refused write, or a unit that was refused without naming one.
    async fn refused(
        &mut self,
        flight: &Flight,
        at: Option<usize>,
        fault: &Fault,
    ) -> Result<(), StepEnd> {
        self.partition.meters.tried.refused.inc();
        let entry = at.map(|at| flight.entry_of(at));
        let last = flight.entries().saturating_sub(1);
        if let Some(kept) = &flight.letter
            && (entry == Some(last) || last == 0)
        {
            return self.letter_refused(kept, last, fault).await;
        }
        match entry {
            Some(behind) => self.size.refused(behind),
            None => self.size.halve(),
        }
        let refused = match entry {
            _ if last == 0 => 0,
            Some(entry) if entry > 0 => entry,
            // A refusal in a unit with other entries may have another cause.
            _ => {
                self.wanted = UnitPlan::Exactly(1);
                return Ok(());
            }
        };
        if let Some(wanted) = self.under_its_key(flight, refused, fault).await? {
            self.wanted = wanted;
            return Ok(());
        }
        let at = at.unwrap_or_else(|| flight.first_write(refused));
        let Some(letter) = self.letter(flight, refused, at, fault) else {
            return Err(self.no_progress(fault));
        };
        self.wanted = UnitPlan::Letter(refused, Box::new(letter));
        Ok(())
    }

    /// Returns the next step after a refused entry with a client's key, if the key is the reason of
    /// the refusal.
    async fn under_its_key(
        &mut self,
        flight: &Flight,
        entry: usize,
        fault: &Fault,
    ) -> Result<Option<UnitPlan>, StepEnd> {
        let mark = flight.unit.writes().get(flight.first_write(entry));
        let Some((part, request)) = mark.and_then(KeyPart::of) else {
            return Ok(None);
        };
        if fault.class != FaultClass::Unique {
            return Ok(None);
        }
        let report = self.connection.execute(&[Unit::one(part.read())]).await;
        let executed = answer_of(report).and_then(|done| KeyPart::found(&done));
        match executed.map_err(|fault| self.trouble(&fault))? {
            Some(executed) if *executed.request == *request => Ok(Some(UnitPlan::Without(entry))),
            // The same key may come earlier in this unit, which was rolled back.
            None if entry > 0 => Ok(Some(UnitPlan::Exactly(entry))),
            // Another request has its key, or something else than the key existed.
            Some(_) | None => Ok(None),
        }
    }

    fn letter(
        &self,
        flight: &Flight,
        entry: usize,
        at: usize,
        fault: &Fault,
    ) -> Option<DeadLetter> {
        let write = flight.unit.writes().get(at)?;
        let item = self.found.as_ref()?.reader.items().get(entry)?;
        let place = letter::Place {
            spool: self.spool,
            partition: self.row.number,
            position: item.position,
            entry: &item.payload,
        };
        Some(letter::of(&place, write, fault))
    }

    /// Handles a refused dead letter, by trying its next form. Nothing is skipped: if no form is
    /// accepted, the entries before it are applied, and it is tried again and again.
    async fn letter_refused(
        &mut self,
        kept: &DeadLetter,
        before: usize,
        fault: &Fault,
    ) -> Result<(), StepEnd> {
        let is_of_table = matches!(
            fault.class,
            FaultClass::NoTable | FaultClass::NoColumn | FaultClass::Denied
        );
        let mut why = fault.message.to_string();
        let shorter = match kept.shorter() {
            Some(short) => (!is_of_table).then_some(short),
            None if is_of_content(fault) => match self.set_aside(kept, before).await {
                Ok(without) => without,
                Err(unwritten) => {
                    why = format!("{why}; {unwritten}");
                    None
                }
            },
            None => None,
        };
        if let Some(shorter) = shorter {
            self.wanted = UnitPlan::Letter(before, Box::new(shorter));
            return Ok(());
        }
        if before > 0 {
            self.wanted = UnitPlan::Exactly(before);
            return Ok(());
        }
        let mut unwritten = fault.clone();
        unwritten.message = format!(
            "a write to {} is refused ({} ({})), and the table {} does not take it either: {why}",
            kept.destination, kept.message, kept.code, REJECTED,
        )
        .into();
        self.partition.waits(&unwritten);
        self.wanted = UnitPlan::Many;
        Err(StepEnd::Again(self.options.long_pause))
    }

    /// Stores the entry of a letter in a file, and returns the letter that names it. `None` if that
    /// was done before, or no folder is configured.
    async fn set_aside(
        &mut self,
        kept: &DeadLetter,
        entry: usize,
    ) -> Result<Option<DeadLetter>, Fault> {
        let items = self.found.as_ref().map(|found| found.reader.items());
        let item = items.and_then(|items| items.get(entry));
        let (Some(folder), Some(item), true) = (&self.options.aside, item, kept.entry.is_some())
        else {
            return Ok(None);
        };
        let place = (self.row.number, item.position);
        let file = aside::put(folder, place, item.payload.clone()).await?;
        Ok(Some(kept.with_entry_in(&file)))
    }
}
