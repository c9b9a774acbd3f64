//! The frontend's metrics.
//!
//! | metric | meaning |
//! | --- | --- |
//! | `windrow_mqtt_connected` | 1 while the broker is connected |
//! | `windrow_mqtt_unacknowledged` | messages whose rows are under way |
//! | `windrow_mqtt_messages_total` | messages by `outcome`: `written`, `dead_letter` (at least one of its rows), `again` (given back to the broker) |
//! | `windrow_mqtt_rows_total` | rows by `outcome`: `written`, `dead_letter` |

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: &'static str,
}

/// The frontend's metrics. Cheap to clone.
#[derive(Clone, Debug)]
pub struct MqttMetrics {
    pub(crate) connected: Gauge,
    pub(crate) unacknowledged: Gauge,
    pub(crate) messages_written: Counter,
    pub(crate) messages_refused: Counter,
    pub(crate) messages_again: Counter,
    pub(crate) rows_written: Counter,
    pub(crate) rows_refused: Counter,
}

impl MqttMetrics {
    /// Registers all metrics. The registry is to have no prefix: the names carry `windrow_`.
    pub fn register(registry: &mut Registry) -> Self {
        let messages = Family::<OutcomeLabel, Counter>::default();
        let rows = Family::<OutcomeLabel, Counter>::default();
        let of = |family: &Family<OutcomeLabel, Counter>, outcome| {
            family.get_or_create(&OutcomeLabel { outcome }).clone()
        };
        let metrics = Self {
            connected: Gauge::default(),
            unacknowledged: Gauge::default(),
            messages_written: of(&messages, "written"),
            messages_refused: of(&messages, "dead_letter"),
            messages_again: of(&messages, "again"),
            rows_written: of(&rows, "written"),
            rows_refused: of(&rows, "dead_letter"),
        };
        registry.register(
            "windrow_mqtt_connected",
            "1 while the MQTT broker is connected",
            metrics.connected.clone(),
        );
        registry.register(
            "windrow_mqtt_unacknowledged",
            "MQTT messages whose rows are under way",
            metrics.unacknowledged.clone(),
        );
        registry.register("windrow_mqtt_messages", "MQTT messages", messages);
        registry.register("windrow_mqtt_rows", "Rows of MQTT messages", rows);
        metrics
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_documented_metric_is_there() {
        let mut registry = Registry::default();
        MqttMetrics::register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        let source = include_str!("metrics.rs");
        let undocumented = windrow_testkit::metrics::undocumented(source, &text);
        assert_eq!(undocumented, None);
    }
}
