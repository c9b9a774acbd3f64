//! The primary with its replicas, in the form of a database.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use windrow_core::{
    Bookkeeping, Bulk, Database, Executor, Fault, Inventory, Moves, Profile, Purpose, Sink,
    Standing, TableName, Unit, WriteRights,
};

use crate::applier::Applier;
use crate::check::Source;
use crate::copy;
use crate::executor;
use crate::metrics::ReplicaMetrics;
use crate::replica::Replica;
use crate::shared::{Shared, WaitFor};
use crate::signs;
use crate::status::ReplicaStatus;

/// A database whose rows are replicated.
pub struct Primary {
    shared: Arc<Shared>,
}

/// The interval at which metrics that depend on the time are updated.
const LOOK: Duration = Duration::from_secs(1);

impl Primary {
    /// Combines a database with its replicas. Nothing is applied before [`Primary::run`].
    ///
    /// # Errors
    /// [`windrow_core::FaultClass::Unsupported`] for a database that cannot have replicas.
    pub fn new(
        database: &Arc<dyn Database>,
        replicas: Vec<Arc<Replica>>,
        wait_for: WaitFor,
        metrics: &ReplicaMetrics,
    ) -> Result<Self, Fault> {
        let source = Source::new(database)?;
        Ok(Self {
            shared: Arc::new(Shared::new(
                source,
                replicas,
                wait_for,
                metrics.untold.clone(),
            )),
        })
    }

    /// Returns a sink for the calls of SQL clients, whose rows are replicated if the calls name
    /// them.
    pub fn follow(&self, sink: Arc<dyn Sink>) -> Arc<dyn Sink> {
        Arc::new(FollowedSink {
            sink,
            shared: Arc::clone(&self.shared),
        })
    }

    /// Returns the number of statements that have changed rows whose keys replicas did not get,
    /// since the start.
    pub fn untold(&self) -> u64 {
        self.shared.all_untold()
    }

    /// Ends all waiting for replicas: from now on, writes committed at the primary are answered.
    pub fn end_waiting(&self) {
        self.shared.ending.cancel();
    }

    /// Returns the state of each replica.
    pub fn status(&self) -> Vec<ReplicaStatus> {
        self.shared.replicas.iter().map(|r| r.status()).collect()
    }

    /// Applies the logs of all replicas until `stop` is cancelled. The next start applies the keys
    /// that are left. A dropped future ends at once.
    ///
    /// # Errors
    /// A log cannot be read.
    pub async fn run(&self, stop: CancellationToken) -> Result<(), Fault> {
        let mut tasks = JoinSet::new();
        let awaited = self.shared.wanted(self.shared.replicas.len()) > 0;
        for replica in &self.shared.replicas {
            let source = &self.shared.source;
            let from = (source.clone(), awaited);
            let applier = Applier::new(Arc::clone(replica), from, stop.clone())?;
            tasks.spawn(applier.run());
            tasks.spawn(copy::run(Arc::clone(replica), source.clone(), stop.clone()));
            tasks.spawn(signs::run(Arc::clone(replica), stop.clone()));
        }
        let measure = async {
            let mut look = tokio::time::interval(LOOK);
            loop {
                look.tick().await;
                for replica in &self.shared.replicas {
                    replica.meters.measure(&replica.status());
                }
            }
        };
        tokio::select! {
            () = async { while tasks.join_next().await.is_some() {} } => {}
            () = measure => {}
        }
        join_all(self.shared.replicas.iter().map(|replica| replica.close())).await;
        Ok(())
    }
}

#[async_trait]
impl Sink for Primary {
    fn profile(&self) -> &Profile {
        self.shared.source.database.profile()
    }

    fn system(&self) -> &'static str {
        self.shared.source.database.system()
    }

    async fn connect(&self, purpose: Purpose) -> Result<Box<dyn Executor>, Fault> {
        executor::connect(&*self.shared.source.database, purpose, &self.shared).await
    }

    fn statement_timeout(&self) -> Option<Duration> {
        self.shared.source.database.statement_timeout()
    }

    fn touches(&self, unit: &Unit, hashes: &mut Vec<u64>) {
        self.shared.source.database.touches(unit, hashes);
    }
}

/// A sink for the calls of SQL clients, whose rows are replicated.
struct FollowedSink {
    sink: Arc<dyn Sink>,
    shared: Arc<Shared>,
}

#[async_trait]
impl Sink for FollowedSink {
    fn profile(&self) -> &Profile {
        self.sink.profile()
    }

    fn system(&self) -> &'static str {
        self.sink.system()
    }

    async fn connect(&self, purpose: Purpose) -> Result<Box<dyn Executor>, Fault> {
        executor::connect(&*self.sink, purpose, &self.shared).await
    }

    fn statement_timeout(&self) -> Option<Duration> {
        self.sink.statement_timeout()
    }

    fn touches(&self, unit: &Unit, hashes: &mut Vec<u64>) {
        self.sink.touches(unit, hashes);
    }
}

/// Has no bulk loads and moves, which would bypass the replicas.
#[async_trait]
impl Database for Primary {
    async fn ping(&self) -> Result<(), Fault> {
        self.shared.source.database.ping().await
    }

    async fn write_rights(&self) -> Result<Option<WriteRights>, Fault> {
        self.shared.source.database.write_rights().await
    }

    async fn takes_writes(&self) -> Result<(), Fault> {
        self.shared.source.database.takes_writes().await
    }

    fn reads(&self) -> Option<Arc<dyn Sink>> {
        self.shared.source.database.reads()
    }

    fn bulk(&self) -> Option<Arc<dyn Bulk>> {
        None
    }

    fn moves(&self) -> Option<Arc<dyn Moves>> {
        None
    }

    fn bookkeeping(&self) -> Option<Arc<dyn Bookkeeping>> {
        self.shared.source.database.bookkeeping()
    }

    fn inventory(&self) -> Option<Arc<dyn Inventory>> {
        self.shared.source.database.inventory()
    }

    fn owns(&self, table: &TableName) -> bool {
        self.shared.source.database.owns(table)
    }

    fn standings(&self) -> Vec<Standing> {
        self.shared.source.database.standings()
    }
}
