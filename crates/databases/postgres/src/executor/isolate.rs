//! Executes an [`Isolation`]: a transaction in parts, each with a savepoint, so that a failure in
//! one part does not affect the others. No client is answered before the commit, and the
//! transaction commits only once every answer in it is certain.

mod judge;

use postgres_protocol::message::frontend;
use tokio::time::Instant;
use windrow_core::{Fault, Tally, UnitFault, Verdict};
use windrow_pgwire::wire::{Answer, Broken, ServerError};

use self::judge::{Judge, Judged, Leg};
use crate::executor::answers::Answers;
use crate::executor::batch::Batch;
use crate::executor::batch::moments::with_own_moments;
use crate::executor::codes::{ErrorMeaning, unknown_commit};
use crate::executor::connection::{Connection, unwritable};
use crate::executor::isolation::Isolation;
use crate::executor::segment::{Mode, Segment};
use crate::executor::send::{AT_ONCE, FORGET, Sender};
use crate::executor::sent::SentTransaction;
use crate::executor::settle::refusal;
use crate::executor::trust::Trust;
use crate::fault::with_error;

/// A short lock timeout, for when another session is known to hold locks.
const BRIEFLY: &str = "SET LOCAL lock_timeout = '2ms'";

const COMMIT: &str = "ROLLBACK TO SAVEPOINT windrow; COMMIT";

/// The end of an isolation.
pub(super) enum IsolationEnd {
    /// Every unit concerned has its verdict.
    Done,
    /// The batch has to be planned again. These versions of tables differ from their descriptions;
    /// if there are none, the server has lost the prepared statements.
    Stale(Vec<u64>),
}

impl Connection {
    /// Executes all units that have no verdict and are in the scope of the isolation.
    pub(super) async fn isolate(
        &mut self,
        batch: &mut Batch<'_>,
        mut isolation: Isolation,
        tally: &mut Tally,
    ) -> Result<IsolationEnd, Broken> {
        isolation.mark_suspects(batch);
        isolation.is_one_by_one |= isolation.is_of_all() && batch.has_apart();
        loop {
            if let Some(fault) = self.given_up() {
                batch.conclude_rest(&Verdict::Final(Err(fault.into())));
                return Ok(IsolationEnd::Done);
            }
            batch.hold();
            let parts = with_own_moments(batch, isolation.parts(batch));
            if parts.is_empty() {
                return Ok(IsolationEnd::Done);
            }
            match self.prepare(batch, &parts, false, tally).await?.0 {
                Trust::Good => {}
                Trust::Stale => {
                    return Ok(IsolationEnd::Stale(self.statements.prepared.take_changed()));
                }
                Trust::Locked(version, error) => {
                    let verdict = self.refused_verbatim(*error);
                    batch.without_table(parts, version, &verdict);
                    continue;
                }
            }
            let unproven = parts.iter().any(|part| batch.is_unproven(part));
            if unproven && self.used {
                tally.round_trips += 1;
                drop(self.wire.simple(FORGET).await?);
            }
            self.used = !unproven;
            let judged = self.attempt(batch, &mut isolation, parts, tally).await?;
            self.learn(batch, &judged.findings);
            if judged.is_fine() {
                self.commit(batch, &mut isolation, judged, tally).await?;
                isolation.progressed();
                if unproven {
                    self.behind_unproven(batch, false, tally).await?;
                }
                continue;
            }
            // If the transaction is already gone, this has no effect.
            tally.round_trips += 1;
            drop(self.wire.simple("ROLLBACK").await?);
            if unproven {
                self.behind_unproven(batch, false, tally).await?;
            }
            if let Some(fault) = judged.again {
                let again = Verdict::RolledBack(fault);
                conclude(batch, &judged.units, &again);
            }
            if judged.findings.stale {
                return Ok(IsolationEnd::Stale(judged.findings.changed));
            }
        }
    }

    /// Runs all round trips of a transaction except the commit.
    async fn attempt(
        &mut self,
        batch: &mut Batch<'_>,
        isolation: &mut Isolation,
        parts: Vec<Segment>,
        tally: &mut Tally,
    ) -> Result<Judged, Broken> {
        let units: Vec<u32> = parts.iter().flat_map(|part| part.units.clone()).collect();
        let at_once = batch.checks_at_once(&units);
        let mut judged = Judged::of(units);
        judged.at_once = at_once;
        let steps = [
            Some("BEGIN"),
            isolation.is_brief.then_some(BRIEFLY),
            at_once.then_some(AT_ONCE),
            Some("SAVEPOINT windrow"),
        ];
        let steps: Vec<&str> = steps.into_iter().flatten().collect();
        let open = steps.join("; ");
        let Some(leg) = self
            .leg(batch, isolation, Some(&open), parts, tally)
            .await?
        else {
            judged.rerun = true;
            return Ok(judged);
        };
        self.judge(batch, isolation, &mut judged).main(leg);
        let mut missing = std::mem::take(&mut judged.missing);
        missing.sort_unstable();
        self.judge(batch, isolation, &mut judged)
            .overtaken(&missing);
        if judged.is_fine() && !missing.is_empty() {
            let parts = Segment::pieces(&missing, 1, &Mode::Own);
            match self.leg(batch, isolation, None, parts, tally).await? {
                Some(leg) => self.judge(batch, isolation, &mut judged).missing(leg),
                None => judged.rerun = true,
            }
        }
        self.judge(batch, isolation, &mut judged).settle();
        Ok(judged)
    }

    fn judge<'j, 'u>(
        &'j mut self,
        batch: &'j mut Batch<'u>,
        isolation: &'j mut Isolation,
        judged: &'j mut Judged,
    ) -> Judge<'j, 'u> {
        Judge {
            connection: self,
            batch,
            isolation,
            judged,
        }
    }

    /// Runs one round trip of parts. Returns `None` if one of them cannot be encoded; nothing was
    /// sent then.
    async fn leg(
        &mut self,
        batch: &mut Batch<'_>,
        isolation: &mut Isolation,
        open: Option<&str>,
        parts: Vec<Segment>,
        tally: &mut Tally,
    ) -> Result<Option<Leg>, Broken> {
        let mut transactions = Vec::with_capacity(parts.len() + 1);
        transactions.extend(open.map(|sql| self.say(sql)));
        for part in parts {
            let mut sender = Sender {
                batch,
                prepared: &mut self.statements.prepared,
                out: self.wire.out(),
                scratch: &mut self.scratch,
                part: true,
            };
            match sender.send(part) {
                Ok(sent) => transactions.push(sent),
                Err(part) => {
                    self.wire.out().clear();
                    match part.units.as_slice() {
                        [unit] => batch.fail(*unit, unwritable()),
                        units => units
                            .iter()
                            .for_each(|unit| isolation.mark(*unit, Mode::Own)),
                    }
                    return Ok(None);
                }
            }
        }
        let (answered, ended) = self.answers_to((&transactions, None), tally).await;
        ended?;
        let mut leg: Leg = transactions.into_iter().zip(answered).collect();
        // Of Windrow's own statements, only the opening matters, and only if it failed.
        let failed = |(place, (_, answers)): (usize, &(SentTransaction, Answers))| {
            place == 0 && open.is_some() && answers.error.is_some()
        };
        let opened = !leg.iter().enumerate().any(failed);
        leg.retain(|(transaction, _)| !opened || !transaction.segment.units.is_empty());
        Ok(Some(leg))
    }

    /// Appends one of Windrow's own statements.
    fn say(&mut self, sql: &str) -> SentTransaction {
        let said = frontend::query(sql, self.wire.out());
        debug_assert!(said.is_ok(), "a text of ours holds no zero byte");
        SentTransaction::aside(self.wire.out().len())
    }

    /// Commits, and answers the units whose outcome is then certain.
    async fn commit(
        &mut self,
        batch: &mut Batch<'_>,
        isolation: &mut Isolation,
        judged: Judged,
        tally: &mut Tally,
    ) -> Result<(), Broken> {
        let end = self.say(COMMIT).end;
        let (mut refused, mut committed) = (None, false);
        let start = Instant::now();
        let ended = self
            .wire
            .exchange(1, &mut |answer| match answer {
                Answer::CommandComplete(tag) => committed = tag.is("COMMIT"),
                Answer::Error(error) => refused = Some(error),
                _ => {}
            })
            .await;
        tally.in_database += start.elapsed();
        tally.round_trips += 1;
        if let Err(broken) = ended {
            if !judged.reads && end <= broken.sent {
                let unknown = Verdict::Final(Err(broken.unknown().into()));
                conclude(batch, &judged.units, &unknown);
            }
            return Err(broken);
        }
        match refused {
            Some(error) => self.commit_refused(batch, isolation, &judged, error),
            None if committed => {
                tally.commits += u32::from(!judged.reads);
                for (sum, more) in tally.rungs.iter_mut().zip(judged.tally.rungs) {
                    *sum += more;
                }
                judged.tell(batch);
            }
            None => {
                let fault = Fault::internal("a transaction was rolled back in place of its commit");
                conclude(batch, &judged.units, &Verdict::RolledBack(fault));
            }
        }
        Ok(())
    }

    /// Handles a refused commit. The error names no write, so each unit has a transaction of its
    /// own from now on.
    fn commit_refused(
        &mut self,
        batch: &mut Batch<'_>,
        isolation: &mut Isolation,
        judged: &Judged,
        error: ServerError,
    ) {
        let meaning = ErrorMeaning::of_code(&error.code);
        self.usable &= meaning != ErrorMeaning::Leave;
        let verdict = match (meaning, judged.units.as_slice()) {
            (ErrorMeaning::Again | ErrorMeaning::Leave, _) => Verdict::RolledBack(error.into()),
            (ErrorMeaning::Unknown, _) => Verdict::Final(Err(unknown_commit(&error).into())),
            (_, [unit]) if batch.is_of_calls => {
                // Such clients get an answer to each statement, and the error after the last one.
                let writes = batch.writes_of(*unit);
                let done = batch.done.get_mut(writes).unwrap_or_default();
                let body = error.body.clone();
                Verdict::Final(Err(UnitFault {
                    at: done.len(),
                    before: done.iter_mut().map(std::mem::take).collect(),
                    fault: with_error(error.into(), &[], &body),
                }))
            }
            (_, [_]) => Verdict::Final(Err(refusal(0, error.into()))),
            _ => {
                isolation.is_one_by_one = true;
                return;
            }
        };
        conclude(batch, &judged.units, &verdict);
    }
}

/// Gives this verdict to those of the units that have none.
fn conclude(batch: &mut Batch<'_>, units: &[u32], verdict: &Verdict) {
    for unit in units {
        if let Some(slot) = batch.verdicts.get_mut(*unit as usize) {
            slot.get_or_insert_with(|| verdict.clone());
        }
    }
}
