//! The spans of a batch, for requests that are traced.

use std::time::Duration;

use tokio::time::Instant;
use windrow_core::trace::TracedBatch;
use windrow_core::{Report, Trace, Verdict, Work};

use super::state::Worker;
use crate::batch::Manifest;

impl<W: Work> Worker<W> {
    /// Tells of a batch that has landed, where requests in it are traced. Before anybody is
    /// answered: a request ends with its answer.
    pub(super) fn trace(&self, manifest: &Manifest, report: &Report<W::Done>, now: Instant) {
        let departed = manifest.departed.unwrap_or(now);
        let spans = manifest.spans.iter();
        let requests: Vec<(Trace, Duration)> = spans
            .filter_map(|span| {
                let trace = self.tickets.trace(span.ticket)?;
                let queued = departed.saturating_duration_since(span.arrived);
                Some((trace.clone(), queued))
            })
            .collect();
        let is = |verdict: &Verdict<W::Done>| match verdict {
            Verdict::Final(Ok(_)) => [0, 0],
            Verdict::Final(Err(_)) => [1, 0],
            Verdict::RolledBack(_) | Verdict::WaitsForLock(_) | Verdict::NotTried => [0, 1],
        };
        let verdicts = report.verdicts.iter().map(is);
        let [failed, again] = verdicts.fold([0, 0], |[a, b], [c, d]| [a + c, b + d]);
        let batch = TracedBatch {
            lane: &self.name,
            database: self.sink.profile().name,
            took: now.saturating_duration_since(departed),
            rows: manifest.rows,
            units: report.verdicts.len(),
            failed,
            again,
            tally: &report.tally,
        };
        batch.landed(&requests);
    }
}
