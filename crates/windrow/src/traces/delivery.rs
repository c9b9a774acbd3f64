//! The task that sends spans. Nothing waits for it: spans that it cannot send are lost and counted.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::warn;
use windrow_core::trace::TraceSpan;

use super::collector::Collector;
use super::counts::Counts;
use super::encode;
use super::messages::Resource;

/// The most spans of a request.
const MOST: usize = 512;

/// The time for which spans are collected for a request.
const GATHER: Duration = Duration::from_secs(1);

/// The attempts of a request, and the delay after the first one; each later delay is twice as long.
/// A collector may ask for a longer delay, but not for a shorter one.
const ATTEMPTS: u32 = 5;
const REST: Duration = Duration::from_secs(1);

/// The time that the end waits for the collector.
const LAST: Duration = Duration::from_secs(3);

/// The least time between two warnings that the collector does not accept spans.
const QUIET: Duration = Duration::from_secs(60);

/// The state of the task.
pub(super) struct Delivery {
    spans: mpsc::Receiver<TraceSpan>,
    /// Spans of the next request, or of the one under way.
    batch: Vec<TraceSpan>,
    collector: Collector,
    resource: Resource,
    counts: Counts,
    /// The collector has asked to receive nothing before this time.
    not_before: Instant,
    complained: Option<Instant>,
}

impl Delivery {
    pub(super) fn new(
        spans: mpsc::Receiver<TraceSpan>,
        collector: Collector,
        resource: Resource,
        counts: Counts,
    ) -> Self {
        Self {
            spans,
            batch: Vec::new(),
            collector,
            resource,
            counts,
            not_before: Instant::now(),
            complained: None,
        }
    }

    /// Sends spans until the end is asked for. Then sends those that are left, if there is time.
    pub(super) async fn run(mut self, end: CancellationToken) {
        while !end.is_cancelled() {
            tokio::select! {
                () = self.gather() => self.deliver(&end).await,
                () = end.cancelled() => {}
            }
        }
        self.spans.close();
        let in_time = timeout(LAST, self.rest()).await.is_ok();
        let mut left = self.batch.len();
        while self.spans.try_recv().is_ok() {
            left += 1;
        }
        self.counts.lost(left as u64);
        if !in_time && left > 0 {
            let peer = self.collector.peer();
            warn!(
                left,
                "{peer} has not taken the last spans within {LAST:?}; they are lost"
            );
        }
    }

    /// Waits for the first span, and a moment for others.
    async fn gather(&mut self) {
        if self.batch.is_empty() {
            // The channel never closes: the task that stops this one has a sender.
            self.spans.recv_many(&mut self.batch, MOST).await;
        }
        let until = Instant::now() + GATHER;
        while let Some(room @ 1..) = MOST.checked_sub(self.batch.len()) {
            tokio::select! {
                more = self.spans.recv_many(&mut self.batch, room) => if more == 0 { return },
                () = sleep_until(until) => return,
            }
        }
    }

    /// Sends the spans of a request, repeatedly if necessary. A delay that the collector asked for
    /// when it refused earlier spans also applies to these. At the end it waits only for the answer
    /// to a request under way, because those spans would otherwise be sent twice.
    async fn deliver(&mut self, end: &CancellationToken) {
        let mut rest = Duration::ZERO;
        for _ in 0..ATTEMPTS {
            tokio::select! {
                () = sleep_until(self.not_before.max(Instant::now() + rest)) => {}
                () = end.cancelled() => return,
            }
            let too_late = async {
                end.cancelled().await;
                sleep(LAST).await;
            };
            tokio::select! {
                done = self.attempt() => if done { return },
                () = too_late => return,
            }
            rest = REST.max(rest * 2);
        }
        self.lose();
    }

    /// Sends the remaining spans once, even to a collector that has asked for a delay, because
    /// there is no later attempt.
    async fn rest(&mut self) {
        loop {
            if !self.batch.is_empty() && !self.attempt().await {
                return;
            }
            if self.spans.recv_many(&mut self.batch, MOST).await == 0 {
                return;
            }
        }
    }

    /// Returns true if the spans need not be sent again.
    async fn attempt(&mut self) -> bool {
        let body = encode::request(&self.resource, &self.batch);
        match self.collector.send(body).await {
            Ok(rejected) => {
                let sent = self.batch.len() as u64;
                self.counts.delivered(sent.saturating_sub(rejected));
                self.counts.lost(rejected);
                if rejected > 0 {
                    let peer = self.collector.peer();
                    self.complain(&format!("{peer} has not taken {rejected} of {sent} spans"));
                }
                self.batch.clear();
                true
            }
            Err(refused) => {
                self.complain(&refused.why);
                if let Some(rest) = refused.rest.filter(|_| refused.passing) {
                    self.not_before = Instant::now() + rest;
                }
                if !refused.passing {
                    self.lose();
                }
                !refused.passing
            }
        }
    }

    fn lose(&mut self) {
        self.counts.lost(self.batch.len() as u64);
        self.batch.clear();
    }

    fn complain(&mut self, why: &str) {
        let now = Instant::now();
        if self.complained.is_none_or(|at| now >= at + QUIET) {
            self.complained = Some(now);
            warn!(
                why,
                "spans are not delivered; writes go on, and windrow_trace_spans_total counts what is lost"
            );
        }
    }
}
