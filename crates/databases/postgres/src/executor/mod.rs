//! Executes a batch on one connection: round trips until every unit has its verdict.
//!
//! | module | what it does |
//! | --- | --- |
//! | `form` | what is particular to row writes and to SQL calls; all else is the same for both |
//! | `connection` | a connection, and what it has learned |
//! | `statements`, `prepared` | plan: all that a connection knows of statements |
//! | `place`, `batch` | plan: every write in its place: does it fit, which rows does it touch |
//! | `segment`, `order` | plan: the transactions of a round trip |
//! | `prepare`, `check`, `trust` | send: statements, guards and checks that the connection does not have yet |
//! | `send`, `bind`, `sent` | send: statements out |
//! | `answers`, `codes` | settle: the server's answers, and their meaning |
//! | `settle`, `findings`, `learn` | settle: from answers to verdicts, to what runs again, and to descriptions that are not true any more |
//! | `isolation`, `isolate` | isolate: a transaction of parts with a savepoint each, after a failure |
//! | `behind` | isolate: the connection after code of which nothing is proven |
//! | `failure_rates` | shapes that fail often |
//! | `patience`, `wariness`, `interrupt` | time limits, and cancelling a batch |

pub(crate) mod answers;
pub(crate) mod batch;
mod behind;
pub(crate) mod bind;
mod check;
pub(crate) mod codes;
pub(crate) mod connection;
pub(crate) mod failure_rates;
pub(crate) mod findings;
pub(crate) mod form;
pub(crate) mod interrupt;
mod isolate;
pub(crate) mod isolation;
mod learn;
pub(crate) mod order;
pub(crate) mod patience;
mod place;
pub(crate) mod prepare;
pub(crate) mod prepared;
pub(crate) mod segment;
pub(crate) mod send;
pub(crate) mod sent;
pub(crate) mod settle;
pub(crate) mod statements;
pub(crate) mod trust;
pub(crate) mod wariness;

use std::sync::Arc;

use async_trait::async_trait;
use tokio::time::Instant;
use windrow_core::{Canceller, Executor, Fault, FaultClass, Report, Tally, Unit, Verdict};
use windrow_pgwire::wire::Broken;

use self::answers::Answers;
use self::batch::Batch;
use self::connection::{Connection, unwritable};
use self::findings::Findings;
use self::form::{DoneOf, WorkKind};
use self::isolate::IsolationEnd;
use self::isolation::Isolation;
use self::segment::{Mode, Segment};
use self::send::{FORGET, Sender};
use self::sent::SentTransaction;
use self::trust::Trust;

/// How often a batch begins anew because a table was changed meanwhile.
const MOST_CHANGES: usize = 8;

impl<F: WorkKind> Connection<F> {
    /// Sees to it that what a unit's client allows it to take is counted from its arrival, and
    /// executes it.
    async fn go(&mut self, batch: &mut Batch<'_, F>, tally: &mut Tally) -> Result<(), Broken> {
        let rest = self.arrived.and_then(|at| self.patience.rest(at));
        if let Some(settings) = rest {
            tally.round_trips += 1;
            patience::set(&mut self.wire, &settings).await?;
        }
        self.drive(batch, tally).await
    }

    /// Runs round trips until every unit has its verdict.
    async fn drive(&mut self, batch: &mut Batch<'_, F>, tally: &mut Tally) -> Result<(), Broken> {
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
                // What has no verdict by now was rolled back, or has not left.
                batch.conclude_rest(&Verdict::Final(Err(fault.into())));
                return Ok(());
            }
            let mut changed = Vec::new();
            let mut isolations: Vec<Isolation> =
                Isolation::needed(batch, &todo).into_iter().collect();
            let mut stale = false;
            if isolations.is_empty() {
                let trust = self.prepare(batch, &todo, tally).await?;
                if let Trust::Locked(version, error) = trust {
                    let verdict = self.refused_verbatim(*error);
                    todo = batch.without_table(todo, version, &verdict);
                    continue;
                }
                stale = trust == Trust::Stale;
                changed = self.statements.prepared.take_changed();
            }
            if !stale && isolations.is_empty() {
                let (now, later) = batch.in_order(std::mem::take(&mut todo));
                let cut = batch.behind_unproven(now, later);
                let (now, later) = self.no_more_than_one_unproven(batch, cut, tally).await?;
                let unproven = now.iter().any(|segment| batch.is_unproven(segment));
                let transactions = self.send(batch, now);
                let answered = self.exchange(batch, transactions, tally).await?;
                let mut findings = Findings::default();
                let mut settler = self.settler(batch, tally, &mut findings);
                for (transaction, answers) in answered {
                    settler.settle(transaction, answers);
                }
                (todo, isolations) = (settler.next, settler.isolations);
                todo.extend(later);
                self.learn(batch, &findings);
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

    /// Reads the tables that are not known (or all of them), joins the writes with them, and forms
    /// transactions.
    async fn begin(
        &mut self,
        batch: &mut Batch<'_, F>,
        anew: bool,
        tally: &mut Tally,
    ) -> Result<Vec<Segment>, Broken> {
        self.place(batch, anew, tally).await?;
        if self.grow(batch, tally).await? {
            self.place(batch, true, tally).await?;
        }
        Ok(Segment::cut(batch.first_segments(), self.dialect.piece))
    }

    /// Makes what units that do not fit their tables ask for; says whether anything was tried.
    async fn grow(&mut self, batch: &mut Batch<'_, F>, tally: &mut Tally) -> Result<bool, Broken> {
        let (server, catalog) = self.asked(tally);
        let grown = F::grow(server, catalog, batch.units, batch.misfits()).await?;
        for refused in grown.iter().flatten() {
            batch.conclude_refused(refused, &self.refused(refused.fault.clone()));
        }
        Ok(grown.is_some())
    }

    /// Appends all transactions. One that cannot be encoded after all is tried write by write, and
    /// in the end refused.
    fn send(&mut self, batch: &mut Batch<'_, F>, todo: Vec<Segment>) -> Vec<SentTransaction> {
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
                        transactions.extend(sender.send_reset(&self.restore));
                        // What was prepared is gone, and not all that was left behind can be taken
                        // back.
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

    /// One round trip. Where the connection breaks, what was answered before counts, and the rest
    /// is told apart by how far it can have come.
    async fn exchange(
        &mut self,
        batch: &mut Batch<'_, F>,
        transactions: Vec<SentTransaction>,
        tally: &mut Tally,
    ) -> Result<Vec<(SentTransaction, Answers)>, Broken> {
        let (answers, ended) = self.answers_to(&transactions, tally).await;
        let mut answered: Vec<_> = transactions.into_iter().zip(answers).collect();
        let Err(broken) = ended else {
            return Ok(answered);
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

/// What became of a transaction that was under way when the connection broke.
///
/// The server answers in order and reads in order. So it cannot have committed what did not wholly
/// leave, what it had already refused, what came after the one in which it ended the connection, or
/// that one itself if it had not come to its commit.
fn verdict_of_lost<D>(
    broken: &Broken,
    transaction: &SentTransaction,
    answers: &Answers,
    first: bool,
) -> Verdict<D> {
    let left = transaction.end <= broken.sent;
    let at_commit = answers.statements() >= transaction.statements.len();
    let ended_before = broken.error.is_some() && !(first && at_commit);
    if transaction.reads || !left || answers.error.is_some() || ended_before {
        Verdict::RolledBack(broken.unavailable())
    } else {
        Verdict::Final(Err(broken.unknown().into()))
    }
}

fn keeps_changing() -> Fault {
    Fault::new(
        FaultClass::Conflict,
        "55006",
        "the table was altered again and again while this write was under way",
    )
}

#[async_trait]
impl<F: WorkKind> Executor<F::Work> for Connection<F> {
    async fn execute(&mut self, units: &[Unit<F::Work>]) -> Report<DoneOf<F>> {
        self.interrupt.begin();
        self.makes_up = None;
        let mut batch = Batch::new(units);
        let mut tally = Tally::default();
        if let Err(broken) = self.go(&mut batch, &mut tally).await {
            // Whatever had no verdict was not under way: nothing of it can have been committed.
            batch.conclude_rest(&Verdict::RolledBack(broken.unavailable()));
        }
        let defect = Verdict::Final(Err(Fault::internal("a unit got no verdict").into()));
        batch.conclude_rest(&defect);
        let waits =
            |verdict: &Option<Verdict<_>>| matches!(verdict, Some(Verdict::WaitsForLock(_)));
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
