//! Listens, and starts a task for each connection.

mod recheck;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::gauge::Gauge;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use windrow_sockets::{ClientSocket, Listeners, StartSlot, Starting};

use crate::admin;
use crate::admit::{Admitted, CONSOLE, admit};
use crate::config::{PgConfig, Roles};
use crate::services::Services;
use crate::session;
use crate::shared::Shared;

/// The longest interval between checks of idle server connections.
const MAX_SWEEP_INTERVAL: Duration = Duration::from_secs(10);

/// A listening frontend.
pub struct Pg {
    listeners: Listeners,
    local_addr: SocketAddr,
    shared: Arc<Shared>,
    /// The connections that are logging in.
    starting: Arc<Starting>,
}

/// Replaces the admitted roles while clients are connected. Cheap to clone.
#[derive(Clone)]
pub struct RoleKeeper(Arc<Shared>);

impl RoleKeeper {
    /// Replaces the roles, for clients that come from now on.
    ///
    /// # Errors
    /// The defect; the earlier ones stay in force.
    pub fn replace(&self, roles: Roles) -> Result<(), String> {
        self.0.access.replace(roles)
    }
}

impl Pg {
    /// Opens the listening sockets. Clients may connect from then on, and [`Pg::run`] serves them.
    ///
    /// # Errors
    /// The address cannot be used, or is not loopback although neither users nor an auth_query are
    /// configured; there is no database, or one with the console's name; or a user's verifier is
    /// invalid.
    pub async fn bind(config: PgConfig, services: Services) -> io::Result<Self> {
        let invalid = |text: String| io::Error::new(io::ErrorKind::InvalidInput, text);
        config.check().map_err(invalid)?;
        let shared = Shared::new(config, services).map_err(invalid)?;
        let config = &shared.config;
        let unix_path = |port| {
            let directory = config.unix_socket_dir.as_ref();
            directory.map(|directory| directory.join(format!(".s.PGSQL.{port}")))
        };
        let open = config.socket.as_deref();
        let listeners = Listeners::open(config.listen, open, unix_path).await?;
        Ok(Self {
            local_addr: listeners.local_addr()?,
            listeners,
            shared: Arc::new(shared),
            starting: Arc::default(),
        })
    }

    /// Returns the listening address, with the actual port.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Returns the handle that replaces the roles while clients are connected.
    pub fn role_keeper(&self) -> RoleKeeper {
        RoleKeeper(Arc::clone(&self.shared))
    }

    /// Serves until `stop` is cancelled. Then no client is admitted, sessions finish their work,
    /// their clients get 57P01, and the future ends with the last of them; the caller sets a time
    /// limit if it needs one. Dropping the future only stops accepting connections.
    pub async fn run(self, stop: CancellationToken) {
        let tracker = TaskTracker::new();
        let sweeping = tracker.spawn(sweep(Arc::clone(&self.shared)));
        let checking = tracker.spawn(recheck::run(Arc::clone(&self.shared)));
        let accepting = self.accept(&tracker);
        tokio::select! {
            () = stop.cancelled() => {}
            () = accepting => {}
        }
        self.shared.stop.cancel();
        // A paused session must notice the end.
        self.shared.gate.resume(None);
        drop(self.listeners);
        tracker.close();
        tracker.wait().await;
        // No session uses a server connection any more.
        self.shared.databases.pool.close().await;
        drop((sweeping, checking));
    }

    /// Accepts connections until a session at the console ends the process.
    async fn accept(&self, tracker: &TaskTracker) {
        loop {
            let slot = tokio::select! {
                biased;
                () = self.shared.stop.cancelled() => return,
                slot = self.starting.slot() => slot,
            };
            let arrival = tokio::select! {
                biased;
                () = self.shared.stop.cancelled() => return,
                arrival = self.listeners.accept() => arrival,
            };
            let shared = Arc::clone(&self.shared);
            let threads = &self.shared.config.threads;
            threads.serve(tracker, arrival, move |client| serve(shared, client, slot));
        }
    }
}

impl PgConfig {
    /// Checks that clients can log in with this configuration.
    ///
    /// # Errors
    /// There is no database, or one with the console's name; TLS is required and not configured;
    /// the address is not loopback although neither users nor an `auth_query` are configured.
    pub fn check(&self) -> Result<(), String> {
        let mut databases = self.databases.iter();
        if self.databases.is_empty() {
            Err("no database is configured for the PostgreSQL frontend".to_owned())
        } else if databases.any(|database| database.name == CONSOLE) {
            Err(format!(
                "a database for clients cannot be called {CONSOLE:?}: that is the console's name"
            ))
        } else if self.require_tls && self.tls.is_none() {
            Err("require_tls is set, but TLS is not configured".to_owned())
        } else if self.roles.trusts() && !self.listen.ip().is_loopback() {
            Err(format!(
                "{} can be reached from other machines, and neither users nor an auth_query are configured: nobody could come in \
                 from there. Configure pg.users or pg.auth_query, or listen on 127.0.0.1",
                self.listen
            ))
        } else {
            Ok(())
        }
    }
}

/// Serves one connection, from its first byte to its end.
async fn serve(shared: Arc<Shared>, arrival: ClientSocket, slot: StartSlot) {
    // Boxed, and dropped before the session begins, so that the memory of the login is not held as
    // long as the session lives.
    let admitted = Box::pin(admit(&shared, arrival, &slot)).await;
    drop(slot);
    match admitted {
        None => {}
        Some(Admitted::Console(stream)) => Box::pin(admin::run(stream, &shared)).await,
        Some(Admitted::Session(client, entry, client_slot)) => {
            let counted = Counted::new(&shared.metrics.clients);
            Box::pin(session::run(*client, Arc::clone(&shared))).await;
            drop((counted, entry, client_slot));
        }
    }
}

/// Counts a connection until it is dropped.
struct Counted(Gauge);

impl Counted {
    fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Closes superfluous server connections periodically.
async fn sweep(shared: Arc<Shared>) {
    let databases = &shared.databases;
    let mut tick = interval(
        (shared.config.server_idle / 2).clamp(Duration::from_millis(100), MAX_SWEEP_INTERVAL),
    );
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = shared.stop.cancelled() => return,
            _ = tick.tick() => {}
        }
        databases.pool.sweep().await;
        shared.access.sweep().await;
        databases.role_states.sweep().await;
    }
}
