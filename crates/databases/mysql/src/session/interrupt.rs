//! Giving a connection's batch up, from outside of it: `KILL QUERY` on another connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Opts};
use windrow_core::{Canceller, Fault};

/// How long a request may take on its way to the server.
const PATIENCE: Duration = Duration::from_secs(10);

/// Which server it is: behind one address there may be several, and each of them counts its
/// connections by itself.
const WHICH: &str = "SELECT CONCAT(@@hostname, ':', @@port, ':', @@server_id)";

/// The right to interrupt a connection's batch.
#[derive(Debug)]
pub(crate) struct Interrupt {
    opts: Opts,
    connection: u32,
    server: String,
    asked: AtomicBool,
}

impl Interrupt {
    /// Of a connection that executes nothing at this moment.
    pub(crate) async fn of(opts: &Opts, conn: &mut Conn) -> Result<Arc<Self>, Error> {
        Ok(Arc::new(Self {
            opts: opts.clone(),
            connection: conn.id(),
            server: conn.query_first(WHICH).await?.unwrap_or_default(),
            asked: AtomicBool::new(false),
        }))
    }

    /// True once a batch was to be given up: the server may have kept that for the connection's
    /// next statement.
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
        match tokio::time::timeout(PATIENCE, self.ask()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Fault::unavailable(error.to_string())),
            Err(_) => Err(Fault::unavailable("MySQL did not answer in time")),
        }
    }
}
