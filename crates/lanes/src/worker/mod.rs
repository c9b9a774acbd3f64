//! The actor of a lane: owns all of its state, and is the only one who does.
//!
//! Each turn of its loop hears one thing (a task's signal, an arrival, the time), drains what has already arrived, and
//! sends off what may leave.

mod alone;
mod away;
mod depart;
mod land;

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use windrow_core::{Arrivals, Limits, Name, Sink, Submission};

use self::alone::AloneDesk;
use self::away::Away;
pub(crate) use self::away::AwayNote;
use crate::fleet::Fleet;
use crate::message::{Signal, Signals};
use crate::metrics::{Count, Meters};
use crate::pace::{Bounds, Pace};
use crate::queue::{Chunk, Queue, Room};
use crate::retry::Jitter;
use crate::ticket::Tickets;

/// Submissions read in one turn at most: a turn ends even while others go on submitting.
const DRAIN: usize = 4096;

/// What a worker is made of.
pub(crate) struct Parts {
    pub(crate) name: Name,
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) limits: Limits,
    pub(crate) arrivals: Arrivals,
    pub(crate) meters: Meters,
    pub(crate) away: watch::Sender<Option<AwayNote>>,
}

pub(crate) struct Worker {
    name: Name,
    sink: Arc<dyn Sink>,
    limits: Limits,
    arrivals: Arrivals,
    /// False once no more submissions can come.
    open: bool,
    meters: Meters,
    count: Count,
    abandoned: usize,
    queue: Queue,
    tickets: Tickets,
    pace: Pace,
    fleet: Fleet,
    next_flight: u64,
    /// True while units are queued because no further flight may leave.
    crowded: bool,
    alone: AloneDesk,
    away: Option<Away>,
    /// What the database last said when it refused a connection, told in the log only once.
    refused: Option<Box<str>>,
    away_note: watch::Sender<Option<AwayNote>>,
    /// With `max_wait`: since when units are held back.
    held_since: Option<Instant>,
    /// Until when nothing else keeps them back.
    held_until: Option<Instant>,
    started: Instant,
    jitter: Jitter,
    signals: Signals,
    tasks: TaskTracker,
}

/// How many tasks of a lane can have something to say before they wait until it is heard.
const SIGNALS: usize = 64;

/// Runs a lane until it is told to stop, or until nobody can submit any more, and all that was accepted is answered.
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
            open: true,
            meters: parts.meters,
            count: Count::default(),
            abandoned: 0,
            queue: Queue::new(),
            tickets: Tickets::new(),
            pace: Pace::new(bounds),
            fleet: Fleet::new(),
            next_flight: 0,
            crowded: false,
            alone: AloneDesk::new(),
            away: None,
            refused: None,
            away_note: parts.away,
            held_since: None,
            held_until: None,
            started: Instant::now(),
            jitter: Jitter::new(),
            signals,
            tasks,
        }
    }

    async fn run(mut self, mut heard: mpsc::Receiver<Signal>, stop: oneshot::Receiver<()>) {
        let mut stop = Some(stop);
        self.publish();
        loop {
            let wake_at = self.wake_at();
            tokio::select! {
                biased;
                signal = heard.recv() => {
                    if let Some(signal) = signal {
                        self.hear(signal);
                    }
                }
                arrival = self.arrivals.recv(), if self.open => match arrival {
                    Some(submission) => self.accept(submission),
                    None => self.open = false,
                },
                told = wait(&mut stop) => {
                    stop = None;
                    // An error says that the handle is gone without a word: the lane serves on until all intakes are.
                    if told {
                        self.arrivals.close();
                    }
                }
                () = until(wake_at) => {}
            }
            self.drain();
            self.depart();
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
            Signal::Alone { flight, outcomes } => self.alone_ended(flight, outcomes),
        }
    }

    /// Reads what has already arrived, so that it joins the next batch.
    fn drain(&mut self) {
        for _ in 0..DRAIN {
            match self.arrivals.try_recv() {
                Ok(submission) => self.accept(submission),
                Err(mpsc::error::TryRecvError::Empty) => return,
                Err(mpsc::error::TryRecvError::Disconnected) => {
                    self.open = false;
                    return;
                }
            }
        }
    }

    fn accept(&mut self, submission: Submission) {
        let units = submission.units.len();
        if units == 0 {
            drop(submission.permit);
            submission.reply.send(Vec::new());
            return;
        }
        for write in submission.units.iter().flat_map(|unit| unit.writes()) {
            self.count.write(write.shape.op);
        }
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
        self.queue.push(submission.source, chunk);
    }

    /// The next moment at which something is to be done that nobody will signal. None in normal operation.
    fn wake_at(&self) -> Option<Instant> {
        [self.queue.wakes_at(), self.away_ends_at(), self.held_until]
            .into_iter()
            .flatten()
            .min()
    }

    fn publish(&mut self) {
        self.meters.add(&mut self.count);
        let totals = self.queue.totals();
        let gauges = [
            (&self.meters.queued_units, totals.units),
            (&self.meters.queued_rows, totals.rows),
            (&self.meters.queued_bytes, totals.bytes),
            (&self.meters.flights, self.fleet.flights().count()),
            (&self.meters.flights_limit, self.pace.setting().flights),
            (&self.meters.batch_rows_limit, self.pace.setting().rows),
        ];
        for (gauge, value) in gauges {
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
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

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// True if the lane is told to stop, false if its handle was dropped.
async fn wait(stop: &mut Option<oneshot::Receiver<()>>) -> bool {
    match stop {
        Some(stop) => stop.await.is_ok(),
        None => std::future::pending().await,
    }
}
