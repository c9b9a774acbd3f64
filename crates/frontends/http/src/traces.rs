//! Traced requests.

use http::StatusCode;
use http::request::Parts;
use windrow_core::trace::TraceValue;
use windrow_core::{TraceContext, TracedRequest, Tracer};

/// The header in which a client names its own span.
const TRACEPARENT: &str = "traceparent";

/// Begins the span of a request, if it is sampled. `name` is its method and the form of its path:
/// the path itself contains keys, and is not part of the span.
pub(crate) fn begin(
    tracer: &Tracer,
    head: &Parts,
    name: Option<(&'static str, &'static str)>,
) -> Option<Box<TracedRequest>> {
    let (method, template) = name?;
    let mut traced = TracedRequest::begin(tracer, caller(head))?;
    traced.name(format!("{method} {template}"));
    traced.note("http.request.method", TraceValue::Text(method.into()));
    traced.note("http.route", TraceValue::Text(template.into()));
    Some(traced)
}

/// Ends the span with the answer.
pub(crate) fn end(mut traced: TracedRequest, status: StatusCode) {
    let code = u64::from(status.as_u16());
    traced.note("http.response.status_code", TraceValue::Count(code));
    traced.end(status.is_server_error());
}

/// Returns the client's span; `None` if there are two headers, because the right one is unknown.
fn caller(head: &Parts) -> Option<TraceContext> {
    let mut values = head.headers.get_all(TRACEPARENT).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => TraceContext::parse(value.to_str().ok()?),
        _ => None,
    }
}
