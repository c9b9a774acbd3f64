//! The actor of a lane: owns all of its state, and is the only one who does.
//!
//! Each turn of its loop hears one thing (a task's signal, an arrival, the time), drains what has
//! already arrived, and sends off what may leave.

mod alone;
mod away;
mod depart;
mod hints;
mod idle;
mod land;
mod late;

use std::sync::Arc;

use futures_util::FutureExt;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::coop::unconstrained;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use windrow_core::intake::Hint;
use windrow_core::{Arrivals, Limits, Name, Outcomes, Sink, Submission, Unit};

use self::alone::AloneDesk;
use self::away::Away;
pub(crate) use self::away::AwayNote;
use self::late::Late;
use crate::alarm::Alarm;
use crate::fleet::Fleet;
use crate::idle::IdleNote;
use crate::message::{Signal, Signals};
use crate::metrics::{Count, Meters, SeriesGuard};
use crate::pace::{Bounds, Gather, Pace};
use crate::queue::{Chunk, Queue, Room};
use crate::retry::Jitter;
use crate::ticket::Tickets;

/// Submissions read in one turn at most: a turn ends even while others go on submitting.
const DRAIN: usize = 4096;

/// Room for so many of them is kept while there is nothing to do.
const KEEP: usize = 64;

/// Gauges that each turn may change.
const GAUGES: usize = 7;

/// What a worker is made of.
pub(crate) struct Parts {
    pub(crate) name: Name,
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) limits: Limits,
    pub(crate) arrivals: Arrivals,
    pub(crate) meters: Meters,
    pub(crate) series: SeriesGuard,
    pub(crate) idle: Arc<IdleNote>,
    pub(crate) away: watch::Sender<Option<AwayNote>>,
}

pub(crate) struct Worker {
    name: Name,
    sink: Arc<dyn Sink>,
    limits: Limits,
    arrivals: Arrivals,
    /// Submissions that were read in this turn.
    arrived: Vec<Submission>,
    /// Read and not followed yet.
    hints: Vec<Hint>,
    /// False once no more submissions can come.
    open: bool,
    meters: Meters,
    /// Exposes them as long as the lane runs.
    _series: SeriesGuard,
    idle: Arc<IdleNote>,
    count: Count,
    abandoned: usize,
    /// The gauges as they were set last.
    published: [usize; GAUGES],
    queue: Queue,
    tickets: Tickets,
    pace: Pace,
    gather: Gather,
    fleet: Fleet,
    /// When to look for connections that nothing needs.
    look_for_idle: Option<Instant>,
    next_flight: u64,
    /// True while units are queued because no further flight may leave.
    crowded: bool,
    alone: AloneDesk,
    late: Late,
    away: Option<Away>,
    /// What the database last said when it refused a connection, told in the log only once.
    refused: Option<Box<str>>,
    away_note: watch::Sender<Option<AwayNote>>,
    /// With `max_wait`: since when units are held back.
    held_since: Option<Instant>,
    /// Until when nothing else keeps them back.
    held_until: Option<Instant>,
    started: Instant,
    /// True in a turn that a timer began.
    woken: bool,
    /// True in a turn that began with the landing of several units.
    company: bool,
    jitter: Jitter,
    signals: Signals,
    tasks: TaskTracker,
}

/// How many tasks of a lane can have something to say before they wait until it is heard.
const SIGNALS: usize = 64;

/// Runs a lane until it is told to stop, or until nobody can submit any more, and all that was
/// accepted is answered.
pub(crate) async fn run(parts: Parts, stop: oneshot::Receiver<()>) {
    let (signals, heard) = mpsc::channel(SIGNALS);
    let tasks = TaskTracker::new();
    let worker = Worker::new(parts, signals, tasks.clone());
    worker.run(heard, stop).await;
    tasks.close();
    tasks.wait().await;
}

impl Worker {
    fn new(parts: Parts, signals: Signals, tasks: TaskTracker) -> Self {
        let bounds = Bounds::new(parts.sink.profile(), &parts.limits);
        Self {
            name: parts.name,
            sink: parts.sink,
            limits: parts.limits,
            arrivals: parts.arrivals,
            arrived: Vec::new(),
            hints: Vec::new(),
            open: true,
            meters: parts.meters,
            _series: parts.series,
            idle: parts.idle,
            count: Count::default(),
            abandoned: 0,
            published: [0; GAUGES],
            queue: Queue::new(),
            tickets: Tickets::new(),
            pace: Pace::new(bounds),
            gather: Gather::default(),
            fleet: Fleet::new(),
            look_for_idle: None,
            next_flight: 0,
            crowded: false,
            alone: AloneDesk::default(),
            late: Late::default(),
            away: None,
            refused: None,
            away_note: parts.away,
            held_since: None,
            held_until: None,
            started: Instant::now(),
            woken: false,
            company: false,
            jitter: Jitter::new(),
            signals,
            tasks,
        }
    }

    async fn run(mut self, mut heard: mpsc::Receiver<Signal>, stop: oneshot::Receiver<()>) {
        let mut stop = Some(stop);
        let mut alarm = Alarm::new();
        self.publish();
        loop {
            alarm.set(self.wake_at());
            tokio::select! {
                biased;
                signal = heard.recv() => {
                    if let Some(signal) = signal {
                        self.hear(signal);
                    }
                }
                Some(hint) = self.arrivals.hints.recv() => self.hints.push(hint),
                read = self.arrivals.submissions.recv_many(&mut self.arrived, DRAIN), if self.open => {
                    self.open = read > 0;
                }
                told = wait(&mut stop) => {
                    stop = None;
                    // An error says that the handle is gone without a word: the lane serves on
                    // until all intakes are.
                    if told {
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
            if !self.open && self.tickets.is_empty() {
                return;
            }
        }
    }

    fn hear(&mut self, signal: Signal) {
        match signal {
            Signal::Connected { pilot } => self.connected(pilot),
            Signal::Unreachable { pilot, fault } => self.unreachable(pilot, fault),
            Signal::Refused { pilot, fault } => self.refused(pilot, &fault),
            Signal::Landed { pilot, landed } => self.landed(pilot, landed),
            Signal::Alone { solo, outcome } => self.alone_ended(solo, outcome),
            Signal::NoRoom { solo, order } => self.alone_without_room(solo, order),
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
            // Many at once cost less than one after another; a turn is bounded without tokio's own
            // accounts.
            if unconstrained(read).now_or_never() == Some(0) {
                self.open = false;
            }
        }
        let mut arrived = std::mem::take(&mut self.arrived);
        for submission in arrived.drain(..) {
            self.accept(submission);
        }
        // A burst is not paid for with memory for ever.
        if arrived.capacity() > KEEP && self.tickets.is_empty() {
            arrived.shrink_to(KEEP);
        }
        self.arrived = arrived;
    }

    /// Lets the tasks run that have something to do at this moment: where many write, what their
    /// clients have sent already is then a part of the next batch. No time is waited for.
    async fn let_others_in(&mut self) {
        if std::mem::take(&mut self.company) {
            // Who was just told may look.
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
            self.count.write(op);
        }
        let since_start = submission.arrived.saturating_duration_since(self.started);
        self.gather.arrived(since_start, units);
        let ticket = self
            .tickets
            .open(submission.reply, submission.permit, units);
        if let Some(fault) = self.too_long_away() {
            self.count.fault(fault.class, units);
            self.tickets.fail(ticket, 0, units, &fault);
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
        self.queue.push(submission.source, chunk);
    }

    /// The next moment at which something is to be done that nobody will signal.
    fn wake_at(&self) -> Option<Instant> {
        let times = [
            self.queue.wakes_at(),
            self.away_ends_at(),
            self.held_until,
            self.look_for_idle,
            self.late_at(),
            self.alone.asks_again_at(),
        ];
        times.into_iter().flatten().min()
    }

    fn publish(&mut self) {
        self.idle.set(!self.tickets.is_empty());
        self.meters.add(&mut self.count);
        let totals = self.queue.totals();
        let gauges: [_; GAUGES] = [
            (&self.meters.queued_units, totals.units),
            (&self.meters.queued_rows, totals.rows),
            (&self.meters.queued_bytes, totals.bytes),
            (&self.meters.connections, self.fleet.connected()),
            (&self.meters.flights, self.fleet.flights().count()),
            (&self.meters.flights_limit, self.pace.setting().flights),
            (&self.meters.batch_rows_limit, self.pace.setting().rows),
        ];
        // Most of them are as they were, and to write what others may read costs more than to look.
        for ((gauge, value), last) in gauges.into_iter().zip(&mut self.published) {
            if *last != value {
                *last = value;
                gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
            }
        }
        let abandoned = totals.abandoned;
        if abandoned > self.abandoned {
            self.meters
                .abandoned
                .inc_by((abandoned - self.abandoned) as u64);
            self.abandoned = abandoned;
        }
    }

    fn room(&self) -> Room {
        Room {
            rows: self.pace.setting().rows,
            bytes: self.limits.batch_bytes.max(1),
        }
    }
}

/// True if the lane is told to stop, false if its handle was dropped.
async fn wait(stop: &mut Option<oneshot::Receiver<()>>) -> bool {
    match stop {
        Some(stop) => stop.await.is_ok(),
        None => std::future::pending().await,
    }
}
