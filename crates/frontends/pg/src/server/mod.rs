//! Listening, and what becomes of each connection.

mod listen;

use std::collections::HashSet;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::gauge::Gauge;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admin;
use crate::admit::{Admitted, Arrival, CONSOLE, Place, admit};
use crate::config::PgConfig;
use crate::house::House;
use crate::services::Services;
use crate::session;
use crate::warrant;
use listen::Listeners;

/// How often idle server connections are looked at, at most.
const SWEEP: Duration = Duration::from_secs(10);

/// How often is looked for databases that nobody is in any more.
const LEFT: Duration = Duration::from_secs(1);

/// A frontend that listens.
pub struct Pg {
    listeners: Listeners,
    local_addr: SocketAddr,
    house: Arc<House>,
}

impl Pg {
    /// Opens the listening sockets. Clients may connect from then on; they are served by
    /// [`Pg::run`].
    ///
    /// # Errors
    /// An address that cannot be listened on, or one that is not loopback although neither users
    /// nor an auth_query are configured; no database, one that has the console's name, or a
    /// user whose verifier cannot be used.
    pub async fn bind(config: PgConfig, services: Services) -> io::Result<Self> {
        let invalid = |text: String| io::Error::new(io::ErrorKind::InvalidInput, text);
        check(&config).map_err(invalid)?;
        let house = House::new(config, services).map_err(invalid)?;
        let config = &house.config;
        if !config.listen.ip().is_loopback() && house.access.trusts() {
            return Err(invalid(format!(
                "{} can be reached from other machines, and neither users nor an auth_query are configured: nobody could come in \
                 from there. Configure pg.users or pg.auth_query, or listen on 127.0.0.1",
                config.listen
            )));
        }
        let listeners = Listeners::open(config.listen, config.unix_socket_dir.as_deref()).await?;
        Ok(Self {
            local_addr: listeners.local_addr()?,
            listeners,
            house,
        })
    }

    /// Where it listens, with the port that was found.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Serves until `stop` is cancelled. Then nobody is let in any more, sessions end what is under
    /// way and are told good-bye (57P01), and the future ends with the last of them: whoever
    /// cannot wait for ever bounds it. Dropping the future stops the accepting, not the
    /// sessions.
    pub async fn run(self, stop: CancellationToken) {
        let tracker = TaskTracker::new();
        let sweeping = tracker.spawn(sweep(Arc::clone(&self.house)));
        let leaving = tracker.spawn(leave(Arc::clone(&self.house)));
        let checking = tracker.spawn(warrant::check(Arc::clone(&self.house)));
        let accepting = self.accept(&tracker);
        tokio::select! {
            () = stop.cancelled() => {}
            () = accepting => {}
        }
        self.house.stop.cancel();
        // Whoever is held back has to hear of it.
        self.house.gate.resume(None);
        drop(self.listeners);
        tracker.close();
        tracker.wait().await;
        // Nobody uses a server connection any more.
        self.house.pool.close().await;
        drop((sweeping, leaving, checking));
    }

    /// Accepts until somebody at the console ends it.
    async fn accept(&self, tracker: &TaskTracker) {
        loop {
            let place = tokio::select! {
                biased;
                () = self.house.stop.cancelled() => return,
                place = self.house.starting.place() => place,
            };
            let arrival = tokio::select! {
                biased;
                () = self.house.stop.cancelled() => return,
                arrival = self.listeners.accept() => arrival,
            };
            tracker.spawn(serve(Arc::clone(&self.house), arrival, place));
        }
    }
}

fn check(config: &PgConfig) -> Result<(), String> {
    if config.databases.is_empty() {
        return Err("no database is configured for the PostgreSQL frontend".to_owned());
    }
    if config
        .databases
        .iter()
        .any(|database| database.name == CONSOLE)
    {
        return Err(format!(
            "a database for clients cannot be called {CONSOLE:?}: that is the console's name"
        ));
    }
    if config.require_tls && config.tls.is_none() {
        return Err("require_tls is set, but TLS is not configured".to_owned());
    }
    Ok(())
}

/// One connection, from its first byte to its end.
async fn serve(house: Arc<House>, arrival: Arrival, place: Place) {
    // Boxed, and gone before the session begins: what it takes to come in is not held for as long
    // as somebody is in.
    let admitted = Box::pin(admit(&house, arrival, &place)).await;
    drop(place);
    match admitted {
        None => {}
        Some(Admitted::Console(stream)) => Box::pin(admin::run(stream, &house)).await,
        Some(Admitted::Session(client, entry, seat)) => {
            let counted = Counted::new(&house.metrics.clients);
            Box::pin(session::run(*client, Arc::clone(&house))).await;
            drop((counted, entry, seat));
        }
    }
}

/// Counts one, as long as it lives.
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

/// Closes the connections to databases that nobody is in any more: as long as there is one, nobody
/// can drop them.
async fn leave(house: Arc<House>) {
    let mut left: HashSet<String> = HashSet::new();
    let mut tick = interval(LEFT);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = house.stop.cancelled() => return,
            _ = tick.tick() => {}
        }
        // Who comes back at once finds them still.
        let names = house.config.databases.iter().map(|database| &database.name);
        let now: HashSet<String> = names.filter(|name| house.is_left(name)).cloned().collect();
        house.let_go(|database| now.contains(&database.name) && left.contains(&database.name));
        left = now;
    }
}

/// Looks after idle server connections.
async fn sweep(house: Arc<House>) {
    let mut tick =
        interval((house.config.server_idle / 2).clamp(Duration::from_millis(100), SWEEP));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = house.stop.cancelled() => return,
            _ = tick.tick() => {}
        }
        house.pool.sweep().await;
        house.access.sweep().await;
        house.moments.sweep().await;
    }
}
