//! Takes a server connection: an idle or a new one, in the requested state.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::runtime::Handle;
use tokio::time::Instant;
use windrow_core::{Fault, Name};
use windrow_pgwire::wire::{ServerError, Wire};

use super::database::Database;
use super::idle::{ConnectionKind, Parked};
use super::loan::Loan;
use super::names::Names;
use super::probe;
use super::reports::Report;
use super::state::ConnectionState;
use super::who::Who;
use crate::connection_slots::{ConnectionSlot, IdleConnections as _};
use crate::metrics::PgMetrics;

impl Database {
    /// Takes a connection in the requested state. Waiting sessions are served in the order of
    /// asking.
    pub(super) async fn take(self: &Arc<Self>, who: &Who) -> Result<Loan, Fault> {
        let slot = match self.slots.take_for_session_now() {
            Ok(slot) => slot,
            Err(_) => {
                let _waiting = WaitingForConnection::new(&self.metrics);
                self.slots.take_for_session().await?
            }
        };
        self.occupy(slot, who).await
    }

    /// Takes a connection without waiting for others, otherwise as [`Database::take`].
    pub(super) async fn take_now(self: &Arc<Self>, who: &Who) -> Result<Loan, Fault> {
        self.occupy(self.slots.take_for_session_now()?, who).await
    }

    async fn occupy(self: &Arc<Self>, slot: ConnectionSlot, who: &Who) -> Result<Loan, Fault> {
        let slot = self.slot(&who.identity.role, slot);
        let kind = ConnectionKind::of(who);
        while let Some(mut parked) = self.take_idle(&kind, who) {
            // A connection that the server has ended is closed.
            if !parked.wire.is_alive() {
                continue;
            }
            if lead(&mut parked, who).await.is_ok() {
                return Ok(Loan::new(parked, slot));
            }
            // So is one that cannot be led to the requested state. A new one shows whether any can.
            break;
        }
        self.shrink(self.slots.free());
        let mut parked = self.connect(kind, who).await?;
        lead(&mut parked, who).await?;
        Ok(Loan::new(parked, slot))
    }

    /// Opens and closes a connection, to see if the server admits `who`.
    pub(super) async fn try_connect(&self, who: &Who) -> Result<(), Fault> {
        let parked = self.connect(ConnectionKind::of(who), who).await?;
        parked.wire.terminate().await;
        Ok(())
    }

    async fn connect(&self, kind: ConnectionKind, who: &Who) -> Result<Parked, Fault> {
        let generation = self.generation.load(Ordering::SeqCst);
        let target = self.target.for_session(&kind.role, &kind.credential);
        let startup = kind.startup.iter();
        let mut settings: Vec<_> = startup.map(|(n, v)| (&**n, v.to_string())).collect();
        settings.push(("application_name", who.application_name.to_string()));
        let connected = Wire::connect(&target, &settings, self.connect_timeout).await;
        let wire = connected.map_err(|fault| {
            self.metrics.connects_failed.inc();
            as_asked(fault, &who.identity.database, target.database())
        })?;
        self.metrics.connects_ok.inc();
        let settings = who.settings.at_start();
        let key = (who.identity.clone(), settings.clone());
        let report = Report::of(who.identity.clone(), settings, &wire);
        self.reports.learn(&key, Arc::new(report));
        let state = ConnectionState {
            application_name: Name::clone(&who.application_name),
            first_name: Name::clone(&who.application_name),
            ..ConnectionState::default()
        };
        Ok(Parked {
            kind,
            wire,
            names: Names::default(),
            state,
            generation,
            runtime: Handle::current().id(),
            sender: None,
            since: Instant::now(),
        })
    }
}

/// Returns the refusal of a database that does not exist, with the name that the client has used.
/// `real`: its name at the server.
fn as_asked(fault: Fault, asked: &str, real: &str) -> Fault {
    match real != asked && fault.code == "3D000" {
        true => {
            let text = format!("database \"{asked}\" does not exist");
            let detail =
                format!("It stands for the database \"{real}\", which the server does not have.");
            Fault::new(fault.class, "3D000", text).with_detail(Some(detail))
        }
        false => fault,
    }
}

/// Leads a connection to the requested state, in at most one round trip.
async fn lead(parked: &mut Parked, who: &Who) -> Result<(), Fault> {
    let way = parked
        .state
        .bridge(&who.settings.set, &who.application_name)
        .unwrap_or_default();
    if way.is_empty() {
        return Ok(());
    }
    let replies = probe::ask(&mut parked.wire, &way).await;
    let replies = replies.map_err(|broken| broken.unavailable())?;
    if let Some(error) = replies.into_iter().find_map(|reply| reply.error) {
        return Err(refused(error));
    }
    parked.state = ConnectionState {
        set: who.settings.set.clone(),
        application_name: Name::clone(&who.application_name),
        first_name: Name::clone(&parked.state.first_name),
        is_touched: false,
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

/// Counts a waiting session until it is dropped.
struct WaitingForConnection<'a> {
    metrics: &'a PgMetrics,
    since: Instant,
}

impl<'a> WaitingForConnection<'a> {
    fn new(metrics: &'a PgMetrics) -> Self {
        metrics.waiting.inc();
        Self {
            metrics,
            since: Instant::now(),
        }
    }
}

impl Drop for WaitingForConnection<'_> {
    fn drop(&mut self) {
        self.metrics.waiting.dec();
        let waited = self.since.elapsed().as_secs_f64();
        self.metrics.wait_seconds.observe(waited);
    }
}
