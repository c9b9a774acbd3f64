//! A database that is away while its replica's log is applied.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests may panic as tests may"
)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use windrow_core::{
    Database, Executor, Fault, Inventory, KeyedTable, Profile, Purpose, Row, RowPage, Sink,
    TableName,
};
use windrow_replicas::{KeyLog, Names, Primary, Replica, ReplicaMetrics, WaitFor};

/// Attempts to connect that a test waits for.
const ATTEMPTS: usize = 6;

/// A database without tables that refuses all connections, and the moments of the attempts.
struct Away {
    profile: Profile,
    attempts: Arc<Mutex<Vec<Instant>>>,
    enough: Arc<Notify>,
}

#[async_trait]
impl Sink for Away {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    async fn connect(&self, _: Purpose) -> Result<Box<dyn Executor>, Fault> {
        let mut attempts = self.attempts.lock().unwrap();
        attempts.push(Instant::now());
        if attempts.len() == ATTEMPTS {
            self.enough.notify_one();
        }
        Err(Fault::unavailable("away"))
    }
}

#[async_trait]
impl Database for Away {
    async fn ping(&self) -> Result<(), Fault> {
        Err(Fault::unavailable("away"))
    }

    fn inventory(&self) -> Option<Arc<dyn Inventory>> {
        Some(Arc::new(Empty))
    }
}

struct Empty;

#[async_trait]
impl Inventory for Empty {
    fn has_schemas(&self) -> bool {
        false
    }

    async fn tables(&self) -> Result<Vec<TableName>, Fault> {
        Ok(Vec::new())
    }

    async fn table(&self, _: &TableName) -> Result<Option<KeyedTable>, Fault> {
        Ok(None)
    }

    async fn rows(&self, _: &RowPage<'_>) -> Result<Vec<Row>, Fault> {
        Ok(Vec::new())
    }

    async fn settled(&self) -> Result<(), Fault> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn attempts_to_connect_become_rarer_from_the_first_one_on() {
    let (attempts, enough) = (Arc::default(), Arc::default());
    let away: Arc<dyn Database> = Arc::new(Away {
        profile: Profile {
            name: "Away",
            transactional: true,
            flights: 1,
            batch_rows: 1000,
            limitations: &[],
        },
        attempts: Arc::clone(&attempts),
        enough: Arc::clone(&enough),
    });
    let folder = tempfile::tempdir().unwrap();
    let log = KeyLog::in_files(&folder.path().join("one"), 1 << 20)
        .await
        .unwrap();
    let metrics = ReplicaMetrics::default();
    let to = (Arc::clone(&away), Names::default());
    let replica = Replica::new("one", to, log, metrics.replica("one")).await;
    let replicas = vec![Arc::new(replica.unwrap())];
    let primary = Primary::new(&away, replicas, WaitFor::Primary, &metrics).unwrap();
    let stop = CancellationToken::new();
    let stopping = async {
        enough.notified().await;
        stop.cancel();
    };
    let (ran, ()) = tokio::join!(primary.run(stop.clone()), stopping);
    ran.unwrap();
    let attempts = attempts.lock().unwrap();
    let delays: Vec<Duration> = attempts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(delays[0] >= Duration::from_millis(15), "{delays:?}");
    assert!(
        delays.windows(2).all(|pair| pair[1] > pair[0]),
        "{delays:?}"
    );
}
