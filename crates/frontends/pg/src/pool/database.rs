//! The server connections of one database: how many there may be, and who gets the next one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use windrow_core::{Fault, Name};
use windrow_pgwire::Target;
use windrow_pgwire::wire::{ServerError, Wire};

use super::idle::{Idle, Kind, Parked};
use super::loan::Loan;
use super::names::Names;
use super::probe;
use super::reports::Report;
use super::state::State;
use super::{Reports, Who};
use crate::berths::{Berth, Berths, Guest};
use crate::config::{DatabaseConfig, PgConfig};
use crate::metrics::PgMetrics;

/// One database.
pub(super) struct Database {
    name: Name,
    target: Target,
    connect_timeout: Duration,
    idle_time: Duration,
    /// One for each connection that may be in use.
    berths: Arc<Berths>,
    idle: Mutex<Idle>,
    /// Connections of an earlier generation are closed when they are given back.
    generation: AtomicU64,
    used: Mutex<BTreeMap<Name, usize>>,
    reports: Arc<Reports>,
    metrics: PgMetrics,
}

/// The right to use a connection.
pub(super) struct Seat {
    database: Arc<Database>,
    role: Name,
    _berth: Berth,
}

/// Server connections of one role, for the console.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServerLine {
    pub(crate) database: Name,
    pub(crate) role: Name,
    pub(crate) used: usize,
    pub(crate) idle: usize,
    /// The most of the database, for all roles.
    pub(crate) most: usize,
}

impl Database {
    pub(super) fn new(
        database: &DatabaseConfig,
        config: &PgConfig,
        metrics: &PgMetrics,
        reports: Arc<Reports>,
    ) -> Arc<Self> {
        let berths = database.berths.clone().unwrap_or_else(|| {
            let most = config.max_server_connections;
            Berths::new(&*database.name, most, config.server_wait)
        });
        let opened = Arc::new(Self {
            name: Name::from(&*database.name),
            target: database.target.clone(),
            connect_timeout: config.connect_timeout,
            idle_time: config.server_idle,
            berths: Arc::clone(&berths),
            idle: Mutex::default(),
            generation: AtomicU64::default(),
            used: Mutex::default(),
            reports,
            metrics: metrics.clone(),
        });
        let guest: Arc<dyn Guest> = Arc::clone(&opened) as _;
        berths.invite(Arc::downgrade(&guest));
        opened
    }

    pub(super) async fn take(self: &Arc<Self>, who: &Who) -> Result<Loan, Fault> {
        let berth = match self.berths.take_now() {
            Ok(berth) => berth,
            Err(_) => {
                let _waiting = Waiting::new(&self.metrics);
                self.berths.take().await?
            }
        };
        self.occupy(berth, who).await
    }

    /// As [`Database::take`], without waiting for others.
    pub(super) async fn take_now(self: &Arc<Self>, who: &Who) -> Result<Loan, Fault> {
        self.occupy(self.berths.take_now()?, who).await
    }

    async fn occupy(self: &Arc<Self>, berth: Berth, who: &Who) -> Result<Loan, Fault> {
        let seat = self.seat(&who.identity.role, berth);
        let kind = Kind::of(who);
        while let Some(mut parked) = self.take_idle(&kind, who) {
            // One that the server has ended is closed.
            if !parked.wire.is_alive() {
                continue;
            }
            if lead(&mut parked, who).await.is_ok() {
                return Ok(Loan::new(parked, seat));
            }
            // So is one that cannot be led to the state that is wanted. A new one shows whether any
            // can.
            break;
        }
        self.shrink(self.berths.free());
        let mut parked = self.connect(kind, who).await?;
        lead(&mut parked, who).await?;
        Ok(Loan::new(parked, seat))
    }

    fn seat(self: &Arc<Self>, role: &Name, berth: Berth) -> Seat {
        self.metrics.servers_used.inc();
        *self.used().entry(Name::clone(role)).or_default() += 1;
        Seat {
            database: Arc::clone(self),
            role: Name::clone(role),
            _berth: berth,
        }
    }

    /// Waits until somebody waits for a connection. Cancel safe.
    pub(super) async fn wanted(&self) {
        self.berths.wanted().await;
    }

    fn take_idle(&self, kind: &Kind, who: &Who) -> Option<Parked> {
        let parked = self.idle().take(kind, who)?;
        self.metrics.servers_idle.dec();
        Some(parked)
    }

    pub(super) async fn knock(&self, who: &Who) -> Result<(), Fault> {
        let parked = self.connect(Kind::of(who), who).await?;
        parked.wire.terminate().await;
        Ok(())
    }

    async fn connect(&self, kind: Kind, who: &Who) -> Result<Parked, Fault> {
        let generation = self.generation.load(Ordering::SeqCst);
        let target = self.target.for_session(&kind.role, &kind.credential);
        let startup = kind.startup.iter();
        let mut settings: Vec<_> = startup.map(|(n, v)| (&**n, v.to_string())).collect();
        settings.push(("application_name", who.application_name.to_string()));
        let connected = Wire::connect(&target, &settings, self.connect_timeout).await;
        let wire = connected.inspect_err(|_| {
            self.metrics.connects_failed.inc();
        })?;
        self.metrics.connects_ok.inc();
        let settings = who.settings.at_start();
        let key = (who.identity.clone(), settings.clone());
        let report = Report::of(who.identity.clone(), settings, &wire);
        self.reports.learn(&key, Arc::new(report));
        let state = State {
            application_name: Name::clone(&who.application_name),
            first_name: Name::clone(&who.application_name),
            ..State::default()
        };
        Ok(Parked {
            kind,
            wire,
            names: Names::default(),
            state,
            generation,
            sender: None,
            since: Instant::now(),
        })
    }

    /// Takes a connection back.
    pub(super) fn park(&self, parked: Parked) {
        let mut idle = self.idle();
        if parked.generation == self.generation.load(Ordering::SeqCst) {
            self.metrics.servers_idle.inc();
            idle.put(parked);
        } else {
            tokio::spawn(parked.wire.terminate());
        }
    }

    /// Lets nobody else have a connection that is there now.
    pub(super) fn retire(&self) {
        self.generation.fetch_add(1, Ordering::SeqCst);
        let idle = self.idle().all();
        self.closed(idle.len());
        for parked in idle {
            tokio::spawn(parked.wire.terminate());
        }
    }

    pub(super) fn clear(&self) {
        self.berths.clear();
    }

    pub(super) async fn sweep(&self) {
        let superfluous = self.idle().superfluous(self.idle_time);
        self.end(superfluous).await;
    }

    pub(super) async fn close(&self) {
        let all = self.idle().all();
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
            most: self.berths.most(),
            ..ServerLine::default()
        };
        let mut lines: BTreeMap<Name, ServerLine> = BTreeMap::new();
        for (role, used) in &*self.used() {
            lines
                .entry(Name::clone(role))
                .or_insert_with(|| line(role))
                .used = *used;
        }
        for parked in self.idle().iter() {
            let role = &parked.kind.role;
            lines
                .entry(Name::clone(role))
                .or_insert_with(|| line(role))
                .idle += 1;
        }
        lines.into_values().collect()
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        // Each change is one insertion or removal: whole at any moment.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn used(&self) -> MutexGuard<'_, BTreeMap<Name, usize>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Leads a connection to the state that is wanted, in one round trip at most.
async fn lead(parked: &mut Parked, who: &Who) -> Result<(), Fault> {
    let way = parked
        .state
        .bridge(&who.settings.set, &who.application_name)
        .unwrap_or_default();
    if way.is_empty() {
        return Ok(());
    }
    let told = probe::ask(&mut parked.wire, &way).await;
    let told = told.map_err(|broken| broken.unavailable())?;
    if let Some(error) = told.into_iter().find_map(|told| told.error) {
        return Err(refused(error));
    }
    parked.state = State {
        set: who.settings.set.clone(),
        application_name: Name::clone(&who.application_name),
        first_name: Name::clone(&parked.state.first_name),
        touched: false,
    };
    Ok(())
}

fn refused(error: ServerError) -> Fault {
    let hint = "A server connection could not be given the settings of this session.";
    let fault = Fault::from(error);
    match fault.hint() {
        Some(_) => fault,
        None => fault.with_hint(Some(hint)),
    }
}

impl Seat {
    pub(super) fn database(&self) -> &Database {
        &self.database
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.database.metrics.servers_used.dec();
        let mut used = self.database.used();
        if let Some(count) = used.get_mut(&self.role) {
            *count -= 1;
            if *count == 0 {
                used.remove(&self.role);
            }
        }
    }
}

impl Guest for Database {
    /// Idle connections have no berths, but there are never more of them than there are berths
    /// free.
    fn shrink(&self, free: usize) {
        let superfluous = self.idle().beyond(free);
        self.closed(superfluous.len());
        for parked in superfluous {
            tokio::spawn(parked.wire.terminate());
        }
    }
}

/// Counts one that waits, as long as it does.
struct Waiting<'a> {
    metrics: &'a PgMetrics,
    since: Instant,
}

impl<'a> Waiting<'a> {
    fn new(metrics: &'a PgMetrics) -> Self {
        metrics.waiting.inc();
        Self {
            metrics,
            since: Instant::now(),
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.metrics.waiting.dec();
        let waited = self.since.elapsed().as_secs_f64();
        self.metrics.wait_seconds.observe(waited);
    }
}
