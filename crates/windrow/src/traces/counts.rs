//! Counters of spans.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::registry::Registry;
use windrow_core::Tracer;

/// The numbers of spans sent and lost. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    delivered: AtomicU64,
    lost: AtomicU64,
}

impl Counts {
    /// Registers `windrow_trace_spans_total`.
    pub(super) fn register(&self, registry: &mut Registry, tracer: Option<Tracer>) {
        let counts = self.clone();
        registry.register_collector(Box::new(Figures { counts, tracer }));
    }

    /// Counts spans that the collector has accepted.
    pub(super) fn delivered(&self, spans: u64) {
        self.0.delivered.fetch_add(spans, Ordering::Relaxed);
    }

    /// Counts spans that the collector has not accepted.
    pub(super) fn lost(&self, spans: u64) {
        self.0.lost.fetch_add(spans, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct Figures {
    counts: Counts,
    tracer: Option<Tracer>,
}

impl Collector for Figures {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let help = "Spans of traces, by what became of them";
        let mut family =
            encoder.encode_descriptor("windrow_trace_spans", help, None, MetricType::Counter)?;
        let Shared { delivered, lost } = &*self.counts.0;
        let dropped = self.tracer.as_ref().map_or(0, Tracer::dropped);
        for (outcome, spans) in [
            ("delivered", delivered.load(Ordering::Relaxed)),
            ("dropped", dropped),
            ("lost", lost.load(Ordering::Relaxed)),
        ] {
            let counter = ConstCounter::new(spans);
            counter.encode(family.encode_family(&[("outcome", outcome)])?)?;
        }
        Ok(())
    }
}
