//! Answers that the client has not got yet, in their order: those that wait for the outcome of a
//! unit, and those behind them.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{BufMut, BytesMut};
use smallvec::SmallVec;
use tokio::task::JoinHandle;
use windrow_core::intake::Receipt;
use windrow_core::{
    Budget, Fault, FaultClass, Outcomes, TracedRequest, UnitFault, UnitOutcome, WriteDone,
};
use windrow_idempotency::{Refused, without_mark};

use super::call_answer::{CallAnswer, say_fault};
use super::expected_answer::ExpectedAnswer;
use super::kept::{LateText, is_of_values};
use super::values::Values;
use crate::codec::{answer, failure};
use crate::statements::{PreparedStatement, PreparedStatements};

/// An answer that is sent once the outcome of a unit is known.
#[derive(Debug)]
pub(crate) struct Pending {
    /// The outcome that is awaited; `None` if the answer can be sent at once.
    pub(crate) awaited: Option<AwaitedOutcome>,
    /// The messages, complete.
    pub(crate) script: Script,
    /// The end of the answer.
    pub(crate) ending: AnswerEnd,
    /// The span of the unit, if it is traced. It ends with the answer.
    pub(crate) traced: Option<Box<TracedRequest>>,
    /// The expected answer, if it may be long.
    pub(crate) answer: Option<Box<ExpectedAnswer>>,
    /// The status in ReadyForQuery.
    pub(crate) status: u8,
}

/// An awaited outcome.
#[derive(Debug)]
pub(crate) enum AwaitedOutcome {
    /// The outcome of a lane.
    Lane(Receipt),
    /// The answer of the spool, in which each write counts one row.
    Spool(Receipt),
    /// The answer of the spool for a unit that begins with its key.
    KeyedSpool(Receipt),
    /// The outcome of rows that are committed under a key.
    Keyed(JoinHandle<KeyedOutcome>),
}

/// The outcome of rows that are committed under a key.
pub(crate) type KeyedOutcome = Result<Outcomes, Refused>;

impl AwaitedOutcome {
    /// Returns true if the outcome came from a batch with units of another source.
    fn is_shared(&self) -> bool {
        matches!(self, Self::Lane(receipt) if receipt.is_shared())
    }

    /// Returns the outcome, once it is known.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<UnitOutcome> {
        let unanswered = || Err(Fault::internal("a unit was not answered").into());
        match self {
            Self::Lane(receipt) => Pin::new(receipt)
                .poll(cx)
                .map(|mut outcomes| outcomes.pop().unwrap_or_else(unanswered)),
            Self::Spool(receipt) => Pin::new(receipt)
                .poll(cx)
                .map(|mut outcomes| outcomes.pop().map_or_else(unanswered, taken)),
            Self::KeyedSpool(receipt) => Pin::new(receipt)
                .poll(cx)
                .map(|mut outcomes| outcomes.pop().map(without_mark))
                .map(|outcome| outcome.map_or_else(unanswered, taken)),
            Self::Keyed(rows) => Pin::new(rows).poll(cx).map(|ended| match ended {
                Ok(Ok(mut outcomes)) => outcomes.pop().map_or_else(unanswered, committed),
                Ok(Err(refused)) => Err(refused.fault().clone().into()),
                Err(_) => unanswered(),
            }),
        }
    }
}

/// Returns the outcome of writes that the spool has accepted: each counts one row.
fn taken(outcome: UnitOutcome) -> UnitOutcome {
    match outcome {
        Ok(dones) => Ok(dones.iter().map(|_| WriteDone::rows(1)).collect()),
        Err(failed) => Err(failed.fault.into()),
    }
}

/// Returns the outcome of rows that were committed under a key, now or before.
fn committed(outcome: UnitOutcome) -> UnitOutcome {
    match outcome {
        Ok(dones) => Ok(dones
            .iter()
            .map(|done| WriteDone::rows(done.rows))
            .collect()),
        Err(failed) => Err(failed.fault.into()),
    }
}

/// The messages of an answer, and the positions among them of the results of calls.
#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(crate) text: BytesMut,
    pub(crate) calls: SmallVec<[CallAnswer; 1]>,
    pub(crate) lastvals: Vec<LastvalAnswer>,
    /// Changes of the unnamed statement after calls, if there are any.
    pub(crate) behind: Option<Box<ChangesBehind>>,
    /// The position of the answer to COMMIT, after that to BEGIN, if the calls are a block.
    pub(crate) commit: Option<NonZeroUsize>,
}

impl Script {
    /// Returns true if the client asks after the calls which values they took from sequences.
    pub(super) fn asks(&self) -> bool {
        !self.lastvals.is_empty()
    }
}

/// Changes of the unnamed statement in one segment, in order.
#[derive(Debug, Default)]
pub(crate) struct ChangesBehind {
    changes: Vec<ChangeBehind>,
    /// Number of changes that the session had counted at the end of the segment.
    counted: u64,
}

impl ChangesBehind {
    pub(crate) fn push(&mut self, change: ChangeBehind) {
        self.changes.push(change);
    }

    /// Notes the number of changes that the session has counted at the end of the segment.
    pub(crate) fn end(&mut self, counted: u64) {
        self.counted = counted;
    }
}

/// A change of the unnamed statement that the server skips if a call before it fails.
#[derive(Debug)]
pub(crate) struct ChangeBehind {
    /// The number of calls executed before it.
    pub(crate) after: usize,
    /// The statement before the change.
    pub(crate) before: Option<PreparedStatement>,
}

/// The position of the answer to `SELECT lastval()`, in a session in which it is defined.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastvalAnswer {
    /// The position in the text.
    pub(crate) at: usize,
    /// The number of calls executed before it.
    pub(crate) after: usize,
    pub(crate) binary: bool,
}

/// The end of an answer, after the script.
#[derive(Debug)]
pub(crate) enum AnswerEnd {
    /// Nothing, because the client has asked for the answers so far.
    Open,
    /// ReadyForQuery after an extended segment.
    Sync,
    /// ReadyForQuery after a simple query.
    Query,
    /// The end of the answer to COMMIT, and ReadyForQuery.
    Commit(Box<CommitAnswer>),
}

/// The end of the answer to COMMIT of writes that were answered before.
#[derive(Debug)]
pub(crate) struct CommitAnswer {
    /// Messages that confirm the commit.
    done: BytesMut,
    /// The texts of the writes, if their errors may be reported now.
    texts: Box<[LateText]>,
}

impl CommitAnswer {
    /// Returns the answer. `done`: messages that confirm the commit; `texts`: of the writes, if
    /// their errors may be reported at COMMIT.
    pub(super) fn new(done: BytesMut, texts: Box<[LateText]>) -> Box<Self> {
        Box::new(Self { done, texts })
    }

    /// Writes the error of a write, or of all of them.
    fn say_fault(&self, UnitFault { fault, before, .. }: UnitFault, out: &mut BytesMut) {
        let text = self.texts.get(before.len());
        let fault = at_commit(cancelled_by_client(fault), text.is_some());
        match text {
            Some(text) => failure::late(out, &fault, text.beginning()),
            None => failure::fault(out, &fault),
        }
    }
}

/// The most units of one client under way. A client that pipelines more is read more slowly.
const MAX_UNDER_WAY: usize = 128;

/// The part of the memory for answers that one session may hold for awaited answers, and the least
/// of it in bytes: as much as a session may have to send anyway.
const SHARE: usize = 32;
const MIN_SHARE_BYTES: usize = 64 << 10;

/// The answers that the client has not got yet, in their order.
#[derive(Debug, Default)]
pub(crate) struct PendingAnswers {
    queue: VecDeque<Pending>,
    /// The memory held for awaited answers, in bytes.
    held: usize,
}

impl PendingAnswers {
    /// Adds an answer after all others.
    pub(super) fn push(&mut self, pending: Pending) {
        self.held += pending.held();
        self.queue.push_back(pending);
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Returns true if an answer satisfies `such`.
    pub(super) fn any(&self, such: fn(&Pending) -> bool) -> bool {
        self.queue.iter().any(such)
    }

    /// Returns true if the session may submit no more for now: it has the most units under way, has
    /// used its share of the memory for answers, or has a transaction block under way, on whose end
    /// the next statement depends.
    pub(super) fn is_full(&self, budget: &Budget) -> bool {
        let share = (budget.answers().total() / SHARE).max(MIN_SHARE_BYTES);
        let is_many = self.queue.len() >= MAX_UNDER_WAY;
        let last = self.queue.back();
        is_many || (self.held > 0 && self.held >= share) || last.is_some_and(Pending::is_block)
    }

    /// Takes the first answer, once its outcome is known; `None` if there is no answer.
    pub(super) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<(Pending, Option<UnitOutcome>)>> {
        let awaited = self
            .queue
            .front_mut()
            .and_then(|front| front.awaited.as_mut());
        let outcome = match awaited {
            Some(awaited) => Some(ready!(awaited.poll(cx))),
            None => None,
        };
        let first = self.queue.pop_front();
        self.held -= first.as_ref().map_or(0, Pending::held);
        Poll::Ready(first.map(|first| (first, outcome)))
    }
}

impl Pending {
    /// Returns an answer that can be sent at once.
    pub(crate) fn new(script: Script, ending: AnswerEnd) -> Self {
        Self {
            awaited: None,
            script,
            ending,
            traced: None,
            answer: None,
            status: b'I',
        }
    }

    /// Returns the memory held for the answer, in bytes.
    fn held(&self) -> usize {
        let answer = self.answer.as_ref();
        answer.map_or(0, |answer| answer.permit.bytes())
    }

    /// Returns true if its calls are a transaction block.
    fn is_block(&self) -> bool {
        self.script.commit.is_some()
    }

    /// Returns true if the outcome leaves the session in a failed transaction block: the server
    /// skips COMMIT if a statement before it fails.
    pub(crate) fn leaves_failed_block(&self, outcome: Option<&UnitOutcome>) -> bool {
        let calls = self.script.calls.len();
        let failed = outcome.is_some_and(|outcome| match outcome {
            Ok(_) => false,
            Err(failed) => failed.before.len() < calls,
        });
        self.is_block() && failed
    }

    /// Returns true if its outcome came from a batch with units of another source.
    pub(crate) fn is_shared(&self) -> bool {
        self.awaited.as_ref().is_some_and(AwaitedOutcome::is_shared)
    }

    /// Returns true if a lane has the unit.
    pub(crate) fn is_of_lane(&self) -> bool {
        matches!(
            self.awaited,
            Some(AwaitedOutcome::Lane(_) | AwaitedOutcome::Keyed(_))
        )
    }

    /// Returns true if the unit is written as rows: by the spool, or under a key.
    pub(crate) fn is_of_rows(&self) -> bool {
        self.is_of_spool() || matches!(self.awaited, Some(AwaitedOutcome::Keyed(_)))
    }

    /// Returns true if the spool has the unit.
    pub(crate) fn is_of_spool(&self) -> bool {
        let of_spool = |a: &AwaitedOutcome| {
            matches!(a, AwaitedOutcome::Spool(_) | AwaitedOutcome::KeyedSpool(_))
        };
        self.awaited.as_ref().is_some_and(of_spool)
    }

    /// Returns true if the unnamed statement is changed after calls that may fail.
    pub(crate) fn may_take_back(&self) -> bool {
        self.script.behind.is_some()
    }

    /// Reverts those changes of the unnamed statement that the server has skipped, unless it was
    /// changed again since.
    pub(crate) fn take_back(&mut self, outcome: &UnitOutcome, statements: &mut PreparedStatements) {
        let Err(failed) = outcome else { return };
        let done = failed.before.len();
        let behind = self.script.behind.take();
        if let Some(behind) = behind.filter(|behind| behind.counted == statements.changes()) {
            let mut changes = behind.changes.into_iter();
            if let Some(passed_over) = changes.find(|change| change.after > done) {
                statements.set(b"", passed_over.before);
            }
        }
    }

    /// Writes the whole answer. `outcome`: of the unit, if there is one.
    pub(crate) fn say(
        mut self,
        outcome: Option<UnitOutcome>,
        out: &mut BytesMut,
        values: &mut Values,
        stopping: bool,
    ) {
        if let Some(traced) = self.traced.take() {
            if let Some(Err(failed)) = &outcome {
                traced.fails(&failed.fault.code);
            }
            traced.end(false);
        }
        match (outcome, &self.ending) {
            (None, _) => out.put_slice(&self.script.text),
            (Some(outcome), AnswerEnd::Commit(end)) => {
                out.put_slice(&self.script.text);
                match outcome {
                    Ok(dones) => {
                        dones.iter().for_each(|done| values.note(done));
                        out.put_slice(&end.done);
                    }
                    Err(failed) if stopping => failure::fault(out, &failed.fault),
                    Err(failed) => end.say_fault(failed, out),
                }
            }
            (Some(Ok(dones)), _) => self.say_done(&dones, None, out, values),
            (Some(Err(UnitFault { fault, before, .. })), _) => {
                let fault = if stopping {
                    fault
                } else {
                    cancelled_by_client(fault)
                };
                self.say_done(&before, Some(&fault), out, values);
            }
        }
        if !matches!(self.ending, AnswerEnd::Open) {
            answer::ready(out, self.status);
        }
    }

    fn say_done(
        &self,
        dones: &[WriteDone],
        fault: Option<&Fault>,
        out: &mut BytesMut,
        values: &mut Values,
    ) {
        let Script {
            text,
            calls,
            commit,
            ..
        } = &self.script;
        let failed = calls.get(dones.len());
        // The server's messages before the call or the COMMIT that failed; all of them if the
        // failure came after all calls.
        let end = match (fault, failed) {
            (Some(fault), Some(said)) if is_bound(fault) => said.done,
            (Some(_), Some(said)) => said.bound,
            (Some(_), None) => commit.map_or(text.len(), NonZeroUsize::get),
            (None, _) => text.len(),
        };
        let mut from = 0;
        self.say_lastval(0, &mut from, end, values, out);
        for (nth, (said, done)) in calls.iter().zip(dones).enumerate() {
            values.note(done);
            if said.done <= end {
                let before = text.get(from..said.done).unwrap_or_default();
                said.say_before(before, done, out);
                from = said.done;
                // The last statement of a simple query commits before the server reports that it is
                // complete.
                let commits = commit.is_none() && nth + 1 == calls.len();
                said.say(done, fault.is_some() && commits, out);
            }
            self.say_lastval(nth + 1, &mut from, end, values, out);
        }
        // A failed call keeps the types that it was expected to have.
        let undone = calls.iter().skip(dones.len());
        for fresh in undone.filter_map(|said| said.fresh.as_ref()) {
            fresh.fixed.set(&fresh.signature);
        }
        out.put_slice(text.get(from..end).unwrap_or_default());
        if let Some(fault) = fault {
            say_fault(fault, failed, out);
        }
    }

    /// Writes the answers to questions between two calls.
    fn say_lastval(
        &self,
        after: usize,
        from: &mut usize,
        end: usize,
        values: &Values,
        out: &mut BytesMut,
    ) {
        let Script { text, lastvals, .. } = &self.script;
        let lastvals = lastvals.iter().filter(|one| one.after == after);
        for one in lastvals.filter(|one| one.at <= end) {
            out.put_slice(text.get(*from..one.at).unwrap_or_default());
            *from = one.at;
            answer::number(out, values.last().unwrap_or_default(), one.binary);
        }
    }
}

/// Returns true if a call failed after its BindComplete. An error that is not in the server's words
/// concerns the whole transaction.
fn is_bound(fault: &Fault) -> bool {
    let messages = fault.verbatim();
    messages.is_none_or(|messages| messages.starts_with(Fault::BIND_COMPLETE))
}

/// Returns the error of a client's cancel request, if a unit was taken out of its lane although the
/// gateway is not stopping.
pub(super) fn cancelled_by_client(fault: Fault) -> Fault {
    match fault.class {
        FaultClass::Cancelled => Fault::new(
            FaultClass::Cancelled,
            "57014",
            "canceling statement due to user request",
        ),
        _ => fault,
    }
}

/// Returns the error of a COMMIT that stores writes answered before. `is_late`: errors of the write
/// may be reported late. A value or right that the server refuses now was accepted when it was
/// answered.
fn at_commit(fault: Fault, is_late: bool) -> Fault {
    let is_known = is_late
        || !["22", "42"]
            .iter()
            .any(|class| fault.code.starts_with(class));
    if is_known && is_of_values(&fault.code, &fault.message) {
        return fault;
    }
    let text = format!(
        "a table was changed after its rows of this transaction were answered, so they cannot be stored; nothing was executed, try again: {}",
        fault.message
    );
    Fault::new(FaultClass::Conflict, "40001", text)
}
