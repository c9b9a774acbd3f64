//! The connections of a lane, each with a berth of its database.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;
use windrow_core::sink::Purpose;
use windrow_core::{Canceller, Executor, Fault, Profile, Report, Sink, Standing, Unit};
use windrow_pg::{Berth, Berths};

/// For how long a connection may go on from batch to batch while others wait for one.
const TURN: Duration = Duration::from_millis(100);

/// A sink whose connections take berths.
pub(super) struct BerthedSink {
    pub(super) sink: Arc<dyn Sink>,
    pub(super) berths: Arc<Berths>,
}

struct BerthedExecutor {
    executor: Box<dyn Executor>,
    berths: Arc<Berths>,
    berth: Berth,
}

#[async_trait]
impl Sink for BerthedSink {
    fn profile(&self) -> &Profile {
        self.sink.profile()
    }

    async fn connect(&self, purpose: Purpose) -> Result<Box<dyn Executor>, Fault> {
        let berth = self.berths.take().await?;
        self.berths.settle();
        Ok(Box::new(BerthedExecutor {
            executor: self.sink.connect(purpose).await?,
            berths: Arc::clone(&self.berths),
            berth,
        }))
    }

    async fn ping(&self) -> Result<(), Fault> {
        self.sink.ping().await
    }

    fn standings(&self) -> Vec<Standing> {
        self.sink.standings()
    }

    fn statement_timeout(&self) -> Option<Duration> {
        self.sink.statement_timeout()
    }

    fn touches(&self, unit: &Unit, hashes: &mut Vec<u64>) {
        self.sink.touches(unit, hashes);
    }
}

#[async_trait]
impl Executor for BerthedExecutor {
    async fn execute(&mut self, units: &[Unit]) -> Report {
        let mut report = self.executor.execute(units).await;
        if self.berths.is_wanted() && self.berth.age() > TURN {
            // The next batch gets a connection in its turn.
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
        drop(self.berth);
    }
}
