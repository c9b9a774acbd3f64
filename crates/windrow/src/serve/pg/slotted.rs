//! The connections of a lane, each with a connection slot of its database.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;
use windrow_core::sink::Purpose;
use windrow_core::{Canceller, Executor, Fault, Profile, Report, Sink, Unit};
use windrow_pg::{ConnectionSlot, ConnectionSlots};

/// The time for which a connection may execute one batch after another while others wait for a
/// connection.
const TURN: Duration = Duration::from_millis(100);

/// A sink whose connections take connection_slots.
pub(super) struct SlottedSink {
    pub(super) sink: Arc<dyn Sink>,
    pub(super) connection_slots: Arc<ConnectionSlots>,
}

struct SlottedExecutor {
    executor: Box<dyn Executor>,
    connection_slots: Arc<ConnectionSlots>,
    slot: ConnectionSlot,
}

#[async_trait]
impl Sink for SlottedSink {
    fn profile(&self) -> &Profile {
        self.sink.profile()
    }

    fn system(&self) -> &'static str {
        self.sink.system()
    }

    async fn connect(&self, purpose: Purpose) -> Result<Box<dyn Executor>, Fault> {
        let slot = self.connection_slots.take().await?;
        self.connection_slots.settle();
        Ok(Box::new(SlottedExecutor {
            executor: self.sink.connect(purpose).await?,
            connection_slots: Arc::clone(&self.connection_slots),
            slot,
        }))
    }

    fn statement_timeout(&self) -> Option<Duration> {
        self.sink.statement_timeout()
    }

    fn touches(&self, unit: &Unit, hashes: &mut Vec<u64>) {
        self.sink.touches(unit, hashes);
    }
}

#[async_trait]
impl Executor for SlottedExecutor {
    async fn execute(&mut self, units: &[Unit]) -> Report {
        let mut report = self.executor.execute(units).await;
        if self.connection_slots.is_wanted() && self.slot.age() > TURN {
            // The next batch must wait for a connection like the others.
            report.usable = false;
        }
        report
    }

    fn arrived(&mut self, at: Instant) {
        self.executor.arrived(at);
    }

    fn canceller(&self) -> Option<Arc<dyn Canceller>> {
        self.executor.canceller()
    }

    async fn close(self: Box<Self>) {
        self.executor.close().await;
        drop(self.slot);
    }
}
