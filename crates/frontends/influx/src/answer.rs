//! Answers and errors in the form that clients of both versions of InfluxDB read: version 1 reads
//! `error`, version 2 reads `code` and `message`.

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::{Response, StatusCode};
use windrow_core::FaultClass;
use windrow_http::extension::{Refusal, WholeAnswer, json, whole_json};

/// The version of InfluxDB whose paths these are: the last one with both `/write` and
/// `/api/v2/write` before version 2.
pub(crate) const VERSION: &str = "1.8.10";

const VERSION_HEADER: HeaderName = HeaderName::from_static("x-influxdb-version");
const BUILD_HEADER: HeaderName = HeaderName::from_static("x-influxdb-build");

/// Returns the answer to a write of which no line failed, and to `/ping`.
pub(crate) fn no_content() -> WholeAnswer {
    let mut answer = Response::new(Bytes::new());
    *answer.status_mut() = StatusCode::NO_CONTENT;
    let headers = answer.headers_mut();
    headers.insert(VERSION_HEADER, HeaderValue::from_static(VERSION));
    headers.insert(BUILD_HEADER, HeaderValue::from_static("Windrow"));
    answer
}

/// Returns the answer `{"code":..,"message":..,"error":..}`.
pub(crate) fn error(status: StatusCode, message: &str) -> WholeAnswer {
    let mut body = b"{\"code\":".to_vec();
    json::string(&mut body, code(status));
    for name in ["message", "error"] {
        json::field(&mut body, name);
        json::string(&mut body, message);
    }
    body.push(b'}');
    whole_json(status, body)
}

/// Returns the answer to a request that is refused as a whole. Telegraf drops the lines of an
/// answer of 400 to 499, so a full memory budget is 503.
pub(crate) fn refuse(refusal: &Refusal) -> WholeAnswer {
    let fault = refusal.fault();
    let status = match fault.class {
        FaultClass::Overloaded => StatusCode::SERVICE_UNAVAILABLE,
        _ => refusal.status(),
    };
    let mut answer = match fault.detail() {
        Some(detail) => error(status, &format!("{} ({detail})", fault.message)),
        None => error(status, &fault.message),
    };
    refusal.add_headers(&mut answer);
    answer
}

fn code(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED => "unauthorized",
        StatusCode::FORBIDDEN => "forbidden",
        StatusCode::NOT_FOUND => "not found",
        StatusCode::METHOD_NOT_ALLOWED => "method not allowed",
        StatusCode::PAYLOAD_TOO_LARGE => "request too large",
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => "unavailable",
        status if status.is_server_error() => "internal error",
        _ => "invalid",
    }
}
