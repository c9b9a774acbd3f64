//! Spans, sent to a collector by OTLP over HTTP.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `messages` | the messages of OTLP, as far as they are used |
//! | `encode` | spans as such messages |
//! | `collector` | one request to the collector, and what became of it |
//! | `delivery` | the task that sends what has ended |
//! | `counts` | what is counted |
//!
//! The libraries of OpenTelemetry were left out: between two attempts their exporter sleeps on its
//! thread, if it is given another client than one of theirs; it does not say why no connection
//! was made; and what was dropped is known to their own log alone.

mod collector;
mod counts;
mod delivery;
mod encode;
mod messages;

use prometheus_client::registry::Registry;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windrow_core::Tracer;

use self::collector::Collector;
use self::counts::Counts;
use self::delivery::Delivery;
use crate::settings::TraceSettings;

/// The most spans that wait to be sent: some megabytes.
const WAITING: usize = 4096;

/// The task that sends spans.
pub(crate) struct RunningTraces {
    tracer: Tracer,
    end: CancellationToken,
    task: JoinHandle<()>,
}

impl RunningTraces {
    /// Starts the task, if requests are to be traced. The counters exist in any case.
    ///
    /// # Errors
    /// The URL or a header is invalid.
    pub(crate) fn asked_for(
        settings: Option<&TraceSettings>,
        registry: &mut Registry,
    ) -> anyhow::Result<Option<Self>> {
        let counts = Counts::default();
        let Some(settings) = settings else {
            counts.register(registry, None);
            return Ok(None);
        };
        let (tracer, spans) = Tracer::channel(settings.ratio, WAITING);
        counts.register(registry, Some(tracer.clone()));
        let collector = Collector::new(settings)?;
        let end = CancellationToken::new();
        let delivery = Delivery::new(spans, collector, encode::resource(settings), counts);
        let task = tokio::spawn(delivery.run(end.clone()));
        Ok(Some(Self { tracer, end, task }))
    }

    /// Returns the tracer, which takes spans.
    pub(crate) fn tracer(&self) -> Tracer {
        self.tracer.clone()
    }

    /// Sends the remaining spans, within a few seconds, and ends.
    pub(crate) async fn stop(self) {
        self.end.cancel();
        // An error says that the task has panicked: then nothing is left to send.
        self.task.await.ok();
    }
}
