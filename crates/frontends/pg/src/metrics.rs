//! Counters of the frontend.
//!
//! | metric | labels | meaning |
//! | --- | --- | --- |
//! | `windrow_pg_clients` | | connected clients |
//! | `windrow_pg_logins_total` | `outcome`: `ok`, `denied`, `full`, `unavailable`, `refused`, `left` | connections admitted or refused; `left`: closed by the client without logging in, as by port checks |
//! | `windrow_pg_cancels_total` | | cancel requests |
//! | `windrow_pg_refusals_total` | `class` | errors of Windrow's own for statements |
//! | `windrow_pg_statements_total` | `way`: `joined`, `joinable`, `relayed` | statements of sessions |
//! | `windrow_pg_bypass_total` | `reason` | statements that were not joined, by the reason that `SHOW BYPASS` shows |
//! | `windrow_pg_relayed_writes_total` | | statements that were not joined and may write rows: no replica of Windrow gets these |
//! | `windrow_pg_server_connections` | `state`: `used`, `idle` | server connections for what is not joined |
//! | `windrow_pg_server_connects_total` | `outcome`: `ok`, `failed` | server connections opened |
//! | `windrow_pg_server_waiting` | | sessions that wait for a server connection |
//! | `windrow_pg_server_wait_seconds` | | histogram of the time that sessions waited for one, where they had to |

use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use windrow_core::{Fault, FaultClass};

use crate::register::Register;

/// The outcome of a connection's login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Login {
    Ok,
    Denied,
    Full,
    Unavailable,
    Refused,
    Left,
}

impl Login {
    const ALL: [Self; 6] = [
        Self::Ok,
        Self::Denied,
        Self::Full,
        Self::Unavailable,
        Self::Refused,
        Self::Left,
    ];

    /// Returns the outcome for a fault that refused a client.
    pub(crate) fn of(fault: &Fault) -> Self {
        match (fault.class, &*fault.code) {
            (_, "53300") => Self::Full,
            (FaultClass::Denied, _) => Self::Denied,
            (FaultClass::Unavailable, _) => Self::Unavailable,
            _ => Self::Refused,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Denied => "denied",
            Self::Full => "full",
            Self::Unavailable => "unavailable",
            Self::Refused => "refused",
            Self::Left => "left",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WayLabel {
    way: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClassLabel {
    class: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reason {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabel {
    state: &'static str,
}

/// The counters of one frontend. Cheap to clone.
#[derive(Clone, Debug)]
pub struct PgMetrics {
    pub(crate) clients: Gauge,
    logins: Family<Outcome, Counter>,
    pub(crate) cancels: Counter,
    refusals: Family<ClassLabel, Counter>,
    /// The sessions, which count their own statements.
    pub(crate) register: Arc<Register>,
    bypass: Family<Reason, Counter>,
    pub(crate) relayed_writes: Counter,
    states: Family<StateLabel, Gauge>,
    pub(crate) servers_used: Gauge,
    pub(crate) servers_idle: Gauge,
    connects: Family<Outcome, Counter>,
    pub(crate) connects_ok: Counter,
    pub(crate) connects_failed: Counter,
    pub(crate) waiting: Gauge,
    pub(crate) wait_seconds: Histogram,
}

impl Default for PgMetrics {
    fn default() -> Self {
        let states = Family::<StateLabel, Gauge>::default();
        let connects = Family::<Outcome, Counter>::default();
        let state = |state| states.get_or_create(&StateLabel { state }).clone();
        let connect = |outcome| connects.get_or_create(&Outcome { outcome }).clone();
        let logins = Family::<Outcome, Counter>::default();
        for login in Login::ALL {
            // Exposed from the start, so that a rate covers the first one.
            let outcome = login.as_str();
            drop(logins.get_or_create(&Outcome { outcome }));
        }
        let refusals = Family::<ClassLabel, Counter>::default();
        let class = FaultClass::Unavailable.as_str();
        drop(refusals.get_or_create(&ClassLabel { class }));
        Self {
            clients: Gauge::default(),
            logins,
            cancels: Counter::default(),
            refusals,
            register: Arc::default(),
            bypass: Family::default(),
            relayed_writes: Counter::default(),
            servers_used: state("used"),
            servers_idle: state("idle"),
            connects_ok: connect("ok"),
            connects_failed: connect("failed"),
            waiting: Gauge::default(),
            wait_seconds: Histogram::new([
                0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
                10.0, 30.0, 60.0,
            ]),
            states,
            connects,
        }
    }
}

/// Collects the statement counts of the sessions.
#[derive(Debug)]
struct Statements(Arc<Register>);

impl Collector for Statements {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let name = "windrow_pg_statements";
        let mut family =
            encoder.encode_descriptor(name, "Statements of sessions", None, MetricType::Counter)?;
        for (way, count) in self.0.statements() {
            let way = way.as_str();
            ConstCounter::new(count).encode(family.encode_family(&WayLabel { way })?)?;
        }
        Ok(())
    }
}

impl PgMetrics {
    /// Registers all metrics of the frontend, and returns the handle that counts. The registry must
    /// have no prefix: the names contain `windrow_` already.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let m = &metrics;
        registry.register(
            "windrow_pg_clients",
            "Clients that are in",
            m.clients.clone(),
        );
        registry.register(
            "windrow_pg_logins",
            "Connections that came in or were turned away",
            m.logins.clone(),
        );
        registry.register("windrow_pg_cancels", "Cancel requests", m.cancels.clone());
        registry.register(
            "windrow_pg_refusals",
            "Errors of Windrow's own that clients got",
            m.refusals.clone(),
        );
        registry.register_collector(Box::new(Statements(Arc::clone(&m.register))));
        registry.register(
            "windrow_pg_bypass",
            "Statements that were not joined, by reason",
            m.bypass.clone(),
        );
        registry.register(
            "windrow_pg_relayed_writes",
            "Statements that were not joined and may write rows",
            m.relayed_writes.clone(),
        );
        registry.register(
            "windrow_pg_server_connections",
            "Server connections for what is not joined",
            m.states.clone(),
        );
        registry.register(
            "windrow_pg_server_connects",
            "Server connections opened",
            m.connects.clone(),
        );
        registry.register(
            "windrow_pg_server_waiting",
            "Sessions that wait for a server connection",
            m.waiting.clone(),
        );
        registry.register(
            "windrow_pg_server_wait_seconds",
            "Time that sessions waited for a server connection",
            m.wait_seconds.clone(),
        );
        metrics
    }

    pub(crate) fn login(&self, login: Login) {
        let outcome = login.as_str();
        self.logins.get_or_create(&Outcome { outcome }).inc();
    }

    /// Counts an error of Windrow's own, which no server has reported.
    pub(crate) fn refusal(&self, class: FaultClass) {
        let class = class.as_str();
        self.refusals.get_or_create(&ClassLabel { class }).inc();
    }

    /// Returns the counter of statements that were not joined for a reason.
    pub(crate) fn bypass(&self, reason: &'static str) -> Counter {
        self.bypass.get_or_create(&Reason { reason }).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_documented_metric_is_there() {
        let mut registry = Registry::default();
        let metrics = PgMetrics::register(&mut registry);
        metrics.bypass("a view").inc();
        metrics.login(Login::of(&Fault::unavailable("x")));
        metrics.refusal(FaultClass::Unavailable);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        let source = include_str!("metrics.rs");
        let undocumented = windrow_testkit::metrics::undocumented(source, &text);
        assert_eq!(undocumented, None);
        assert!(text.contains("windrow_pg_logins_total{outcome=\"unavailable\"} 1"));
    }
}
