//! The handle of a running lane.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use windrow_core::{Arrivals, Fault, LaneStatus, Limits, Name, Sink};

use crate::away::Away;
use crate::idle::IdleNote;
use crate::metrics::{LaneMetrics, Meters};
use crate::worker::{self, Parts};

/// A running lane.
///
/// Dropping it does not end the lane, which runs until every [`Intake`](windrow_core::Intake) of it
/// is dropped and all accepted writes are answered. [`Lane::shutdown`] ends it in any case.
#[derive(Debug)]
pub struct Lane {
    watch: LaneWatch,
    stop: oneshot::Sender<()>,
    worker: JoinHandle<()>,
}

/// A view of a lane's state, which can be kept while the lane is shut down. Cheap to clone.
#[derive(Clone, Debug)]
pub struct LaneWatch {
    name: Name,
    database: &'static str,
    meters: Meters,
    idle: Arc<IdleNote>,
    away: watch::Receiver<Option<Away>>,
    away_wait: Duration,
}

impl Lane {
    /// Starts a lane on the current tokio runtime (its timers must be enabled). The lane serves
    /// what comes through `arrivals`, and connects to the database at the first write. `name`
    /// labels its metrics and logs: two lanes that run at the same time should not share one.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a cheap clone; callers hand the lane all that it needs"
    )]
    pub fn start(
        sink: Arc<dyn Sink>,
        limits: Limits,
        arrivals: Arrivals,
        metrics: LaneMetrics,
        name: Name,
    ) -> Self {
        let (meters, series) = metrics.lane(&name);
        let idle = Arc::new(IdleNote::new());
        let database = sink.profile().name;
        let (away_sender, away) = watch::channel(None);
        let (stop, stopped) = oneshot::channel();
        let away_wait = limits.away_wait;
        let parts = Parts {
            name: name.clone(),
            sink,
            limits,
            arrivals,
            meters: meters.clone(),
            series,
            idle: Arc::clone(&idle),
            away: away_sender,
        };
        Self {
            watch: LaneWatch {
                name,
                database,
                meters,
                idle,
                away,
                away_wait,
            },
            stop,
            worker: tokio::spawn(worker::run(parts, stopped)),
        }
    }

    /// Stops accepting writes, finishes all that were accepted, closes the connections, and ends.
    /// Units to be run again are finished as well, and wait for a database that is away for
    /// [`Limits::away_wait`].
    ///
    /// Dropping the future does not stop the shutdown, which goes on as long as the runtime lives.
    /// So a caller may race it with a second signal.
    pub async fn shutdown(self) {
        // An error means that the lane has ended already.
        self.stop.send(()).ok();
        self.worker.await.ok();
    }

    /// Returns the lane's state at this moment, as [`LaneWatch::status`] does.
    pub fn status(&self) -> LaneStatus {
        self.watch.status()
    }

    /// Returns a view of the lane's state.
    pub fn watch(&self) -> LaneWatch {
        self.watch.clone()
    }
}

impl LaneWatch {
    /// Checks that a write that arrives now would not be refused because the database is away.
    /// `hint` reports a sign of life of the database to the lane; it is called only if the lane
    /// would refuse the write. Cancel safe.
    ///
    /// # Errors
    /// The fault of such a write, or that the lane has ended.
    pub async fn takes_writes(&self, hint: impl FnOnce()) -> Result<(), Fault> {
        let mut away = self.away.clone();
        let refusal = |away: &Option<Away>| away.as_ref()?.refusal(self.away_wait);
        let Some(fault) = refusal(&away.borrow_and_update()) else {
            return Ok(());
        };
        hint();
        // The lane has followed the hint, or has tried to connect.
        if away.changed().await.is_err() {
            return Err(fault);
        }
        let refusal = refusal(&away.borrow());
        refusal.map_or(Ok(()), Err)
    }

    /// Returns the lane's state at this moment. Cheap: it only reads counters.
    pub fn status(&self) -> LaneStatus {
        let meters = &self.meters;
        let gauge = |gauge: &prometheus_client::metrics::gauge::Gauge| gauge.get().unsigned_abs();
        let (succeeded, failed) = meters.answered();
        let away = self.away.borrow();
        LaneStatus {
            name: self.name.clone(),
            database: self.database,
            queued_units: gauge(&meters.queued_units),
            queued_rows: gauge(&meters.queued_rows),
            queued_bytes: gauge(&meters.queued_bytes),
            idle: self.idle.lasts(),
            connections: gauge(&meters.connections),
            flights: gauge(&meters.flights),
            flights_limit: gauge(&meters.flights_limit),
            batch_rows_limit: gauge(&meters.batch_rows_limit),
            last_batch_rows: gauge(&meters.last_batch_rows),
            away: away
                .as_ref()
                .map(|away| (away.since.elapsed(), away.fault.message.clone())),
            writes: meters.written(),
            succeeded,
            failed,
            batches: meters.batches.get(),
            retried: meters.retried.get(),
            alone: meters.alone.get(),
            abandoned: meters.abandoned.get(),
            reconnects: meters.reconnects.get(),
        }
    }
}
