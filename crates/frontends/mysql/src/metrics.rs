//! The frontend's metrics.
//!
//! | metric | meaning |
//! | --- | --- |
//! | `windrow_mysql_clients` | clients that are logged in |
//! | `windrow_mysql_logins_total` | connections that were admitted (`outcome="ok"`) or refused |
//! | `windrow_mysql_refusals_total` | errors of Windrow's own for statements, by `class` |
//! | `windrow_mysql_statements_total` | statements of clients, `relayed`, `joined` or written as a `row` (`way`) |
//! | `windrow_mysql_bypass_total` | single-row writes that were relayed, by `reason` |
//! | `windrow_mysql_kills_total` | `KILL` statements for sessions of this frontend |
//! | `windrow_mysql_server_connections` | server connections of sessions |

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use windrow_core::FaultClass;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
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
struct ReasonLabel {
    reason: &'static str,
}

/// The frontend's metrics. Cheap to clone.
#[derive(Clone, Debug)]
pub struct MysqlMetrics {
    pub(crate) clients: Gauge,
    pub(crate) admitted: Counter,
    pub(crate) refused: Counter,
    refusals: Family<ClassLabel, Counter>,
    pub(crate) relayed: Counter,
    pub(crate) joined: Counter,
    pub(crate) rows: Counter,
    bypass: Family<ReasonLabel, Counter>,
    pub(crate) kills: Counter,
    pub(crate) server_connections: Gauge,
}

impl MysqlMetrics {
    /// Registers all metrics. The registry must have no prefix: the names contain `windrow_`
    /// already.
    pub fn register(registry: &mut Registry) -> Self {
        let logins = Family::<OutcomeLabel, Counter>::default();
        let statements = Family::<WayLabel, Counter>::default();
        let way = |way| statements.get_or_create(&WayLabel { way }).clone();
        let outcome = |outcome| logins.get_or_create(&OutcomeLabel { outcome }).clone();
        let metrics = Self {
            clients: Gauge::default(),
            admitted: outcome("ok"),
            refused: outcome("refused"),
            refusals: Family::default(),
            relayed: way("relayed"),
            joined: way("joined"),
            rows: way("row"),
            bypass: Family::default(),
            kills: Counter::default(),
            server_connections: Gauge::default(),
        };
        // There from the start, so that a rate can be taken of the first one.
        let class = FaultClass::Unavailable.as_str();
        drop(metrics.refusals.get_or_create(&ClassLabel { class }));
        let clients = metrics.clients.clone();
        registry.register(
            "windrow_mysql_clients",
            "Clients that are logged in",
            clients,
        );
        registry.register(
            "windrow_mysql_logins",
            "Connections that were admitted or refused",
            logins,
        );
        registry.register(
            "windrow_mysql_refusals",
            "Errors of Windrow's own that clients got",
            metrics.refusals.clone(),
        );
        registry.register(
            "windrow_mysql_statements",
            "Statements of clients",
            statements,
        );
        registry.register(
            "windrow_mysql_bypass",
            "Single-row writes that were relayed",
            metrics.bypass.clone(),
        );
        let kills = metrics.kills.clone();
        registry.register("windrow_mysql_kills", "KILL statements for sessions", kills);
        registry.register(
            "windrow_mysql_server_connections",
            "Server connections of sessions",
            metrics.server_connections.clone(),
        );
        metrics
    }

    /// Counts an error of Windrow's own, which no server has answered.
    pub(crate) fn refusal(&self, class: FaultClass) {
        let class = class.as_str();
        self.refusals.get_or_create(&ClassLabel { class }).inc();
    }

    /// Counts a write that is relayed for a reason.
    pub(crate) fn count_bypass(&self, reason: &'static str) {
        self.bypass.get_or_create(&ReasonLabel { reason }).inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_documented_metric_is_there() {
        let mut registry = Registry::default();
        let metrics = MysqlMetrics::register(&mut registry);
        metrics.count_bypass("in a transaction");
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        let source = include_str!("metrics.rs");
        let undocumented = windrow_testkit::metrics::undocumented(source, &text);
        assert_eq!(undocumented, None);
    }
}
