//! Executes a batch on one connection: round trips until every unit has its verdict.
//!
//! | module | what it does |
//! | --- | --- |
//! | `connection` | a connection, and the knowledge that it has gathered |
//! | `statements`, `prepared` | plan: the statements that a connection knows |
//! | `place`, `batch` | plan: matches writes with their tables, and finds the rows that they touch |
//! | `segment`, `order` | plan: the transactions of a round trip |
//! | `prepare`, `check`, `trust` | send: prepares statements, guards and checks |
//! | `send`, `messages`, `sent` | send: writes statements to the send buffer |
//! | `answers`, `codes` | settle: the server's answers, and their meaning |
//! | `settle` | settle: turns answers into verdicts, and corrects knowledge |
//! | `isolation`, `isolate` | isolate: after a failure, runs a transaction with savepoints |
//! | `behind` | isolate: resets the connection after unproven code |
//! | `failure_rates` | finds shapes that fail often |
//! | `timeouts`, `wariness`, `interrupt` | set timeouts, and cancel a batch |
//!
//! The values of a write are Windrow's own, or the bytes of an SQL client. Only `place`, `messages`
//! and `settle/done` look at them.

pub(crate) mod answers;
pub(crate) mod batch;
mod behind;
mod check;
pub(crate) mod codes;
pub(crate) mod connection;
pub(crate) mod failure_rates;
pub(crate) mod interrupt;
mod isolate;
pub(crate) mod isolation;
pub(crate) mod messages;
pub(crate) mod order;
mod place;
pub(crate) mod prepare;
pub(crate) mod prepared;
pub(crate) mod segment;
pub(crate) mod send;
pub(crate) mod sent;
pub(crate) mod settle;
pub(crate) mod statements;
pub(crate) mod timeouts;
pub(crate) mod trust;
pub(crate) mod wariness;

use std::sync::Arc;

use async_trait::async_trait;
use tokio::time::Instant;
use windrow_core::{Canceller, Executor, Fault, Report, Tally, Unit, Verdict};
use windrow_database::shape_faults::keeps_changing;
use windrow_pgwire::wire::{Broken, ServerError};

use self::answers::Answers;
use self::batch::Batch;
use self::codes::Findings;
use self::connection::{Connection, unwritable};
use self::isolate::IsolationEnd;
use self::isolation::Isolation;
use self::prepare::{Preparation, PreparationEnd};
use self::segment::{Mode, Segment};
use self::send::{FORGET, Sender};
use self::sent::SentTransaction;
use self::trust::Trust;

/// The number of times that a batch begins again because a table was changed meanwhile.
const MOST_CHANGES: usize = 8;

impl Connection {
    /// Sets the timeouts that are left since the unit's arrival, and executes the batch.
    async fn go(&mut self, batch: &mut Batch<'_>, tally: &mut Tally) -> Result<(), Broken> {
        let left = self.arrived.and_then(|at| self.timeouts.left(at));
        if let Some(settings) = left {
            tally.round_trips += 1;
            timeouts::set(&mut self.wire, &settings).await?;
        }
        self.drive(batch, tally).await
    }

    /// Runs round trips until every unit has its verdict.
    async fn drive(&mut self, batch: &mut Batch<'_>, tally: &mut Tally) -> Result<(), Broken> {
        if let Some(setting) = self.wariness.setting_due() {
            tally.round_trips += 1;
            drop(self.wire.simple(&setting).await?);
        }
        let mut changes = 0;
        let mut missed = false;
        let mut todo = self.begin(batch, false, tally).await?;
        let main = todo.first().map(|s| s.units.clone()).unwrap_or_default();
        self.failure_rates.choose_forms(batch, &mut todo);
        while !todo.is_empty() {
            if let Some(fault) = self.given_up() {
                // Units without a verdict were rolled back, or have not been sent.
                batch.conclude_rest(&Verdict::Final(Err(fault.into())));
                return Ok(());
            }
            let mut changed = Vec::new();
            let mut isolations: Vec<Isolation> =
                Isolation::needed(batch, &todo).into_iter().collect();
            let mut stale = false;
            let mut preparation = None;
            if isolations.is_empty() {
                // After a change, no statement is used before the server has accepted it.
                let is_plain = changes == 0 && !todo.iter().any(|s| batch.is_unproven(s));
                let trust;
                (trust, preparation) = self.prepare(batch, &todo, is_plain, tally).await?;
                if let Trust::Locked(version, error) = trust {
                    todo = self.without_locked(batch, todo, (version, *error));
                    continue;
                }
                stale = trust == Trust::Stale;
                changed = self.statements.prepared.take_changed();
            }
            if !stale && isolations.is_empty() {
                let (now, later) = order::in_order(batch, std::mem::take(&mut todo));
                let cut = order::up_to_unproven(batch, now, later);
                let (renewal, wire) = (&mut self.renewal, &mut self.wire);
                let cut = renewal.no_more_than_one_unproven(wire, batch, cut, tally);
                let (now, later) = cut.await?;
                let unproven = now.iter().any(|segment| batch.is_unproven(segment));
                let mut findings;
                (todo, isolations, findings) =
                    self.round_trip(batch, now, preparation, tally).await?;
                todo.extend(later);
                (stale, missed) = (findings.stale, missed | findings.missed);
                changed.append(&mut findings.changed);
                if unproven {
                    self.behind_unproven(batch, true, tally).await?;
                    if batch.pending().is_empty() {
                        todo.clear();
                    }
                }
            }
            for isolation in isolations {
                if stale {
                    break;
                }
                if isolation.is_of_all() {
                    todo.clear();
                }
                if let IsolationEnd::Stale(versions) = self.isolate(batch, isolation, tally).await?
                {
                    stale = true;
                    changed.extend(versions);
                }
            }
            if stale {
                self.forget(batch, &changed, true);
                changes += 1;
                batch.distrusted = changes > MOST_CHANGES / 2;
                if changes > MOST_CHANGES {
                    batch.conclude_rest(&Verdict::RolledBack(keeps_changing()));
                }
                todo = self.begin(batch, true, tally).await?;
            }
        }
        batch.hold();
        self.failure_rates.learn(batch, &main, missed);
        Ok(())
    }

    /// Reads the unknown tables (`again`: all of them), matches the writes with them, and forms
    /// transactions.
    async fn begin(
        &mut self,
        batch: &mut Batch<'_>,
        again: bool,
        tally: &mut Tally,
    ) -> Result<Vec<Segment>, Broken> {
        let mut placing = self.placing();
        placing.place(batch, again, tally).await?;
        if placing.grow(batch, tally).await? {
            placing.place(batch, true, tally).await?;
        }
        Ok(Segment::cut(
            order::first_segments(batch),
            self.dialect.piece,
        ))
    }

    /// Sends segments, and settles their answers. `preparation`: what was appended before them.
    /// Returns what has to run next, the isolations before it, and the findings.
    async fn round_trip(
        &mut self,
        batch: &mut Batch<'_>,
        segments: Vec<Segment>,
        preparation: Option<Preparation>,
        tally: &mut Tally,
    ) -> Result<(Vec<Segment>, Vec<Isolation>, Findings), Broken> {
        let transactions = self.send(batch, segments);
        let sent = (transactions, preparation);
        let (answered, prepared) = self.exchange(batch, sent, tally).await?;
        let mut findings = Findings::default();
        if prepared.is_in_vain {
            // Nothing was written. The same segments run again.
            let segments = answered.into_iter().map(|(sent, _)| sent.segment);
            let mut todo: Vec<Segment> = segments.collect();
            match prepared.trust {
                Trust::Locked(version, error) => {
                    todo = self.without_locked(batch, todo, (version, *error));
                }
                Trust::Good | Trust::Stale => findings.stale = true,
            }
            findings.changed = self.statements.prepared.take_changed();
            return Ok((todo, Vec::new(), findings));
        }
        let mut settler = self.settler(batch, tally, &mut findings);
        for (transaction, answers) in answered {
            settler.settle(transaction, answers);
        }
        let (todo, isolations) = (settler.next, settler.isolations);
        // A statement that the server did not accept was never prepared.
        findings.statements_gone &= !prepared.has_failed;
        self.learn(batch, &findings);
        Ok((todo, isolations, findings))
    }

    /// Refuses the units that need a locked table, and returns the other segments.
    fn without_locked(
        &self,
        batch: &mut Batch<'_>,
        todo: Vec<Segment>,
        (version, error): (u64, ServerError),
    ) -> Vec<Segment> {
        let verdict = self.refused_verbatim(error);
        batch.without_table(todo, version, &verdict)
    }

    /// Appends all transactions. If one cannot be encoded, its units are sent one by one, and the
    /// unit that cannot be encoded is refused.
    fn send(&mut self, batch: &mut Batch<'_>, todo: Vec<Segment>) -> Vec<SentTransaction> {
        let mut transactions = Vec::with_capacity(todo.len());
        let mut todo: std::collections::VecDeque<_> = todo.into();
        while let Some(segment) = todo.pop_front() {
            let mut sender = Sender {
                batch,
                prepared: &mut self.statements.prepared,
                out: self.wire.out(),
                scratch: &mut self.scratch,
                part: false,
            };
            let unproven = batch.is_unproven(&segment);
            if unproven && self.used {
                transactions.extend(sender.send_aside(FORGET));
            }
            match sender.send(segment) {
                Ok(sent) => {
                    transactions.push(sent);
                    self.used = !unproven;
                    if unproven {
                        transactions.extend(sender.send_reset(&self.renewal.restore));
                        // The prepared statements are gone, and not everything that the code left
                        // in the session can be undone.
                        self.usable = false;
                    }
                }
                Err(segment) => match (segment.units.as_slice(), &segment.mode) {
                    ([unit], Mode::Own | Mode::Fresh | Mode::Grouped | Mode::Probe) => {
                        batch.fail(*unit, unwritable());
                    }
                    (units, _) => {
                        for piece in Segment::pieces(units, 1, &Mode::Own).into_iter().rev() {
                            todo.push_front(piece);
                        }
                    }
                },
            }
        }
        transactions
    }

    /// Runs one round trip. If the connection breaks, the answers before the break count. The
    /// verdict of every other transaction depends on how far the server can have come with it.
    /// Returns also the end of the preparation that was appended before the transactions.
    async fn exchange(
        &mut self,
        batch: &mut Batch<'_>,
        (transactions, mut preparation): (Vec<SentTransaction>, Option<Preparation>),
        tally: &mut Tally,
    ) -> Result<(Vec<(SentTransaction, Answers)>, PreparationEnd), Broken> {
        let sent = (transactions.as_slice(), preparation.as_mut());
        let (answers, ended) = self.answers_to(sent, tally).await;
        let mut answered: Vec<_> = transactions.into_iter().zip(answers).collect();
        let Err(broken) = ended else {
            let prepared = &mut self.statements.prepared;
            let end = preparation.map(|sent| sent.end(prepared));
            return Ok((answered, end.unwrap_or_default()));
        };
        let lost = answered.split_off(broken.syncs_seen.min(answered.len()));
        let mut findings = Findings::default();
        let mut settler = self.settler(batch, tally, &mut findings);
        for (transaction, answers) in answered {
            settler.settle(transaction, answers);
        }
        for (place, (transaction, answers)) in lost.iter().enumerate() {
            let verdict = verdict_of_lost(&broken, transaction, answers, place == 0);
            for unit in &transaction.segment.units {
                batch.conclude(*unit, verdict.clone());
            }
        }
        Err(broken)
    }
}

/// Returns the verdict of a transaction that was under way when the connection broke.
///
/// The server reads and answers in order. So it cannot have committed a transaction that was not
/// sent completely, one that it had already refused, one after the transaction in which it ended
/// the connection, or that transaction itself before its commit.
fn verdict_of_lost(
    broken: &Broken,
    transaction: &SentTransaction,
    answers: &Answers,
    first: bool,
) -> Verdict {
    let left = transaction.end <= broken.sent;
    let at_commit = answers.statements() >= transaction.statements.len();
    let ended_before = broken.error.is_some() && !(first && at_commit);
    if transaction.reads || !left || answers.error.is_some() || ended_before {
        Verdict::RolledBack(broken.unavailable())
    } else {
        Verdict::Final(Err(broken.unknown().into()))
    }
}

#[async_trait]
impl Executor for Connection {
    async fn execute(&mut self, units: &[Unit]) -> Report {
        self.interrupt.begin();
        self.renewal.begin();
        let mut batch = Batch::new(units);
        let mut tally = Tally::default();
        if let Err(broken) = self.go(&mut batch, &mut tally).await {
            // Units without a verdict were not under way, so nothing of them can have been
            // committed.
            batch.conclude_rest(&Verdict::RolledBack(broken.unavailable()));
        }
        let defect = Verdict::Final(Err(Fault::internal("a unit got no verdict").into()));
        batch.conclude_rest(&defect);
        let waits = |verdict: &Option<Verdict>| matches!(verdict, Some(Verdict::WaitsForLock(_)));
        self.wariness.ended(batch.verdicts.iter().any(waits));
        Report {
            verdicts: batch.verdicts.into_iter().flatten().collect(),
            tally,
            usable: self.usable && self.wire.is_usable(),
        }
    }

    fn arrived(&mut self, at: Instant) {
        self.arrived = Some(at);
    }

    fn canceller(&self) -> Option<Arc<dyn Canceller>> {
        Some(Arc::clone(&self.interrupt) as Arc<dyn Canceller>)
    }

    async fn close(self: Box<Self>) {
        self.wire.terminate().await;
    }
}
