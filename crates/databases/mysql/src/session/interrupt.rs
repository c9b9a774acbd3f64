//! Cancels a connection's batch by `KILL QUERY` on another connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Opts};
use windrow_core::{Canceller, Fault};

/// The time limit of a cancel request.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);

/// The query that identifies a server: several servers may share one address, and each numbers its
/// connections by itself.
const WHICH: &str = "SELECT CONCAT(@@hostname, ':', @@port, ':', @@server_id)";

/// A handle that cancels a connection's batch.
#[derive(Debug)]
pub(crate) struct Interrupt {
    opts: Opts,
    connection: u32,
    server: String,
    asked: AtomicBool,
}

impl Interrupt {
    /// Returns the handle of a connection that executes nothing now.
    pub(crate) async fn of(opts: &Opts, conn: &mut Conn) -> Result<Arc<Self>, Error> {
        Ok(Arc::new(Self {
            opts: opts.clone(),
            connection: conn.id(),
            server: conn.query_first(WHICH).await?.unwrap_or_default(),
            asked: AtomicBool::new(false),
        }))
    }

    /// Returns true once a batch was to be cancelled: the server may cancel the connection's next
    /// statement.
    pub(crate) fn was_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    async fn ask(&self) -> Result<(), Error> {
        let mut conn = Conn::new(self.opts.clone()).await?;
        let server: Option<String> = conn.query_first(WHICH).await?;
        if server.as_deref() == Some(&*self.server) {
            let kill = format!("KILL QUERY {}", self.connection);
            conn.query_drop(kill).await?;
        } else {
            tracing::warn!("a cancel request came to another server of the same address");
        }
        conn.disconnect().await
    }
}

#[async_trait]
impl Canceller for Interrupt {
    async fn cancel(&self) -> Result<(), Fault> {
        self.asked.store(true, Ordering::Relaxed);
        match tokio::time::timeout(CANCEL_TIMEOUT, self.ask()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Fault::unavailable(error.to_string())),
            Err(_) => Err(Fault::unavailable("MySQL did not answer in time")),
        }
    }
}
