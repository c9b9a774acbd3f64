//! Answers the units of a batch that has landed, or lets them run again.

use std::collections::HashMap;
use std::time::Duration;

use foldhash::fast::RandomState;
use tokio::time::Instant;
use windrow_core::{Fault, FaultClass, Retry, Unit, UnitOutcome, Units, Verdict};

use super::Worker;
use super::lock_waits::LockWaitRun;
use crate::away::held_in_vain;
use crate::batch::{Manifest, Span};
use crate::connections::Flight;
use crate::message::LandedBatch;
use crate::pace::Landing;
use crate::queue::{Chunk, RetryPlan};

/// Units of a landed batch that are not answered.
struct Unanswered {
    /// Units to be run again, in the order of the batch.
    retries: Vec<RetryRun>,
    /// True if another transaction was in the way of some of them.
    conflict: bool,
    /// True if another process held the whole database.
    held: bool,
    /// True if some of them run again after a fault that would otherwise be their client's answer.
    outlasts: bool,
    /// Units to be run alone.
    lock_waits: Vec<LockWaitRun>,
    /// Sources of unanswered units; true if one of those goes back into the queue.
    open: HashMap<usize, bool, RandomState>,
    /// Sources whose clients have cancelled their first unanswered unit, with the time of the
    /// request.
    called_back: Vec<(usize, Instant)>,
}

/// Consecutive units of one submission that run again.
struct RetryRun {
    span: Span,
    units: Vec<Unit>,
    /// True if the units were tried; false if they wait for earlier ones of their source.
    tried: bool,
}

impl Worker {
    /// Handles the end of a flight.
    pub(super) fn landed(&mut self, connection: u64, landed: LandedBatch) {
        let now = Instant::now();
        let Some(flight) = self
            .connections
            .landed(connection, landed.report.usable, now)
        else {
            return;
        };
        let clean = landed.report.usable && landed.units.is_empty();
        let Manifest {
            rows,
            departed,
            cut,
            retry,
            ..
        } = flight.manifest;
        let units: usize = flight.manifest.spans.iter().map(|span| span.count).sum();
        let (waited, flying, is_apart) = (flight.waited, flight.flying, flight.is_apart);
        let sources = self.ledger.queue.sources();
        self.company = units > 1;
        self.ledger.count_batch(rows, &landed.report.tally);
        if self.ledger.tickets.is_traced() {
            let lane = (&*self.name, self.sink.system());
            self.ledger
                .trace(lane, &flight.manifest, &landed.report, now);
        }
        self.unload(flight, landed);
        let took = departed.map_or(Duration::ZERO, |left| now.saturating_duration_since(left));
        if is_apart {
            self.landed_apart(took, now);
            return;
        }
        if !clean || retry {
            self.pace.disturbed();
            self.gather.disturbed();
            return;
        }
        let at = now.saturating_duration_since(self.started);
        self.usual.landed(took);
        let back = self.gather.landed(at, took, units, flying);
        self.pace.landed(Landing {
            at,
            took,
            rows,
            cut,
            waited,
            back,
            flying,
            connected: self.connections.connected(),
            sources,
        });
    }

    /// Answers the units that have an outcome, and puts the others where they go on from.
    pub(super) fn unload(&mut self, flight: Flight, landed: LandedBatch) {
        let manifest = flight.manifest;
        let mut unanswered = Unanswered::new(flight.called_back);
        let mut verdicts = landed.report.verdicts.into_iter();
        let mut units = landed.units.into_iter();
        let is_shared = manifest.sources.len() > 1;
        for span in &manifest.spans {
            for offset in 0..span.count {
                let (verdict, unit) = (verdicts.next(), units.next());
                match verdict {
                    Some(Verdict::Final(outcome)) => {
                        if is_shared {
                            self.ledger.tickets.share(span.ticket);
                        }
                        self.end(span, offset, outcome, unit, &mut unanswered);
                    }
                    Some(verdict) => self.keep(span, offset, verdict, unit, &mut unanswered),
                    None => self.tell(span, offset, Err(unreported().into())),
                }
            }
        }
        self.ledger.count.replayed(landed.replayed);
        let lock_waits = std::mem::take(&mut unanswered.lock_waits);
        self.put_back(unanswered, &manifest);
        let held = |key: usize| lock_waits.iter().any(|run| run.source == key);
        self.ledger.queue.release(flight.id, &manifest, held);
        for run in lock_waits {
            if let Some(arrived) = run.oldest() {
                self.late.waits(arrived);
            }
            let number = self.next_flight;
            self.next_flight += 1;
            self.lock_waits.begin(number, run, &mut self.ledger);
        }
    }

    /// Answers a unit with its outcome. If its policy outlasts the fault, the unit runs again
    /// instead.
    fn end(
        &mut self,
        span: &Span,
        offset: usize,
        outcome: UnitOutcome,
        unit: Option<Unit>,
        unanswered: &mut Unanswered,
    ) {
        match (outcome, unit) {
            (Err(failed), Some(unit)) if self.outlasts(span, failed.fault.retry()) => {
                self.ledger.meters.retried.inc();
                unanswered.outlasts = true;
                unanswered.retry(span, offset, unit, true);
                unanswered.open.insert(span.source, true);
                if failed.fault.retry() == Retry::OutcomeUnknown {
                    let (tickets, index) = (&mut self.ledger.tickets, span.first + offset);
                    tickets.note_unknown(span.ticket, index, failed.fault);
                }
            }
            (outcome, _) => self.tell(span, offset, outcome),
        }
    }

    fn tell(&mut self, span: &Span, offset: usize, outcome: UnitOutcome) {
        self.ledger.count.outcome(&outcome);
        self.note_source(span, &outcome);
        self.ledger
            .tickets
            .tell(span.ticket, span.first + offset, outcome);
    }

    /// Counts the outcome of a unit for its source.
    fn note_source(&mut self, span: &Span, outcome: &UnitOutcome) {
        let has_failed = outcome.as_ref().is_err_and(|f| f.fault.is_own());
        self.ledger.queue.note(span.source, has_failed);
    }

    /// Keeps a unit that was certainly not written, if it may run again. Once a unit goes back into
    /// the queue, so do the later ones of its source.
    fn keep(
        &mut self,
        span: &Span,
        offset: usize,
        verdict: Verdict,
        unit: Option<Unit>,
        unanswered: &mut Unanswered,
    ) {
        let waits = matches!(verdict, Verdict::WaitsForLock(_));
        if self.is_given_up(span, offset, waits, unanswered) {
            // The later units of its source were held back for it.
            unanswered.open.entry(span.source).or_insert(false);
            return;
        }
        let before = unanswered.open.get(&span.source).copied();
        let queued = before == Some(true);
        let queues = match (verdict, unit) {
            (Verdict::RolledBack(fault), Some(unit)) if self.may_run_again(span, &fault) => {
                self.ledger.meters.retried.inc();
                unanswered.conflict |= fault.class == FaultClass::Conflict;
                unanswered.held |= is_held(&fault);
                unanswered.retry(span, offset, unit, true);
                true
            }
            (Verdict::WaitsForLock(_), Some(unit)) if !queued => {
                self.ledger.meters.alone.inc();
                LockWaitRun::add(&mut unanswered.lock_waits, span, offset, unit);
                false
            }
            (Verdict::WaitsForLock(_) | Verdict::NotTried, Some(unit)) if before.is_some() => {
                unanswered.retry(span, offset, unit, false);
                true
            }
            (Verdict::RolledBack(fault), _) if is_held(&fault) => {
                let policy = self.ledger.tickets.policy(span.ticket);
                let waited = policy.away_wait(self.limits.away_wait);
                let fault = held_in_vain(&fault, waited);
                self.tell(span, offset, Err(fault.into()));
                queued
            }
            (Verdict::RolledBack(fault) | Verdict::WaitsForLock(fault), _) => {
                self.tell(span, offset, Err(fault.into()));
                queued
            }
            (Verdict::NotTried, _) => {
                self.tell(span, offset, Err(held_by_nobody().into()));
                queued
            }
            (Verdict::Final(outcome), _) => {
                self.tell(span, offset, outcome);
                return;
            }
        };
        unanswered.open.insert(span.source, queued || queues);
    }

    /// True if a unit runs again after a fault that would otherwise be its client's answer. A lane
    /// that is ending does not wait for others to act.
    fn outlasts(&self, span: &Span, retry: Retry) -> bool {
        let policy = self.ledger.tickets.policy(span.ticket);
        policy.outlasts(retry, span.arrived.elapsed())
            && (self.open || retry == Retry::OutcomeUnknown)
    }

    /// True if a unit that failed through no fault of its own runs again.
    fn may_run_again(&self, span: &Span, fault: &Fault) -> bool {
        let (attempts, waited) = (span.attempts + 1, span.arrived.elapsed());
        let policy = self.ledger.tickets.policy(span.ticket);
        policy.allows(fault.retry(), attempts, waited, self.limits.away_wait)
    }

    /// Answers or drops a unit that was not written and whose client does not wait for it any more;
    /// returns true then. `waits`: the unit is about to wait for a lock.
    fn is_given_up(
        &mut self,
        span: &Span,
        offset: usize,
        waits: bool,
        unanswered: &mut Unanswered,
    ) -> bool {
        if self.ledger.forgo_abandoned(span.ticket) {
            return true;
        }
        let called_back = unanswered.is_called_back(span);
        if called_back || (waits && self.ledger.queue.is_closed(span.source)) {
            self.tell(span, offset, Err(Fault::called_back().into()));
            return true;
        }
        false
    }

    /// Puts units back to the front of their sources. Those that were tried travel in batches of
    /// half the size. If another process held the whole database, the size stays the same: none of
    /// the units is to blame.
    fn put_back(&mut self, unanswered: Unanswered, batch: &Manifest) {
        let Unanswered {
            retries,
            conflict,
            held,
            outlasts,
            ..
        } = unanswered;
        let tried = retries.iter().filter(|run| run.tried);
        let attempts = tried.map(|run| run.span.attempts + 1).max();
        let delay = attempts
            .and_then(|attempts| match (outlasts, conflict) {
                (true, _) => Some(self.unknown_backoff.delay_after(attempts)),
                (_, true) => Some(self.conflict_backoff.delay_after(attempts)),
                _ => None,
            })
            .filter(|delay| !delay.is_zero());
        let retry = attempts.map(|attempts| RetryPlan {
            attempts,
            rows: match held {
                true => usize::MAX,
                false => (batch.rows / 2).max(1),
            },
            at: delay.map(|delay| Instant::now() + delay),
        });
        if attempts.is_some() {
            let units: usize = retries.iter().map(|run| run.units.len()).sum();
            tracing::debug!(lane = %self.name, units, attempts, ?delay, "rolled back, to be run again");
        }
        for run in retries.into_iter().rev() {
            let chunk = Chunk {
                ticket: run.span.ticket,
                first: run.span.first,
                units: Units::from(run.units).into_iter(),
                arrived: run.span.arrived,
                retry: match run.tried {
                    true => retry,
                    false => as_before(&run.span),
                },
            };
            self.late.waits(run.span.arrived);
            self.ledger.queue.put_back(run.span.source, chunk);
        }
    }
}

impl Unanswered {
    fn new(called_back: Vec<(usize, Instant)>) -> Self {
        Self {
            retries: Vec::new(),
            conflict: false,
            held: false,
            outlasts: false,
            lock_waits: Vec::new(),
            open: HashMap::default(),
            called_back,
        }
    }

    /// True for the first unit of a source whose client has cancelled.
    fn is_called_back(&mut self, span: &Span) -> bool {
        let meant =
            |(source, asked): &(usize, Instant)| *source == span.source && span.arrived <= *asked;
        let place = self.called_back.iter().position(meant);
        place.is_some_and(|place| {
            self.called_back.swap_remove(place);
            true
        })
    }

    fn retry(&mut self, span: &Span, offset: usize, unit: Unit, tried: bool) {
        let first = span.first + offset;
        match self.retries.last_mut() {
            Some(run)
                if run.tried == tried
                    && run.span.ticket == span.ticket
                    && run.span.first + run.units.len() == first =>
            {
                run.units.push(unit);
            }
            _ => self.retries.push(RetryRun {
                span: Span { first, ..*span },
                units: vec![unit],
                tried,
            }),
        }
    }
}

/// True if a batch was rolled back because another process holds the whole database, as SQLite
/// reports for its file. For locks on single rows, sinks report units that wait for a lock.
fn is_held(fault: &Fault) -> bool {
    fault.retry() == Retry::AfterLock
}

/// Returns the retry plan that units that were not tried had before the batch.
fn as_before(span: &Span) -> Option<RetryPlan> {
    (span.attempts > 0).then_some(RetryPlan {
        attempts: span.attempts,
        rows: usize::MAX,
        at: None,
    })
}

fn held_by_nobody() -> Fault {
    Fault::internal("the sink held back a write that has nothing to wait for; it was not written")
}

fn unreported() -> Fault {
    Fault::unknown("the sink did not report on this write; this is a defect in Windrow")
}
