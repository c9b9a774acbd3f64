//! The extension that the HTTP server serves at InfluxDB's paths.

use std::borrow::Cow;

use async_trait::async_trait;
use http::request::Parts;
use http::{Method, StatusCode};
use windrow_http::extension::{
    Extension, ExtraEndpoint, ExtraKind, Feed, NoRoute, Refusal, RequestContext, Route,
    WholeAnswer, whole_json,
};

use crate::{answer, query, token, write};

/// InfluxDB's API for writes, of versions 1 and 2.
#[derive(Clone, Copy, Debug, Default)]
pub struct InfluxApi;

const ENDPOINTS: [ExtraEndpoint; 6] = [
    ExtraEndpoint::new("POST", "/write", ExtraKind::Untyped),
    ExtraEndpoint::new("POST", "/api/v2/write", ExtraKind::Untyped),
    ExtraEndpoint::new("GET", "/query", ExtraKind::Plain),
    ExtraEndpoint::new("POST", "/query", ExtraKind::Untyped),
    ExtraEndpoint::new("GET", "/ping", ExtraKind::Open),
    ExtraEndpoint::new("GET", "/health", ExtraKind::Open),
];

#[async_trait]
impl Extension for InfluxApi {
    fn endpoints(&self) -> &'static [ExtraEndpoint] {
        &ENDPOINTS
    }

    fn openapi(&self) -> &'static str {
        include_str!("openapi.json")
    }

    fn owns(&self, path: &str) -> bool {
        ENDPOINTS.iter().any(|endpoint| endpoint.template == path)
    }

    fn find<'a>(&self, method: &Method, path: &'a str) -> Result<Route<'a, usize>, NoRoute> {
        let method = match *method {
            Method::HEAD => "GET",
            _ => method.as_str(),
        };
        let is_it = |e: &ExtraEndpoint| e.template == path && e.method == method;
        let endpoint = ENDPOINTS.iter().position(is_it);
        let endpoint = endpoint.ok_or(match path {
            "/query" => NoRoute::Method("GET, POST"),
            "/ping" | "/health" => NoRoute::Method("GET"),
            "/write" | "/api/v2/write" => NoRoute::Method("POST"),
            _ => NoRoute::Path,
        })?;
        Ok(Route {
            endpoint,
            table: "",
            key: "",
        })
    }

    fn token<'h>(&self, head: &'h Parts) -> Option<Cow<'h, [u8]>> {
        token::of(head)
    }

    async fn run(
        &self,
        context: &RequestContext<'_>,
        _route: Route<'_, usize>,
        feed: &mut Feed<'_>,
    ) -> WholeAnswer {
        let answered = match context.head.uri.path() {
            "/query" => query::run(context, feed).await,
            "/ping" => Ok(answer::no_content()),
            "/health" => Ok(health()),
            _ => write::run(context, feed).await,
        };
        answered.unwrap_or_else(|refusal| answer::refuse(&refusal))
    }

    fn refuse(&self, refusal: &Refusal) -> WholeAnswer {
        answer::refuse(refusal)
    }
}

/// Returns the answer to `/health`, which is about this process alone, as that of `/healthz`.
fn health() -> WholeAnswer {
    let version = answer::VERSION;
    let body = format!(
        r#"{{"checks":[],"message":"ready for writes","name":"influxdb","status":"pass","version":"{version}"}}"#
    );
    whole_json(StatusCode::OK, body)
}
