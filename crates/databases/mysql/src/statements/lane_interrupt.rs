//! Cancels a lane's batch by `KILL QUERY` on another connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use windrow_core::{Canceller, Fault};

use super::lane_session::{LaneSession, LaneTarget, WHICH};

/// The time limit of a cancel request.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);

/// A handle that cancels a lane's batch.
pub(super) struct LaneInterrupt {
    target: Arc<LaneTarget>,
    connection: Box<str>,
    server: Box<str>,
    asked: AtomicBool,
}

impl LaneInterrupt {
    /// Returns the handle of a connection.
    pub(super) fn of(target: &Arc<LaneTarget>, session: &LaneSession) -> Arc<Self> {
        let (connection, server) = session.which.clone();
        Arc::new(Self {
            target: Arc::clone(target),
            connection,
            server,
            asked: AtomicBool::new(false),
        })
    }

    /// Returns true once a batch was to be cancelled: the server may cancel the connection's next
    /// statement.
    pub(super) fn was_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Cancels the statement that the connection executes now, or its next one.
    pub(super) async fn kill(&self) -> Result<(), Fault> {
        let killed = tokio::time::timeout(CANCEL_TIMEOUT, self.ask()).await;
        killed.unwrap_or_else(|_| Err(Fault::unavailable("MySQL did not answer in time")))
    }

    async fn ask(&self) -> Result<(), Fault> {
        let mut session = self.target.log_in().await?;
        let which = session.texts(&[WHICH]).await?;
        let server = which
            .first()
            .and_then(|rows| rows.first()?.get(1)?.as_deref());
        if server == Some(&*self.server) {
            let kill = format!("KILL QUERY {}", self.connection);
            session.texts(&[&kill]).await?;
        } else {
            tracing::warn!("a cancel request came to another server of the same address");
        }
        session.close().await;
        Ok(())
    }
}

#[async_trait]
impl Canceller for LaneInterrupt {
    async fn cancel(&self) -> Result<(), Fault> {
        self.asked.store(true, Ordering::Relaxed);
        self.kill().await
    }
}
