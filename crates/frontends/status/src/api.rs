//! The extension that the HTTP server serves at `/` and below `/v1/status`.

use std::sync::Arc;

use async_trait::async_trait;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Method, Response, StatusCode};
use windrow_core::Fault;
use windrow_http::extension::{
    Extension, ExtraEndpoint, ExtraKind, Feed, Live, NoRoute, Refusal, RequestContext, Route,
    WholeAnswer, no_parameters, only_json, whole_json,
};

use crate::page::Page;
use crate::snapshot::Sources;
use crate::watcher::Watcher;

/// The paths: the page, its data as JSON, the same data as server-sent events, and the progress
/// reports of loads and moves.
pub const ENDPOINTS: [ExtraEndpoint; 4] = [
    ExtraEndpoint::new("GET", "/", ExtraKind::Open),
    ExtraEndpoint::new("GET", "/v1/status", ExtraKind::Gateway),
    ExtraEndpoint::new("GET", "/v1/status/events", ExtraKind::Live),
    ExtraEndpoint::new("POST", "/v1/status/tasks", ExtraKind::Gateway),
];

const PAGE: usize = 0;
const STATUS: usize = 1;
const EVENTS: usize = 2;
const TASKS: usize = 3;

/// The status page.
#[derive(Debug)]
pub struct StatusPage {
    page: Page,
    watcher: Arc<Watcher>,
}

impl StatusPage {
    /// Returns a page over these sources. The sources are read only while a client watches the
    /// page.
    pub fn new(sources: Sources) -> Self {
        Self {
            page: Page::new(),
            watcher: Watcher::new(sources),
        }
    }

    async fn hear(&self, request: &RequestContext<'_>, feed: &mut Feed<'_>) -> Result<(), Refusal> {
        only_json(&request.head.headers)?;
        let (limit, budget) = (request.app.row_limit(), request.app.budget());
        let body = feed.all(limit, budget).await?;
        Ok(self.watcher.tasks.hear(&body.bytes)?)
    }
}

#[async_trait]
impl Extension for StatusPage {
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
        let mut all = ENDPOINTS.iter();
        let endpoint = all.position(|endpoint| endpoint.template == path);
        let endpoint = endpoint.ok_or(NoRoute::Path)?;
        let (is_allowed, allowed) = match endpoint {
            TASKS => (*method == Method::POST, "POST"),
            _ => (
                *method == Method::GET || *method == Method::HEAD,
                "GET, HEAD",
            ),
        };
        if !is_allowed {
            return Err(NoRoute::Method(allowed));
        }
        Ok(Route {
            endpoint,
            table: "",
            key: "",
        })
    }

    async fn run(
        &self,
        request: &RequestContext<'_>,
        route: Route<'_, usize>,
        feed: &mut Feed<'_>,
    ) -> WholeAnswer {
        if let Err(refusal) = no_parameters(request.query()) {
            return self.refuse(&refusal);
        }
        match route.endpoint {
            PAGE => self.page.answer(&request.head.headers),
            STATUS => fresh(whole_json(StatusCode::OK, self.watcher.look())),
            TASKS => match self.hear(request, feed).await {
                Ok(()) => whole_json(StatusCode::OK, "{}"),
                Err(refusal) => self.refuse(&refusal),
            },
            _ => self.refuse(&Fault::internal("there is no such endpoint").into()),
        }
    }

    fn follow(
        &self,
        request: &RequestContext<'_>,
        route: Route<'_, usize>,
    ) -> Result<Response<Live>, Refusal> {
        debug_assert_eq!(route.endpoint, EVENTS);
        no_parameters(request.query())?;
        let mut answer = fresh(Response::new(Live::new(self.watcher.events())));
        let kind = HeaderValue::from_static("text/event-stream");
        answer.headers_mut().insert(CONTENT_TYPE, kind);
        Ok(answer)
    }

    fn refuse(&self, refusal: &Refusal) -> WholeAnswer {
        refusal.clone().into_whole()
    }
}

/// Forbids caches to store an answer.
fn fresh<B>(mut answer: Response<B>) -> Response<B> {
    let value = HeaderValue::from_static("no-store");
    answer.headers_mut().insert(CACHE_CONTROL, value);
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The description that is served and the routes know the same paths.
    #[test]
    fn openapi_and_routes_agree() {
        let doc: serde_json::Value = serde_json::from_str(include_str!("openapi.json")).unwrap();
        let described = doc["paths"].as_object().unwrap().keys();
        // The HTTP frontend describes the page itself.
        let described: Vec<&str> = described.map(String::as_str).collect();
        assert_eq!(
            described,
            ["/v1/status", "/v1/status/events", "/v1/status/tasks"]
        );
        assert_eq!(ENDPOINTS.map(|e| e.template)[1..], described);
        assert_eq!(ENDPOINTS[STATUS].kind, ExtraKind::Gateway);
        assert_eq!(ENDPOINTS[EVENTS].kind, ExtraKind::Live);
    }
}
