//! The worker of a lane, the only task that touches its state.
//!
//! Each turn of its loop receives one thing (a task's signal, an arrival, the time), drains what
//! has already arrived, and sends the batches that may leave.

mod apart;
mod availability;
mod depart;
mod gauges;
mod land;
mod late;
mod ledger;
mod lock_waits;

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::coop::unconstrained;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use windrow_core::intake::Hint;
use windrow_core::{
    Arrivals, Backoff, Fault, Limits, Name, Outcomes, Sink, SourceId, Submission, Unit,
};

use self::apart::Apart;
use self::availability::Availability;
use self::gauges::Gauges;
use self::late::Late;
use self::ledger::Ledger;
use self::lock_waits::{LockWaits, Starter};
use crate::alarm::Alarm;
use crate::away::Away;
use crate::connections::Connections;
use crate::idle::IdleNote;
use crate::message::{Signal, Signals};
use crate::metrics::{Meters, SeriesGuard};
use crate::overdue::UsualTime;
use crate::pace::{Bounds, Gather, Pace};
use crate::queue::{CancelPlace, Chunk};
use crate::retry::{conflict_backoff, unknown_backoff};

/// The most submissions read in one turn, so that a turn ends even while others go on submitting.
const DRAIN: usize = 4096;

/// The capacity kept for submissions while the lane is idle.
const KEEP: usize = 64;

/// The most signals of tasks that wait for the worker.
const SIGNALS: usize = 64;

/// The most hints read in one turn.
const HINTS: usize = 1024;

/// The parts of which a worker is made.
pub(crate) struct Parts {
    pub(crate) name: Name,
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) limits: Limits,
    pub(crate) arrivals: Arrivals,
    pub(crate) meters: Meters,
    pub(crate) series: SeriesGuard,
    pub(crate) idle: Arc<IdleNote>,
    pub(crate) away: watch::Sender<Option<Away>>,
}

struct Worker {
    name: Name,
    sink: Arc<dyn Sink>,
    limits: Limits,
    arrivals: Arrivals,
    /// Submissions that were read in this turn.
    arrived: Vec<Submission>,
    /// Hints that were read in this turn, and not followed yet.
    hints: Vec<Hint>,
    /// True until no more submissions can come.
    open: bool,
    /// Exposes the metrics as long as the lane runs.
    _series: SeriesGuard,
    idle: Arc<IdleNote>,
    gauges: Gauges,
    ledger: Ledger,
    pace: Pace,
    gather: Gather,
    /// The usual time of flights.
    usual: UsualTime,
    /// The time at which a flight that keeps units from leaving will be overdue.
    overdue_at: Option<Instant>,
    connections: Connections,
    /// The time of the next search for idle connections.
    look_for_idle: Option<Instant>,
    next_flight: u64,
    /// True while units are queued because no further flight may leave.
    crowded: bool,
    lock_waits: LockWaits,
    late: Late,
    apart: Apart,
    availability: Availability,
    /// With `max_wait`, the time since which units are held back.
    held_since: Option<Instant>,
    /// The time until which units are held back.
    held_until: Option<Instant>,
    started: Instant,
    /// True in a turn that a timer started.
    woken: bool,
    /// True if the loop yields once before the next batch: several units have landed, or have
    /// arrived while others wait, so other tasks will submit more at the same moment.
    company: bool,
    /// The delays of units that met a conflict.
    conflict_backoff: Backoff,
    /// The delays of units whose outcome is unknown.
    unknown_backoff: Backoff,
    signals: Signals,
    tasks: TaskTracker,
}

/// Runs a lane until `stop` is sent, or until all intakes are dropped, and all that was accepted is
/// answered.
pub(crate) async fn run(parts: Parts, stop: oneshot::Receiver<()>) {
    let (signals, received) = mpsc::channel(SIGNALS);
    let tasks = TaskTracker::new();
    let worker = Worker::new(parts, signals, tasks.clone());
    worker.run(received, stop).await;
    tasks.close();
    tasks.wait().await;
}

impl Worker {
    fn new(parts: Parts, signals: Signals, tasks: TaskTracker) -> Self {
        let bounds = Bounds::new(parts.sink.profile(), &parts.limits);
        let away_wait = parts.limits.away_wait;
        let gauge = parts.meters.away.clone();
        let availability = Availability::new(parts.name.clone(), away_wait, parts.away, gauge);
        let starter = Starter {
            sink: parts.sink.clone(),
            signals: signals.clone(),
            tasks: tasks.clone(),
            away_wait,
        };
        Self {
            name: parts.name,
            sink: parts.sink,
            limits: parts.limits,
            arrivals: parts.arrivals,
            arrived: Vec::new(),
            hints: Vec::new(),
            open: true,
            _series: parts.series,
            idle: parts.idle,
            gauges: Gauges::default(),
            ledger: Ledger::new(parts.meters),
            pace: Pace::new(bounds),
            gather: Gather::default(),
            usual: UsualTime::default(),
            overdue_at: None,
            connections: Connections::new(),
            look_for_idle: None,
            next_flight: 0,
            crowded: false,
            lock_waits: LockWaits::new(starter),
            late: Late::default(),
            apart: Apart::default(),
            availability,
            held_since: None,
            held_until: None,
            started: Instant::now(),
            woken: false,
            company: false,
            conflict_backoff: conflict_backoff(),
            unknown_backoff: unknown_backoff(),
            signals,
            tasks,
        }
    }

    async fn run(mut self, mut received: mpsc::Receiver<Signal>, stop: oneshot::Receiver<()>) {
        let mut stop = Some(stop);
        let mut alarm = Alarm::new();
        self.publish();
        loop {
            alarm.set(self.wake_at());
            tokio::select! {
                biased;
                signal = received.recv() => {
                    if let Some(signal) = signal {
                        self.handle(signal);
                    }
                }
                Some(hint) = self.arrivals.hints.recv() => self.hints.push(hint),
                read = self.arrivals.submissions.recv_many(&mut self.arrived, DRAIN), if self.open => {
                    self.open = read > 0;
                    // No batch can leave yet, so the units of a whole batch may as well be read in
                    // one turn.
                    self.company = self.crowded || self.held_until.is_some();
                }
                asked = wait(&mut stop) => {
                    stop = None;
                    // An error means that the handle was dropped: the lane goes on until all
                    // intakes are.
                    if asked {
                        self.arrivals.close();
                    }
                }
                () = alarm.rings() => self.woken = true,
            }
            self.drain();
            self.let_others_in().await;
            self.follow_hints();
            self.depart();
            self.woken = false;
            self.publish();
            if !self.open && self.ledger.tickets.is_empty() {
                return;
            }
        }
    }

    fn handle(&mut self, signal: Signal) {
        match signal {
            Signal::Connected { connection } => self.connected(connection),
            Signal::Unreachable { connection, fault } => self.unreachable(connection, fault),
            Signal::Refused { connection, fault } => self.refused(connection, &fault),
            Signal::Landed { connection, landed } => self.landed(connection, landed),
            Signal::LockWaitEnded {
                connection,
                outcome,
            } => self.lock_waits.ended(connection, outcome, &mut self.ledger),
            Signal::NoRoom { connection, order } => {
                self.lock_waits
                    .has_no_room(connection, order, &mut self.ledger);
            }
        }
    }

    /// Reads what has already arrived, so that it joins the next batch.
    fn drain(&mut self) {
        self.read_hints();
        let most = match self.hints.as_slice() {
            [] => DRAIN,
            // All that was submitted before the hints.
            _ => DRAIN.max(self.arrivals.submissions.len()),
        };
        if self.open && self.arrived.len() < most {
            let room = most - self.arrived.len();
            let read = self.arrivals.submissions.recv_many(&mut self.arrived, room);
            // Reading many at once costs less than one after another, and a turn is bounded without
            // tokio's budget.
            if unconstrained(read).now_or_never() == Some(0) {
                self.open = false;
            }
        }
        let mut arrived = std::mem::take(&mut self.arrived);
        for submission in arrived.drain(..) {
            self.accept(submission);
        }
        // A burst must not keep its memory.
        if arrived.capacity() > KEEP && self.ledger.tickets.is_empty() {
            arrived.shrink_to(KEEP);
        }
        self.arrived = arrived;
    }

    /// Yields to other tasks that can run at this moment: with many clients, their next writes then
    /// join the batch. Waits for no time.
    async fn let_others_in(&mut self) {
        if std::mem::take(&mut self.company) {
            // A client that was just answered may read the gauges.
            self.publish();
            tokio::task::yield_now().await;
            self.drain();
        }
    }

    fn accept(&mut self, submission: Submission) {
        let units = submission.units.len();
        if units == 0 {
            drop(submission.permit);
            submission.reply.send(Outcomes::new());
            return;
        }
        for op in submission.units.iter().flat_map(Unit::ops) {
            self.ledger.count.write(op);
        }
        if !self.arrives_apart(&submission) {
            let since_start = submission.arrived.saturating_duration_since(self.started);
            self.gather.arrived(since_start, units);
        }
        let policy = submission.policy;
        let ticket = self.ledger.tickets.open(
            (submission.reply, submission.permit),
            units,
            policy,
            submission.trace,
        );
        if let Some(fault) = self.availability.refusal(policy) {
            self.ledger.count.fault(fault.class, units);
            self.ledger.tickets.fail(ticket, 0, units, &fault);
            return;
        }
        let chunk = Chunk {
            ticket,
            first: 0,
            units: submission.units.into_iter(),
            arrived: submission.arrived,
            retry: None,
        };
        self.late.waits(submission.arrived);
        self.ledger.queue.push(submission.source, chunk);
    }

    /// Examines a submission's units; returns true if they travel apart.
    fn arrives_apart(&mut self, submission: &Submission) -> bool {
        let next = submission.units.first();
        let delays = self.ledger.queue.delays_others(submission.source, next);
        self.apart.has_others |= !delays;
        delays && self.ledger.queue.is_apart()
    }

    /// Notes that a connection is open.
    fn connected(&mut self, connection: u64) {
        let now = Instant::now();
        if self.connections.connected_now(connection, now) {
            self.ledger.meters.reconnects.inc();
        }
        self.look_for_idle(now);
        self.availability.connected();
    }

    /// Notes that the database cannot be reached; the connection's task goes on trying.
    fn unreachable(&mut self, connection: u64, fault: Fault) {
        if self.connections.connected() > 0 {
            // Other connections work: open no further ones for now.
            tracing::debug!(lane = %self.name, %fault, "no further connection");
            self.connections.dismiss(connection);
            self.connections.pause(Instant::now());
            return;
        }
        self.availability.gone(fault, false);
    }

    /// Acts on a database that refuses the connection, for a reason that another attempt does not
    /// change: answers all units that wait, except persistent ones.
    fn refused(&mut self, connection: u64, fault: &Fault) {
        if self.connections.connected() > 0 {
            tracing::debug!(lane = %self.name, %fault, "no further connection");
            self.connections.dismiss(connection);
            self.connections.pause(Instant::now());
            return;
        }
        self.availability.refuses(fault);
        let is_open = self.open;
        let oldest = self.ledger.fail_queued(fault, |tickets, ticket, _| {
            is_open && tickets.policy(ticket).is_persistent()
        });
        if oldest.is_none() {
            self.connections.dismiss(connection);
        }
    }

    /// Reads the waiting hints. The submissions that they refer to may still be among the arrivals.
    fn read_hints(&mut self) {
        while self.hints.len() < HINTS
            && let Ok(hint) = self.arrivals.hints.try_recv()
        {
            self.hints.push(hint);
        }
    }

    /// Follows the hints that were read, once all that was submitted before them is in the queue.
    fn follow_hints(&mut self) {
        let mut hints = std::mem::take(&mut self.hints);
        for hint in hints.drain(..) {
            match hint {
                Hint::Cancel(source, at) => self.cancel(source, at),
                Hint::Closed(source) => self.closed(source),
                Hint::Left(source) => self.left(source),
                Hint::Probed(fault) => {
                    let is_idle = self.ledger.tickets.is_empty();
                    self.availability.probed(fault, is_idle);
                }
                Hint::Rest => {
                    self.connections.close_idle(Instant::now(), Duration::ZERO);
                }
            }
        }
        self.hints = hints;
    }

    fn cancel(&mut self, source: SourceId, asked: Instant) {
        let fault = Fault::called_back();
        let Ledger { queue, tickets, .. } = &mut self.ledger;
        match queue.cancel(source, asked, &fault, tickets) {
            CancelPlace::Nothing => {}
            CancelPlace::Queued => self.ledger.count.fault(fault.class, 1),
            CancelPlace::Away(key) => {
                self.connections.call_back(key, asked);
                self.lock_waits.cancel(key, asked, &mut self.ledger);
            }
        }
    }

    /// Drops the units of a source whose client has left, also one that waits for a lock. Units
    /// under way are executed, as on a server that does not watch its clients while it works.
    fn left(&mut self, source: SourceId) {
        let Ledger { queue, tickets, .. } = &mut self.ledger;
        if let Some(key) = queue.forgo(source, tickets) {
            self.lock_waits.drop_abandoned(key, &mut self.ledger);
        }
    }

    fn closed(&mut self, source: SourceId) {
        if let Some(key) = self.ledger.queue.close(source) {
            self.lock_waits.close(key, &mut self.ledger);
        }
    }

    /// Brings the gauges up to date.
    fn publish(&mut self) {
        let Ledger {
            tickets,
            count,
            meters,
            ..
        } = &mut self.ledger;
        self.idle.set(!tickets.is_empty());
        meters.add(count);
        let setting = self.pace.setting();
        self.gauges
            .publish(&self.ledger, &self.connections, setting);
    }

    /// Returns the next deadline of the lane.
    fn wake_at(&self) -> Option<Instant> {
        let has_units = self.ledger.queue.units() > 0;
        let times = [
            self.ledger.queue.wakes_at(),
            self.availability.ends_at().filter(|_| has_units),
            self.held_until,
            self.overdue_at,
            self.look_for_idle,
            self.late.at(self.sink.statement_timeout()),
            self.lock_waits.asks_again_at(),
            self.apart_at(),
        ];
        times.into_iter().flatten().min()
    }
}

/// Returns true if the lane is to stop, false if its handle was dropped.
async fn wait(stop: &mut Option<oneshot::Receiver<()>>) -> bool {
    match stop {
        Some(stop) => stop.await.is_ok(),
        None => std::future::pending().await,
    }
}
