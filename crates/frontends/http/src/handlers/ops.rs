//! Answers for operators.

use bytes::Bytes;
use http::StatusCode;

use crate::answers::{self, Answer, Refusal};
use crate::endpoint::Endpoint;
use crate::request::RequestContext;

/// The text of `/`.
pub const INDEX: &str = "Windrow: single-row writes in, multi-row statements out.\n\n\
    POST /v1/tables/{table}/rows   write rows: JSON, NDJSON or CSV\n\
    GET  /v1/tables/{table}/rows   list rows\n\
    GET  /openapi.json             the whole API\n\
    GET  /v1/lanes                 what is going on\n\
    GET  /metrics                  figures for Prometheus\n\
    GET  /healthz, /readyz         whether this process, and its database, are well\n";

/// Returns the answers that are available at once.
pub(crate) fn fixed(request: &RequestContext<'_>, endpoint: Endpoint) -> Answer {
    let services = &request.app.services;
    match endpoint {
        Endpoint::Health => answers::of_json(StatusCode::OK, &b"{\"healthy\":true}"[..]),
        Endpoint::Lanes => answers::of_json(StatusCode::OK, (services.lanes)().to_string()),
        Endpoint::Metrics => answers::typed(
            StatusCode::OK,
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            (services.metrics_text)(),
        ),
        _ => answers::typed(StatusCode::OK, "text/plain; charset=utf-8", INDEX),
    }
}

/// Returns the description of the API.
pub(crate) fn description(text: &Bytes) -> Answer {
    answers::of_json(StatusCode::OK, text.clone())
}

/// Checks that the database answers.
pub(crate) async fn ready(request: &RequestContext<'_>) -> Result<Answer, Refusal> {
    match request.app.services.ready.ready().await {
        Ok(()) => Ok(answers::of_json(StatusCode::OK, &b"{\"ready\":true}"[..])),
        // Whatever the reason is, no requests should be sent here.
        Err(fault) => Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, fault)),
    }
}
