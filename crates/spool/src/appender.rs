//! The end of an intake that is a log: units are answered once they are durable.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesOrdered;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use windrow_core::{Arrivals, Dones, Fault, Outcomes, Submission, UnitOutcome, WriteDone};

use crate::codec::Encoder;
use crate::entry::{Batch, Position};
use crate::fault::SpoolFault;
use crate::options::Options;
use crate::port::Log;

/// Appends under way at most. While one is being synced the next is encoded, so that neither the
/// disk nor the processor waits for the other.
const UNDER_WAY: usize = 4;

/// Bytes from which on encoding is worthwhile before the append under way has ended. Fewer bytes
/// wait for its end: all that arrive until then share the next sync.
const MANY: usize = 64 << 10;

/// Submissions that are taken from the intake at once.
const AT_ONCE: usize = 256;

/// Takes units from an intake and appends each of them to a log as one entry.
///
/// A unit is answered with success once it is durable, with one default [`WriteDone`] for each
/// write: what the database will say is not known yet. Units that were not kept are answered with
/// the log's fault; one that is too large does not keep others out. A submission whose client has
/// left before any of it was handed to the log is left out.
#[derive(Debug)]
pub struct Appender {
    submissions: mpsc::Receiver<Submission>,
    log: Arc<dyn Log>,
    /// Bytes of an append at most, unless it has one entry.
    most: usize,
    encoder: Encoder,
    /// The units that are not answered yet, in order.
    held: VecDeque<HeldUnit>,
    /// The first of it that the log does not have as a whole.
    next: usize,
}

/// A submission on its way.
#[derive(Debug)]
struct HeldUnit {
    submission: Submission,
    /// Units that were handed to the log.
    sent: usize,
    /// Of the first of those.
    outcomes: Outcomes,
}

/// The result of an append of so many units.
type Appended = (Result<Position, SpoolFault>, usize);

impl Appender {
    /// The other end of an intake. `options`: those of the log's spool.
    pub fn new(arrivals: Arrivals, log: Arc<dyn Log>, options: &Options) -> Self {
        Self {
            // Hints are about what waits for a database, and nothing does here.
            submissions: arrivals.submissions,
            log,
            most: options.max_append.min(options.group_bytes),
            encoder: Encoder::new(),
            held: VecDeque::new(),
            next: 0,
        }
    }

    /// Appends until all intakes are gone, or until `stop` is cancelled. Then it takes nothing
    /// more, finishes the units that it has, and ends.
    ///
    /// Not cancel safe: units of a dropped future may become durable without an answer.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut appends = FuturesOrdered::new();
        let mut taken = Vec::new();
        let mut open = true;
        loop {
            while (appends.is_empty() || appends.len() < UNDER_WAY && self.has_many())
                && let Some(batch) = self.form()
            {
                let (log, units) = (Arc::clone(&self.log), batch.len());
                appends.push_back(async move { (log.append(batch).await, units) });
            }
            if !open && appends.is_empty() {
                return;
            }
            // The first branch also hands what is new to the log, in its order.
            tokio::select! {
                biased;
                Some(appended) = appends.next(), if !appends.is_empty() => self.settle(&appended),
                () = stop.cancelled(), if !self.submissions.is_closed() => self.submissions.close(),
                count = self.submissions.recv_many(&mut taken, AT_ONCE),
                    if open && appends.len() < UNDER_WAY => {
                        open = count > 0;
                        self.held.extend(taken.drain(..).map(HeldUnit::new));
                    }
            }
        }
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
                    // It begins the next one.
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
            let taken = held.settle(done, left);
            left -= taken;
            if held.outcomes.len() < held.submission.units.len() {
                return;
            }
            self.next -= 1;
            if let Some(done) = self.held.pop_front() {
                done.answer();
            }
        }
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

    /// True where nobody waits for it any more, or nothing is asked for.
    fn needs_nothing(&self) -> bool {
        let abandoned = self.sent == 0 && self.submission.reply.is_abandoned();
        abandoned || self.submission.units.is_empty()
    }

    /// Gives as many of its units an outcome as were sent, `most` at most. Gives their number.
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

    /// Tells its client, and gives its memory back.
    fn answer(self) {
        self.submission.reply.send(self.outcomes);
    }
}

fn on_disk(batch: &Batch) -> usize {
    batch.bytes() + batch.len() * Options::PER_ENTRY
}
