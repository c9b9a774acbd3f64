//! The server connections of one database: their limit, and the idle ones.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use windrow_core::Name;
use windrow_pgwire::Target;

use super::idle::{ConnectionKind, Idle, Parked};
use super::reports::Reports;
use super::who::Who;
use crate::config::{DatabaseConfig, PgConfig};
use crate::connection_slots::{ConnectionSlot, ConnectionSlots, IdleConnections};
use crate::metrics::PgMetrics;

/// One database.
pub(super) struct Database {
    name: Name,
    pub(super) target: Target,
    pub(super) connect_timeout: Duration,
    idle_time: Duration,
    /// One slot for each connection in use.
    pub(super) slots: Arc<ConnectionSlots>,
    idle: Mutex<Idle>,
    /// The current generation. Connections of an earlier one are closed when they are given back.
    pub(super) generation: AtomicU64,
    used: Mutex<BTreeMap<Name, usize>>,
    pub(super) reports: Arc<Reports>,
    pub(super) metrics: PgMetrics,
}

/// The right to use a connection.
pub(super) struct Slot {
    database: Arc<Database>,
    role: Name,
    _connection: ConnectionSlot,
}

/// Server connections of one role, for the console.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServerLine {
    pub(crate) database: Name,
    pub(crate) role: Name,
    pub(crate) used: usize,
    pub(crate) idle: usize,
    /// The limit of the database, for all roles.
    pub(crate) most: usize,
}

impl Database {
    pub(super) fn new(
        database: &DatabaseConfig,
        config: &PgConfig,
        metrics: &PgMetrics,
        reports: Arc<Reports>,
    ) -> Arc<Self> {
        let slots = database.connection_slots.clone().unwrap_or_else(|| {
            let most = config.max_server_connections;
            ConnectionSlots::new(&*database.name, most, config.server_wait)
        });
        let opened = Arc::new(Self {
            name: Name::from(&*database.name),
            target: database.target.clone(),
            connect_timeout: config.connect_timeout,
            idle_time: config.server_idle,
            slots: Arc::clone(&slots),
            idle: Mutex::default(),
            generation: AtomicU64::default(),
            used: Mutex::default(),
            reports,
            metrics: metrics.clone(),
        });
        let holder: Arc<dyn IdleConnections> = Arc::clone(&opened) as _;
        slots.register(Arc::downgrade(&holder));
        opened
    }

    pub(super) fn slot(self: &Arc<Self>, role: &Name, slot: ConnectionSlot) -> Slot {
        self.metrics.servers_used.inc();
        *self.used.lock().entry(Name::clone(role)).or_default() += 1;
        Slot {
            database: Arc::clone(self),
            role: Name::clone(role),
            _connection: slot,
        }
    }

    /// Returns true while a task waits for a connection.
    pub(super) fn is_wanted(&self) -> bool {
        self.slots.is_wanted_of_session()
    }

    /// Waits until a task waits for a connection. Cancel safe.
    pub(super) async fn wanted(&self) {
        self.slots.wanted().await;
    }

    /// Takes an idle connection, if there is one of the kind.
    pub(super) fn take_idle(&self, kind: &ConnectionKind, who: &Who) -> Option<Parked> {
        let parked = self.idle.lock().take(kind, who)?;
        self.metrics.servers_idle.dec();
        Some(parked)
    }

    /// Keeps a connection that was given back.
    pub(super) fn park(&self, parked: Parked) {
        let mut idle = self.idle.lock();
        if parked.generation == self.generation.load(Ordering::SeqCst) {
            self.metrics.servers_idle.inc();
            idle.put(parked);
        } else {
            tokio::spawn(parked.wire.terminate());
        }
    }

    /// Lets no other session use the connections that exist now.
    pub(super) fn retire(&self) {
        self.generation.fetch_add(1, Ordering::SeqCst);
        let idle = self.idle.lock().all();
        self.closed(idle.len());
        for parked in idle {
            tokio::spawn(parked.wire.terminate());
        }
    }

    pub(super) fn clear(&self) {
        self.slots.clear();
    }

    pub(super) async fn sweep(&self) {
        let superfluous = self.idle.lock().superfluous(self.idle_time);
        self.end(superfluous).await;
    }

    pub(super) async fn close(&self) {
        let all = self.idle.lock().all();
        self.end(all).await;
    }

    async fn end(&self, connections: Vec<Parked>) {
        self.closed(connections.len());
        for parked in connections {
            parked.wire.terminate().await;
        }
    }

    fn closed(&self, count: usize) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.metrics.servers_idle.dec_by(count);
    }

    pub(super) fn lines(&self) -> Vec<ServerLine> {
        let line = |role: &Name| ServerLine {
            database: Name::clone(&self.name),
            role: Name::clone(role),
            most: self.slots.most(),
            ..ServerLine::default()
        };
        let mut lines: BTreeMap<Name, ServerLine> = BTreeMap::new();
        for (role, used) in &*self.used.lock() {
            lines
                .entry(Name::clone(role))
                .or_insert_with(|| line(role))
                .used = *used;
        }
        for parked in self.idle.lock().iter() {
            let role = &parked.kind.role;
            lines
                .entry(Name::clone(role))
                .or_insert_with(|| line(role))
                .idle += 1;
        }
        lines.into_values().collect()
    }
}

impl Slot {
    pub(super) fn database(&self) -> &Database {
        &self.database
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.database.metrics.servers_used.dec();
        let mut used = self.database.used.lock();
        if let Some(count) = used.get_mut(&self.role) {
            *count -= 1;
            if *count == 0 {
                used.remove(&self.role);
            }
        }
    }
}

impl IdleConnections for Database {
    /// Idle connections have no slots, but there are never more of them than free slots.
    fn shrink(&self, free: usize) {
        let superfluous = self.idle.lock().beyond(free);
        self.closed(superfluous.len());
        for parked in superfluous {
            tokio::spawn(parked.wire.terminate());
        }
    }
}
