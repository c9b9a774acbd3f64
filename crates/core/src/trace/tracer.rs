//! The source of span identities, and the channel of ended spans.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc;

use super::{TraceContext, TraceSpan};

/// Creates span identities and accepts ended spans. Cheap to clone.
#[derive(Clone)]
pub struct Tracer(Arc<SharedTracer>);

struct SharedTracer {
    spans: mpsc::Sender<TraceSpan>,
    /// The fraction of requests that are sampled if their callers do not decide.
    ratio: f64,
    names: RandomState,
    next: AtomicU64,
    dropped: AtomicU64,
}

impl Tracer {
    /// Returns a tracer and the receiver of its spans. `ratio` is the fraction of requests to
    /// sample if their callers do not decide (1.0: all). At most `capacity` spans wait; further
    /// ones are dropped and counted, so nothing waits for a span.
    pub fn channel(ratio: f64, capacity: usize) -> (Self, mpsc::Receiver<TraceSpan>) {
        let (spans, ended) = mpsc::channel(capacity);
        let shared = SharedTracer {
            spans,
            ratio,
            names: RandomState::new(),
            next: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        };
        (Self(Arc::new(shared)), ended)
    }

    /// Returns the number of spans that were dropped because too many waited.
    pub fn dropped(&self) -> u64 {
        self.0.dropped.load(Ordering::Relaxed)
    }

    /// Returns a new span of the caller's trace, or of a new trace; `None` if it is not sampled.
    /// The caller's flag decides.
    pub(super) fn sample(&self, caller: Option<TraceContext>) -> Option<TraceContext> {
        match caller {
            Some(caller) => caller.sampled.then(|| TraceContext {
                span: self.span(),
                ..caller
            }),
            None if self.0.ratio <= 0.0 => None,
            None => {
                let own = self.root();
                (part(own.trace) < self.0.ratio).then_some(own)
            }
        }
    }

    /// Returns a span of a new trace.
    pub(super) fn root(&self) -> TraceContext {
        let (high, low) = (self.span(), self.span());
        let mut trace = [0; 16];
        let halves = trace.iter_mut().zip(high.into_iter().chain(low));
        halves.for_each(|(to, from)| *to = from);
        TraceContext {
            trace,
            span: self.span(),
            sampled: true,
        }
    }

    /// Accepts a span that has ended.
    pub(super) fn take(&self, span: TraceSpan) {
        if self.0.spans.try_send(span).is_err() {
            self.0.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns a number that looks random without this process's key.
    fn span(&self) -> [u8; 8] {
        let next = self.0.next.fetch_add(1, Ordering::Relaxed);
        // Zero means no span.
        self.0.names.hash_one(next).max(1).to_be_bytes()
    }
}

/// Maps a trace's number to a value between 0 and 1.
fn part(trace: [u8; 16]) -> f64 {
    let low = u128::from_be_bytes(trace) & ((1 << 53) - 1);
    low as f64 / (1_u64 << 53) as f64
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracer")
            .field("ratio", &self.0.ratio)
            .field("dropped", &self.dropped())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled(ratio: f64, caller: Option<TraceContext>) -> usize {
        let (tracer, _spans) = Tracer::channel(ratio, 1);
        (0..1000)
            .filter(|_| tracer.sample(caller).is_some())
            .count()
    }

    #[test]
    fn the_ratio_counts_where_the_caller_says_nothing() {
        assert_eq!((sampled(0.0, None), sampled(1.0, None)), (0, 1000));
        let some = sampled(0.3, None);
        assert!((200..400).contains(&some), "{some}");
    }

    #[test]
    fn the_caller_decides() {
        let caller = TraceContext {
            trace: [1; 16],
            span: [2; 8],
            sampled: true,
        };
        let silent = TraceContext {
            sampled: false,
            ..caller
        };
        assert_eq!(
            (sampled(0.0, Some(caller)), sampled(1.0, Some(silent))),
            (1000, 0)
        );
        let (tracer, _spans) = Tracer::channel(0.0, 1);
        let (one, other) = (tracer.sample(Some(caller)), tracer.sample(Some(caller)));
        let (one, other) = (one.unwrap(), other.unwrap());
        assert_eq!((one.trace, other.trace), ([1; 16], [1; 16]));
        assert!(one.span != other.span && one.span != caller.span);
    }

    #[test]
    fn what_is_too_much_is_dropped_and_counted() {
        let (tracer, mut spans) = Tracer::channel(1.0, 2);
        let span = TraceSpan {
            context: tracer.root(),
            parent: None,
            side: super::super::Side::Server,
            name: "x".into(),
            began: std::time::UNIX_EPOCH,
            ended: std::time::UNIX_EPOCH,
            links: Vec::new(),
            links_left_out: 0,
            attributes: Vec::new(),
            failed: false,
        };
        for _ in 0..5 {
            tracer.take(span.clone());
        }
        assert_eq!(tracer.dropped(), 3);
        assert_eq!(spans.try_recv(), Ok(span));
    }
}
