//! Traces: the way of a request to the database, reported to collectors of traces (OpenTelemetry).
//!
//! A frontend begins a [`TracedRequest`] if it has a [`Tracer`] and the request is sampled, and
//! hands its [`Trace`] over with the units. Each part that works on the units notes there what it
//! did. Without tracing there is no tracer, and no `Trace` anywhere: that costs a look at an
//! `Option`.
//!
//! A batch serves many requests, so it is nobody's child: its span links to those of its requests,
//! and theirs to it.
//!
//! Spans name tables, counts, times and codes. Never values, and nothing that a client or a
//! database has worded.

mod batch;
mod context;
mod request;
mod span;
mod tracer;

pub use batch::TracedBatch;
pub use context::TraceContext;
pub use request::{Trace, TracedRequest};
pub use span::{Side, TraceSpan, TraceValue};
pub use tracer::Tracer;
