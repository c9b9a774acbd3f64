//! The listening sockets, and a task for each connection.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use windrow_sockets::{ClientSocket, Listeners, StartSlot, Starting};

use crate::admit::admit;
use crate::config::{MysqlConfig, UserConfig};
use crate::services::Services;
use crate::session;
use crate::shared::Shared;

/// A frontend that listens.
pub struct MysqlFrontend {
    listeners: Listeners,
    local_addr: SocketAddr,
    shared: Arc<Shared>,
}

/// Replaces the users that are admitted, while clients are logged in. Cheap to clone.
#[derive(Clone)]
pub struct UserKeeper(Arc<Shared>);

impl UserKeeper {
    /// Admits these users from now on. Sessions of users that are not among them, or whose verifier
    /// is another one, end.
    pub fn replace(&self, users: Vec<UserConfig>) {
        let access = &self.0.access;
        access.replace(users);
        let lanes = &self.0.lanes;
        self.0.register.revoke(|user, verifier| {
            let still = access.still_admits(user, verifier);
            if !still {
                lanes.revoke(user);
            }
            still
        });
    }
}

impl MysqlFrontend {
    /// Opens the listening sockets. Clients may connect from then on; they are served by
    /// [`MysqlFrontend::run`].
    ///
    /// # Errors
    /// An address that cannot be listened on, or one that is not loopback although no users are
    /// configured.
    pub async fn bind(config: MysqlConfig, services: Services) -> io::Result<Self> {
        let invalid = |text| io::Error::new(io::ErrorKind::InvalidInput, text);
        config.check().map_err(invalid)?;
        let open = config.socket.as_deref();
        let listeners =
            Listeners::open(config.listen, open, |_| config.unix_socket.clone()).await?;
        Ok(Self {
            local_addr: listeners.local_addr()?,
            listeners,
            shared: Arc::new(Shared::new(config, services)),
        })
    }

    /// Returns the address where it listens, with the port that was found.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Returns the handle that replaces the users while clients are logged in.
    pub fn user_keeper(&self) -> UserKeeper {
        UserKeeper(Arc::clone(&self.shared))
    }

    /// Serves until `stop` is cancelled. Then sessions end once they are in no transaction, and the
    /// future ends with the last of them: a caller that needs a time limit must add one.
    pub async fn run(self, stop: CancellationToken) {
        let tracker = TaskTracker::new();
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = self.accept(&tracker) => {}
        }
        self.shared.stop.cancel();
        drop(self.listeners);
        tracker.close();
        tracker.wait().await;
    }

    /// Accepts connections. Never ends.
    async fn accept(&self, tracker: &TaskTracker) {
        let starting = Arc::<Starting>::default();
        loop {
            let slot = starting.slot().await;
            let client = self.listeners.accept().await;
            let shared = Arc::clone(&self.shared);
            let threads = &self.shared.config.threads;
            threads.serve(tracker, client, move |client| serve(shared, client, slot));
        }
    }
}

/// Serves one connection, from its first byte to its end.
async fn serve(shared: Arc<Shared>, client: ClientSocket, slot: StartSlot) {
    let Some(admitted) = admit(&shared, client, slot).await else {
        return;
    };
    let metrics = shared.metrics.clone();
    metrics.clients.inc();
    metrics.server_connections.inc();
    session::run(shared, admitted).await;
    metrics.clients.dec();
    metrics.server_connections.dec();
}
