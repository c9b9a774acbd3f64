//! Appends the units of an intake to a log, and answers each once it is durable.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesOrdered;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use windrow_core::{
    Arrivals, Backoff, Dones, Fault, FaultClass, Outcomes, Retry, Submission, UnitOutcome,
    WriteDone,
};

use crate::codec::Encoder;
use crate::entry::{Batch, Position};
use crate::fault::SpoolFault;
use crate::options::Options;
use crate::port::Log;

/// The most appends under way. While one is being synced the next is encoded, so that neither the
/// disk nor the processor waits for the other.
const UNDER_WAY: usize = 4;

/// The bytes from which on encoding is worthwhile before the append under way has ended. Fewer
/// bytes wait for its end, so that all that arrive until then share the next sync.
const MANY: usize = 64 << 10;

/// The most submissions taken from the intake at once.
const AT_ONCE: usize = 256;

/// The first and the longest delay before submissions that the log refused are appended again.
const DELAYS: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(2)];

/// Takes units from an intake and appends each of them to a log as one entry.
///
/// A unit is answered with success once it is durable, with one default [`WriteDone`] for each
/// write, because the database's outcome is not known yet. Units that were not kept are answered
/// with the log's fault; a unit that is too large does not affect others. A submission is dropped
/// if its client has left before any part of it was appended. A persistent submission
/// ([`RetryPolicy::persistent`](windrow_core::RetryPolicy::persistent)) is appended again, as a
/// whole, until the log keeps it or is closed.
#[derive(Debug)]
pub struct Appender {
    submissions: mpsc::Receiver<Submission>,
    log: Arc<dyn Log>,
    /// The most bytes of an append with more than one entry.
    most: usize,
    encoder: Encoder,
    /// The unanswered units, in order.
    held: VecDeque<HeldUnit>,
    /// The index of the first submission of `held` that was not appended completely.
    next: usize,
    /// Persistent submissions that the log refused, and later ones, in order.
    refused: VecDeque<HeldUnit>,
    /// The time at which they are appended again.
    again_at: Option<Instant>,
    backoff: Backoff,
    /// True while more submissions may come.
    is_open: bool,
}

/// A submission that is being appended.
#[derive(Debug)]
struct HeldUnit {
    submission: Submission,
    /// Units that were passed to the log.
    sent: usize,
    /// The outcomes of the first units.
    outcomes: Outcomes,
}

/// The result of an append, and its number of units.
type Appended = (Result<Position, SpoolFault>, usize);

impl Appender {
    /// Returns an appender for an intake. `options`: those of the log's spool.
    pub fn new(arrivals: Arrivals, log: Arc<dyn Log>, options: &Options) -> Self {
        Self {
            // Hints are about waiting for a database, which a spool does not.
            submissions: arrivals.submissions,
            log,
            most: options.max_append.min(options.group_bytes),
            encoder: Encoder::new(),
            held: VecDeque::new(),
            next: 0,
            refused: VecDeque::new(),
            again_at: None,
            backoff: Backoff::new(DELAYS[0], DELAYS[1]),
            is_open: true,
        }
    }

    /// Appends until all intakes are dropped, or until `stop` is cancelled. Then it accepts nothing
    /// more, finishes its units, and ends.
    ///
    /// Not cancel safe: units of a dropped future may become durable without an answer.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut appends = FuturesOrdered::new();
        let mut taken = Vec::new();
        loop {
            while (appends.is_empty() || appends.len() < UNDER_WAY && self.has_more())
                && let Some(batch) = self.form()
            {
                let (log, units) = (Arc::clone(&self.log), batch.len());
                appends.push_back(async move { (log.append(batch).await, units) });
            }
            if !self.is_open && appends.is_empty() {
                return;
            }
            // Handling a finished append first keeps the next ones in the order of the log.
            tokio::select! {
                biased;
                Some(appended) = appends.next(), if !appends.is_empty() => self.settle(&appended),
                () = stop.cancelled(), if !self.submissions.is_closed() => self.submissions.close(),
                () = wait_until(self.again_at) => self.append_again(),
                count = self.submissions.recv_many(&mut taken, AT_ONCE),
                    if self.is_open && appends.len() < UNDER_WAY => {
                        self.is_open = count > 0;
                        taken.drain(..).for_each(|submission| self.take(submission));
                        if !self.is_open {
                            self.append_again();
                        }
                    }
            }
        }
    }

    fn take(&mut self, submission: Submission) {
        let follows = submission.policy.is_persistent() && !self.refused.is_empty();
        let queue = match follows {
            true => &mut self.refused,
            false => &mut self.held,
        };
        queue.push_back(HeldUnit::new(submission));
    }

    fn append_again(&mut self) {
        self.again_at = None;
        let refused = self.refused.drain(..);
        self.held
            .extend(refused.map(|held| HeldUnit::new(held.submission)));
    }

    /// Answers a submission, unless it is to be appended again.
    fn finish(&mut self, held: HeldUnit) {
        if self.is_open && held.is_refused() {
            self.refused.push_back(held);
            let backoff = &mut self.backoff;
            self.again_at
                .get_or_insert_with(|| Instant::now() + backoff.delay());
        } else {
            held.answer();
        }
    }

    /// True if another append may begin before the one under way has ended: many bytes wait, and
    /// none of their units must follow one that the log may refuse.
    fn has_more(&self) -> bool {
        let mut held = self.held.iter();
        !held.any(|held| held.submission.policy.is_persistent()) && self.has_many()
    }

    /// True if many bytes wait to be appended.
    fn has_many(&self) -> bool {
        let mut bytes = 0;
        let mut waiting = self.held.range(self.next..);
        waiting.any(|held| {
            bytes += held.submission.permit.bytes();
            bytes >= MANY.min(self.most)
        })
    }

    /// Returns the next batch; `None` if no unit waits.
    fn form(&mut self) -> Option<Batch> {
        let mut batch = Batch::new();
        while let Some(held) = self.held.get_mut(self.next) {
            if held.needs_nothing() {
                if let Some(done) = self.held.remove(self.next) {
                    done.answer();
                }
                continue;
            }
            while let Some(unit) = held.submission.units.get(held.sent) {
                batch.push_with(|bytes| self.encoder.unit(unit.writes(), bytes));
                if batch.len() > 1 && on_disk(&batch) > self.most {
                    // The entry begins the next batch.
                    batch.pop();
                    return Some(batch);
                }
                held.sent += 1;
            }
            self.next += 1;
        }
        (!batch.is_empty()).then_some(batch)
    }

    /// Gives the units of an append their outcome. Appends end in the order in which they began.
    fn settle(&mut self, (done, units): &Appended) {
        let mut left = *units;
        while left > 0
            && let Some(held) = self.held.front_mut()
        {
            left -= held.settle(done, left);
            if held.outcomes.len() < held.submission.units.len() {
                break;
            }
            self.next -= 1;
            if let Some(held) = self.held.pop_front() {
                self.finish(held);
            }
        }
        match done {
            Ok(_) => self.backoff.reset(),
            Err(_) => self.hold_back(),
        }
    }

    /// Moves persistent submissions behind earlier ones that the log refused. No append under way
    /// contains one of them: see [`Appender::has_more`].
    fn hold_back(&mut self) {
        // The log refused a part of this submission; the rest was not sent.
        let front = self.held.front();
        if self.is_open
            && front.is_some_and(HeldUnit::is_refused)
            && let Some(held) = self.held.pop_front()
        {
            self.finish(held);
        }
        if self.refused.is_empty() {
            return;
        }
        let unsent = self.held.split_off(self.next).into_iter();
        let (follow, stay): (Vec<_>, Vec<_>) =
            unsent.partition(|held| held.submission.policy.is_persistent());
        self.held.extend(stay);
        self.refused.extend(follow);
    }
}

impl HeldUnit {
    fn new(submission: Submission) -> Self {
        Self {
            submission,
            sent: 0,
            outcomes: Outcomes::new(),
        }
    }

    /// True if the client no longer waits for the submission, or if it is empty.
    fn needs_nothing(&self) -> bool {
        let abandoned = self.sent == 0 && self.submission.reply.is_abandoned();
        abandoned || self.submission.units.is_empty()
    }

    /// True if the log may keep the units later and their source waits for that.
    fn is_refused(&self) -> bool {
        let faults = self
            .outcomes
            .iter()
            .filter_map(|outcome| outcome.as_ref().err());
        let mut faults = faults.map(|failed| &failed.fault);
        self.submission.policy.is_persistent()
            && faults.any(|f| f.retry() != Retry::Never && f.class != FaultClass::Cancelled)
    }

    /// Sets the outcome of at most `most` units that were sent, and returns their number.
    fn settle(&mut self, done: &Result<Position, SpoolFault>, most: usize) -> usize {
        let from = self.outcomes.len();
        let sent = self.submission.units.get(from..self.sent);
        let units = sent.unwrap_or_default().iter().take(most);
        let outcome = |writes: usize| -> UnitOutcome {
            match done {
                Ok(_) => Ok(Dones::from_elem(WriteDone::default(), writes)),
                Err(fault) => Err(Fault::from(fault.clone()).into()),
            }
        };
        self.outcomes
            .extend(units.map(|unit| outcome(unit.writes().len())));
        self.outcomes.len() - from
    }

    /// Answers the client, and frees the memory.
    fn answer(self) {
        self.submission.reply.send(self.outcomes);
    }
}

async fn wait_until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

fn on_disk(batch: &Batch) -> usize {
    batch.bytes() + batch.len() * Options::PER_ENTRY
}
