//! Applies a partition: opens the connection, reads the position over it, and executes one unit
//! after another.

use std::pin::pin;
use std::slice::from_ref;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use windrow_bookkeeping::{Applied, PROGRESS, ProgressRow, prepare};
use windrow_core::{BackgroundConnection, Fault, Report, Unit, Verdict, WriteDone};
use windrow_spool::{Log, Position, SpoolFault};

use super::state::{ReadPoint, StepEnd, Worker};
use crate::flight::{Flight, UnitPlan};
use crate::reader::{ReadEnd, Reader, name_of};

impl Worker {
    /// Applies entries until the drain is to stop. If the future is dropped, the next start finds
    /// out what was under way.
    pub(crate) async fn run(mut self) {
        while !self.stop.is_cancelled() {
            match self.step().await {
                Ok(()) => {}
                Err(StepEnd::Stopping) => break,
                Err(StepEnd::Again(delay)) => {
                    self.connection.discard();
                    self.pause(delay).await;
                }
                Err(StepEnd::Never(why)) => {
                    self.connection.discard();
                    self.partition.log.refuse(&why);
                    self.partition.stop(&why);
                    return self.stop.cancelled().await;
                }
            }
        }
        self.connection.close().await;
    }

    /// Opens a connection if there is none, and reads the position of the database over a new one.
    ///
    /// Windrow's tables are checked each time: a database that comes back without its last commits
    /// may have lost them as well.
    async fn open(&mut self) -> Result<(), StepEnd> {
        if self.connection.is_open() {
            return Ok(());
        }
        let stop = self.stop.clone();
        let opening = async {
            self.connection.open().await?;
            prepare(&*self.bookkeeping).await
        };
        let opened: Result<(), Fault> = tokio::select! {
            () = stop.cancelled() => return Err(StepEnd::Stopping),
            opened = opening => opened,
        };
        opened.map_err(|fault| self.trouble(&fault))?;
        self.locate().await
    }

    /// Applies one unit, over a connection that knows the position.
    async fn step(&mut self) -> Result<(), StepEnd> {
        self.open().await?;
        self.wait_for_entries().await?;
        self.partition.begins();
        self.gather().await;
        let (bounds, wanted) = (self.bounds(), self.wanted.clone());
        let lost = StepEnd::Again(self.options.long_pause);
        let found = self.found.as_mut().ok_or(lost)?;
        let progress = (&self.row, found.from);
        let formed = Flight::form(
            &mut found.reader,
            &mut self.sharing,
            progress,
            &wanted,
            bounds,
        );
        let flight = formed.map_err(|stopped| self.stopped(stopped))?;
        let lost = StepEnd::Again(self.options.long_pause);
        let found = self.found.as_mut().ok_or(lost)?;
        let began = tokio::time::Instant::now();
        let log = Arc::clone(&self.partition.log);
        let ahead = (&mut found.reader, &*log);
        let report = execute(&mut self.connection, &flight.unit, ahead).await;
        let taken = began.elapsed().as_secs_f64();
        self.partition.meters.seconds.observe(taken);
        self.landed(flight, report).await
    }

    /// Waits until there is something to apply. Meanwhile the database is asked for its position:
    /// entries are trimmed only after it has confirmed it for a while.
    async fn wait_for_entries(&mut self) -> Result<(), StepEnd> {
        loop {
            if self.stop.is_cancelled() {
                return Err(StepEnd::Stopping);
            }
            let lost = StepEnd::Again(self.options.long_pause);
            let found = self.found.as_mut().ok_or(lost)?;
            let first = found.reader.items().front().map(|item| item.written);
            self.partition.oldest(first);
            if first.is_some() {
                return Ok(());
            }
            if found.position() >= self.partition.log.end().0 {
                self.partition.level();
                self.retry.reset();
            }
            match found.reader.stopped().cloned() {
                None => {}
                // All entries of the log are applied, and `stop` is about to be cancelled.
                Some(ReadEnd::Closed) => self.stop.cancelled().await,
                Some(stopped) => return Err(self.stopped(stopped)),
            }
            let Some(found) = &mut self.found else {
                continue;
            };
            let ask = self.partition.ask_at(self.options.keep);
            let asking = async {
                match ask {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.stop.cancelled() => {}
                () = found.reader.fill() => {}
                () = asking => self.locate().await?,
            }
        }
    }

    /// Waits for more entries as long as no request waits for the present ones: a transaction for
    /// each few entries costs the database and the gateway more than one for many. The new entries
    /// are read together, because reading after each append would cost more than applying them.
    /// Cancel safe.
    async fn gather(&mut self) {
        let (most, partition) = (self.size.entries(), Arc::clone(&self.partition));
        let Some(found) = &mut self.found else { return };
        if !matches!(self.wanted, UnitPlan::Many) {
            return;
        }
        let log = Arc::clone(&partition.log);
        take(&mut found.reader, &*log, most).await;
        if !found.reader.wants_more() || found.reader.items().len() >= most {
            return;
        }
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = partition.awaited() => {}
            () = tokio::time::sleep(GATHER) => {}
        }
        take(&mut found.reader, &*log, most).await;
    }

    /// Reads the position of the database, and goes on from there.
    pub(super) async fn locate(&mut self) -> Result<(), StepEnd> {
        let report = self.connection.execute(&[Unit::one(self.row.read())]).await;
        let found = answer_of(report).and_then(|done| ProgressRow::found(&done));
        let found = found.map_err(|fault| self.trouble(&fault))?;
        self.verify(found.as_ref()).await?;
        self.go_to(found.map(|applied| applied.position)).await?;
        match self.connection.is_open() {
            true => Ok(()),
            false => Err(self.reconnect()),
        }
    }

    /// Checks that the spool has the entry that the database has applied last, if it is still in
    /// the files. The position alone proves nothing: a spool that was restored from an older copy
    /// gives the same position to another entry.
    async fn verify(&mut self, found: Option<&Applied>) -> Result<(), StepEnd> {
        let Some(Applied { position, last }) = found.filter(|found| !found.last.is_empty()) else {
            return Ok(());
        };
        let log = Arc::clone(&self.partition.log);
        let before = Position(position.saturating_sub(1));
        if *position == 0 || before >= log.end() {
            return Ok(());
        }
        // A missing entry was trimmed because it was applied.
        let read = match log.cursor(before) {
            Ok(mut cursor) => cursor.next(1).await,
            Err(fault) => Err(fault),
        };
        match read {
            Ok(entries) if entries.first().is_some_and(|e| name_of(e.origin) != *last) => {
                Err(StepEnd::Never(self.another_spool(before).into()))
            }
            Ok(_) | Err(SpoolFault::Trimmed { .. }) => Ok(()),
            Err(fault) => Err(self.unread(fault)),
        }
    }

    fn another_spool(&self, before: Position) -> String {
        format!(
            "the entry at position {before} is not the one that the database has applied there, so \
             the spool and the database do not belong together: one of them has come back from an \
             old copy, two gateways use copies of one spool, or the row in the table {} was \
             changed. Bring back what fits; or, where what is missing can be done without, set \
             position to where it is to go on from and last_entry to '' in the row of spool {}, \
             partition {}",
            PROGRESS, self.spool, self.row.number,
        )
    }

    async fn go_to(&mut self, from: Option<u64>) -> Result<(), StepEnd> {
        let position = from.unwrap_or_default();
        let before = self.found.as_ref().map(ReadPoint::position);
        self.compare(before, position);
        let kept = self.found.take().filter(|found| {
            found.reader.position() == position && found.reader.stopped().is_none()
        });
        if kept.is_none() || before != Some(position) {
            self.wanted = UnitPlan::Many;
        }
        let reader = match kept {
            Some(kept) => kept.reader,
            None => self.reader(from).await?,
        };
        self.found = Some(ReadPoint { from, reader });
        self.partition.reached(position);
        Ok(())
    }

    /// Reports a database that is at another position than expected.
    fn compare(&self, before: Option<u64>, position: u64) {
        let Some(before) = before else { return };
        let partition = self.partition.log.partition();
        if position < before {
            tracing::warn!(
                partition,
                before,
                position,
                "the database has lost what it had committed; the spool is applied again from there"
            );
        }
        // An earlier commit got no answer, or another process applies the same spool.
        self.partition
            .meters
            .applied
            .inc_by(position.saturating_sub(before));
    }

    /// Opens a reader at the position of the database.
    async fn reader(&mut self, from: Option<u64>) -> Result<Reader, StepEnd> {
        let log = Arc::clone(&self.partition.log);
        if from.is_none() {
            let status = log.status().await.map_err(|fault| self.unread(fault))?;
            if status.first.0 > 0 {
                return Err(StepEnd::Never(self.unknown_spool(status.first.0).into()));
            }
            if status.end > status.first {
                let (spool, entries) = (self.spool, status.entries());
                tracing::warn!(
                    %spool, entries,
                    "the database knows nothing of this spool; all of it is applied"
                );
            }
        }
        Reader::new(&*log, from.unwrap_or_default(), self.options.memory)
            .map_err(|fault| self.unread(fault))
    }

    fn unknown_spool(&self, first: u64) -> String {
        let next = self.partition.position().unwrap_or_default().max(first);
        format!(
            "the database knows nothing of the spool {}, whose entries before position {first} are \
             gone because they had been applied: it is another database, or the table {} was \
             emptied, or it has come back from a copy that is too old. Bring the right database \
             back; or, to apply what is left to this one, put in a row of spool {}, partition {}, \
             position {next}",
            self.spool, PROGRESS, self.spool, self.row.number,
        )
    }

    /// Closes the connection; the next one shows the position of the database.
    pub(super) fn reconnect(&mut self) -> StepEnd {
        StepEnd::Again(self.retry.reconnect_delay())
    }

    fn unread(&mut self, fault: SpoolFault) -> StepEnd {
        self.stopped(ReadEnd::of(fault))
    }

    /// Returns the next step if nothing more can be read.
    pub(super) fn stopped(&mut self, stopped: ReadEnd) -> StepEnd {
        match stopped {
            ReadEnd::Closed => StepEnd::Stopping,
            ReadEnd::Never(why) => StepEnd::Never(why),
            // If the database is still at that position, no reader can begin there.
            ReadEnd::Behind => StepEnd::Again(Duration::ZERO),
            ReadEnd::Later(fault) => {
                self.partition.waits(&Fault::from(fault));
                StepEnd::Again(self.options.long_pause)
            }
        }
    }
}

/// The longest wait for more entries while no request waits for the present ones.
const GATHER: Duration = Duration::from_millis(5);

/// The number of unread entries from which on reading beside a unit under way is worth its cost.
const MANY: u64 = 256;

/// Reads the available entries, up to this number.
async fn take(reader: &mut Reader, log: &dyn Log, most: usize) {
    while reader.items().len() < most && reader.lags(log.end(), 1) {
        // If the log ends with unused positions, nothing comes.
        if timeout(GATHER, reader.fill()).await.is_err() {
            return;
        }
    }
}

/// Executes a unit, and reads ahead meanwhile if many entries are available.
async fn execute(
    connection: &mut BackgroundConnection,
    unit: &Unit,
    (reader, log): (&mut Reader, &dyn Log),
) -> Report {
    let mut execution = pin!(connection.execute(from_ref(unit)));
    while reader.lags(log.end(), MANY) {
        tokio::select! {
            biased;
            report = &mut execution => return report,
            () = reader.fill() => {}
        }
    }
    execution.await
}

/// Returns the outcome of the only write of the only unit.
pub(super) fn answer_of(report: Report) -> Result<WriteDone, Fault> {
    let nothing = || Fault::internal("a read was not reported on");
    match report.verdicts.into_iter().next().ok_or_else(nothing)? {
        Verdict::Final(Ok(dones)) => dones.into_iter().next().ok_or_else(nothing),
        Verdict::Final(Err(failed)) => Err(failed.fault),
        Verdict::RolledBack(fault) | Verdict::WaitsForLock(fault) => Err(fault),
        Verdict::NotTried => Err(nothing()),
    }
}
