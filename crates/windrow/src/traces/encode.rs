//! Converts spans to messages of OTLP.

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use prost::Message;
use windrow_core::TraceContext;
use windrow_core::trace::{Side, TraceSpan, TraceValue};

use super::messages::{
    AnyValue, ExportRequest, KeyValue, Link, Resource, ResourceSpans, Scope, ScopeSpans, Span,
    Status, Value,
};
use crate::settings::TraceSettings;

/// `SpanKind` and `StatusCode` of the protocol.
const SERVER: i32 = 2;
const CLIENT: i32 = 3;
const ERROR: i32 = 2;

/// Flags: the span is sampled, and it is known whether its parent is in another program.
const SAMPLED: u32 = 1;
const IS_KNOWN: u32 = 1 << 8;
const IS_REMOTE: u32 = 1 << 9;

/// Returns the identity of this program.
pub(super) fn resource(settings: &TraceSettings) -> Resource {
    let text = |text: &str| Value::Text(text.to_owned());
    Resource {
        attributes: vec![
            attribute("service.name", text(&settings.service_name)),
            attribute("service.version", text(env!("CARGO_PKG_VERSION"))),
            attribute("process.pid", Value::Count(std::process::id().into())),
        ],
    }
}

/// Returns a request with these spans.
pub(super) fn request(resource: &Resource, spans: &[TraceSpan]) -> Bytes {
    let request = ExportRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(resource.clone()),
            scope_spans: vec![ScopeSpans {
                scope: Some(Scope {
                    name: "windrow".to_owned(),
                    version: env!("CARGO_PKG_VERSION").to_owned(),
                }),
                spans: spans.iter().map(message).collect(),
            }],
        }],
    };
    request.encode_to_vec().into()
}

fn message(span: &TraceSpan) -> Span {
    let attributes = span.attributes.iter();
    Span {
        trace_id: span.context.trace.to_vec(),
        span_id: span.context.span.to_vec(),
        parent_span_id: span
            .parent
            .map(|parent| parent.to_vec())
            .unwrap_or_default(),
        name: span.name.clone().into_owned(),
        kind: match span.side {
            Side::Server => SERVER,
            Side::Client => CLIENT,
        },
        start_time_unix_nano: nanos(span.began),
        end_time_unix_nano: nanos(span.ended.max(span.began)),
        attributes: attributes
            .map(|(name, told)| attribute(name, value(told)))
            .collect(),
        links: span.links.iter().map(link).collect(),
        dropped_links_count: u32::try_from(span.links_left_out).unwrap_or(u32::MAX),
        status: span.failed.then_some(Status { code: ERROR }),
        flags: match span.parent {
            Some(_) => SAMPLED | IS_KNOWN | IS_REMOTE,
            None => SAMPLED | IS_KNOWN,
        },
    }
}

fn link(to: &TraceContext) -> Link {
    Link {
        trace_id: to.trace.to_vec(),
        span_id: to.span.to_vec(),
        flags: SAMPLED | IS_KNOWN,
    }
}

fn attribute(name: &str, value: Value) -> KeyValue {
    KeyValue {
        key: name.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
    }
}

fn value(told: &TraceValue) -> Value {
    match told {
        TraceValue::Text(text) => Value::Text(text.clone().into_owned()),
        TraceValue::Count(count) => Value::Count(i64::try_from(*count).unwrap_or(i64::MAX)),
        TraceValue::Seconds(seconds) => Value::Number(*seconds),
        TraceValue::Flag(flag) => Value::Flag(*flag),
    }
}

fn nanos(at: SystemTime) -> u64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
