//! Traces: a request's steps up to the database, reported to trace collectors (OpenTelemetry).
//!
//! A frontend begins a [`TracedRequest`] if it has a [`Tracer`] and the request is sampled, and
//! hands its [`Trace`] over with the units. Each part that works on the units notes there what it
//! did. Without tracing there is no tracer and no `Trace`, which costs a check of an `Option`.
//!
//! A batch serves many requests, so its span has no parent: it links to the spans of its requests,
//! and they link to it.
//!
//! Spans name tables, counts, times and codes. They never contain values, or texts of clients or
//! databases.

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
