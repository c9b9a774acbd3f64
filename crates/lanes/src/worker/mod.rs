//! The actor of a lane: owns all of its state, and is the only one who does.
//!
//! Each turn of its loop receives one thing (a task's signal, an arrival, the time), drains what
//! has already arrived, and sends off what may leave.

mod apart;
mod away;
mod depart;
mod expire;
mod fly_apart;
mod hints;
mod idle;
mod land;
mod late;
mod lock_waits;
mod run_lock_waits;
mod state;
mod traces;

use futures_util::FutureExt;
use tokio::sync::{mpsc, oneshot};
use tokio::task::coop::unconstrained;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use windrow_core::{Outcomes, Submission, Unit, Work};

pub(crate) use self::state::Parts;
use self::state::Worker;
use crate::alarm::Alarm;
use crate::message::Signal;
use crate::queue::Chunk;

/// Submissions read in one turn at most: a turn ends even while others go on submitting.
const DRAIN: usize = 4096;

/// Room for so many of them is kept while there is nothing to do.
const KEEP: usize = 64;

/// Signals of tasks that wait until the worker reads them, at most.
const SIGNALS: usize = 64;

/// Runs a lane until `stop` is sent, or until all intakes are dropped, and all that was accepted is
/// answered.
pub(crate) async fn run<W: Work>(parts: Parts<W>, stop: oneshot::Receiver<()>) {
    let (signals, received) = mpsc::channel(SIGNALS);
    let tasks = TaskTracker::new();
    let worker = Worker::new(parts, signals, tasks.clone());
    worker.run(received, stop).await;
    tasks.close();
    tasks.wait().await;
}

impl<W: Work> Worker<W> {
    async fn run(mut self, mut received: mpsc::Receiver<Signal<W>>, stop: oneshot::Receiver<()>) {
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
                    // None can leave yet, so those of a whole batch may as well be one turn.
                    self.company = self.crowded || self.held_until.is_some();
                }
                asked = wait(&mut stop) => {
                    stop = None;
                    // An error says that the handle is gone without a word: the lane serves on
                    // until all intakes are.
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
            if !self.open && self.tickets.is_empty() {
                return;
            }
        }
    }

    fn handle(&mut self, signal: Signal<W>) {
        match signal {
            Signal::Connected { connection } => self.connected(connection),
            Signal::Unreachable { connection, fault } => self.unreachable(connection, fault),
            Signal::Refused { connection, fault } => self.refused(connection, &fault),
            Signal::Landed { connection, landed } => self.landed(connection, landed),
            Signal::LockWaitEnded {
                connection,
                outcome,
            } => self.lock_wait_ended(connection, outcome),
            Signal::NoRoom { connection, order } => self.lock_wait_without_room(connection, order),
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
            // A client that was just answered may read the gauges.
            self.publish();
            tokio::task::yield_now().await;
            self.drain();
        }
    }

    fn accept(&mut self, submission: Submission<W>) {
        let units = submission.units.len();
        if units == 0 {
            drop(submission.permit);
            submission.reply.send(Outcomes::new());
            return;
        }
        for op in submission.units.iter().flat_map(Unit::ops) {
            self.count.write(op);
        }
        if !self.arrives_apart(&submission) {
            let since_start = submission.arrived.saturating_duration_since(self.started);
            self.gather.arrived(since_start, units);
        }
        let policy = submission.policy;
        let ticket = self.tickets.open(
            (submission.reply, submission.permit),
            units,
            policy,
            submission.trace,
        );
        if let Some(fault) = self.too_long_away(policy) {
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
            self.overdue_at,
            self.look_for_idle,
            self.late_at(),
            self.lock_waits.asks_again_at(),
            self.apart_at(),
        ];
        times.into_iter().flatten().min()
    }
}

/// True if the lane is to stop, false if its handle was dropped.
async fn wait(stop: &mut Option<oneshot::Receiver<()>>) -> bool {
    match stop {
        Some(stop) => stop.await.is_ok(),
        None => std::future::pending().await,
    }
}
