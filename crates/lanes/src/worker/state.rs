//! All that the actor of a lane knows.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use windrow_core::intake::Hint;
use windrow_core::{Arrivals, Backoff, Limits, Name, Sink, Submission, Work};

use super::apart::Apart;
use super::late::Late;
use super::lock_waits::LockWaits;
use crate::away::Away;
use crate::connections::Connections;
use crate::idle::IdleNote;
use crate::message::Signals;
use crate::metrics::{Count, Meters, SeriesGuard};
use crate::overdue::UsualTime;
use crate::pace::{Bounds, Gather, Pace};
use crate::queue::{Queue, Room};
use crate::retry::{conflict_backoff, unknown_backoff};
use crate::ticket::Tickets;

/// Gauges that each turn may change.
const GAUGES: usize = 7;

/// The parts that a worker is made of.
pub(crate) struct Parts<W: Work> {
    pub(crate) name: Name,
    pub(crate) sink: Arc<dyn Sink<W>>,
    pub(crate) limits: Limits,
    pub(crate) arrivals: Arrivals<W>,
    pub(crate) meters: Meters,
    pub(crate) series: SeriesGuard,
    pub(crate) idle: Arc<IdleNote>,
    pub(crate) away: watch::Sender<Option<Away>>,
}

pub(super) struct Worker<W: Work> {
    pub(super) name: Name,
    pub(super) sink: Arc<dyn Sink<W>>,
    pub(super) limits: Limits,
    pub(super) arrivals: Arrivals<W>,
    /// Submissions that were read in this turn.
    pub(super) arrived: Vec<Submission<W>>,
    /// Read and not followed yet.
    pub(super) hints: Vec<Hint>,
    /// False once no more submissions can come.
    pub(super) open: bool,
    pub(super) meters: Meters,
    /// Exposes them as long as the lane runs.
    _series: SeriesGuard,
    pub(super) idle: Arc<IdleNote>,
    pub(super) count: Count,
    pub(super) abandoned: usize,
    /// The gauges as they were set last.
    pub(super) published: [usize; GAUGES],
    pub(super) queue: Queue<W>,
    pub(super) tickets: Tickets<W::Done>,
    pub(super) pace: Pace,
    pub(super) gather: Gather,
    /// The usual time of flights.
    pub(super) usual: UsualTime,
    /// When a flight that keeps units from leaving will be overdue.
    pub(super) overdue_at: Option<Instant>,
    pub(super) connections: Connections<W>,
    /// When to look for connections that nothing needs.
    pub(super) look_for_idle: Option<Instant>,
    pub(super) next_flight: u64,
    /// True while units are queued because no further flight may leave.
    pub(super) crowded: bool,
    pub(super) lock_waits: LockWaits<W>,
    pub(super) late: Late,
    pub(super) apart: Apart,
    pub(super) away: Option<Away>,
    /// The last message of a database that refused a connection, so that the log has it only once.
    pub(super) refused: Option<Box<str>>,
    pub(super) away_note: watch::Sender<Option<Away>>,
    /// With `max_wait`: since when units are held back.
    pub(super) held_since: Option<Instant>,
    /// Until when nothing else keeps them back.
    pub(super) held_until: Option<Instant>,
    pub(super) started: Instant,
    /// True in a turn that a timer began.
    pub(super) woken: bool,
    /// True in a turn that began with the landing of several units, or with units that have to
    /// wait: others will have something to do in the same moment.
    pub(super) company: bool,
    /// The delays of units that others were in the way of.
    pub(super) conflict_backoff: Backoff,
    /// The delays of units whose outcome is unknown.
    pub(super) unknown_backoff: Backoff,
    pub(super) signals: Signals<W>,
    pub(super) tasks: TaskTracker,
}

impl<W: Work> Worker<W> {
    pub(super) fn new(parts: Parts<W>, signals: Signals<W>, tasks: TaskTracker) -> Self {
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
            usual: UsualTime::default(),
            overdue_at: None,
            connections: Connections::new(),
            look_for_idle: None,
            next_flight: 0,
            crowded: false,
            lock_waits: LockWaits::default(),
            late: Late::default(),
            apart: Apart::default(),
            away: None,
            refused: None,
            away_note: parts.away,
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

    /// Shows what the lane is doing to those who look.
    pub(super) fn publish(&mut self) {
        self.idle.set(!self.tickets.is_empty());
        self.meters.add(&mut self.count);
        let (totals, apart) = (self.queue.totals(), self.queue.totals_apart());
        let gauges: [_; GAUGES] = [
            (&self.meters.queued_units, totals.units + apart.units),
            (&self.meters.queued_rows, totals.rows + apart.rows),
            (&self.meters.queued_bytes, totals.bytes + apart.bytes),
            (&self.meters.connections, self.connections.connected()),
            (&self.meters.flights, self.connections.flights().count()),
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
        let abandoned = totals.abandoned + apart.abandoned;
        if abandoned > self.abandoned {
            self.meters
                .abandoned
                .inc_by((abandoned - self.abandoned) as u64);
            self.abandoned = abandoned;
        }
    }

    /// Returns the limits of the next batch while so many flights are under way.
    pub(super) fn room(&self, flying: usize) -> Room {
        let setting = self.pace.setting();
        Room {
            rows: setting.rows,
            bytes: self.limits.batch_bytes.max(1),
            flights: setting.flights.saturating_sub(flying).max(1),
        }
    }
}
