//! One request: who may ask, where it goes, how it is counted.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONNECTION, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Method, Request, StatusCode};
use hyper::body::Incoming;
use tokio::time::Instant;
use windrow_core::{Budget, SourceId};

use crate::answer::{Answer, Refusal};
use crate::auth;
use crate::body::Feed;
use crate::body::whole::Limit;
use crate::config::HttpConfig;
use crate::document::{self, Layouts};
use crate::handle::{self, Turn};
use crate::origin;
use crate::plan::Plans;
use crate::query;
use crate::route::{self, Endpoint, Lost, Route};
use crate::server::link::Link;
use crate::services::Services;
use crate::system::SystemTables;

/// Promises that this version does not make must not be asked for in vain.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// What all requests share.
pub(crate) struct App {
    pub(crate) config: HttpConfig,
    pub(crate) services: Services,
    pub(crate) plans: Plans,
    pub(crate) layouts: Layouts,
}

/// One request with its surroundings.
pub(crate) struct Ask<'a> {
    pub(crate) app: &'a App,
    pub(crate) head: &'a Parts,
    pub(crate) source: SourceId,
    /// Where it says that it has handed its writes over.
    pub(crate) turn: &'a Turn,
}

impl App {
    pub(crate) fn new(config: HttpConfig, services: Services) -> Self {
        Self {
            plans: Plans::new(SystemTables::new(
                &config.system_tables,
                Arc::clone(&services.owns),
            )),
            services,
            layouts: Layouts::default(),
            config,
        }
    }

    pub(crate) fn budget(&self) -> &Budget {
        self.services.intake.budget()
    }

    /// The limit of a body that is read as a whole.
    pub(crate) fn body_limit(&self) -> Limit {
        Limit {
            bytes: self.config.max_body,
            name: "http.max_body",
            what: "the body",
        }
    }

    /// The limit of a single row.
    pub(crate) fn row_limit(&self) -> Limit {
        Limit {
            bytes: self.config.max_row,
            name: "http.max_row",
            what: "the row",
        }
    }

    /// Answers a request. Dropping the future, which happens when the client goes away, takes out
    /// what is queued of it.
    pub(crate) async fn serve(
        &self,
        request: Request<Incoming>,
        source: SourceId,
        link: &Link,
    ) -> Answer {
        let begun = Instant::now();
        let (head, body) = request.into_parts();
        let mut feed = Feed::new(body, &head.headers, link);
        let turn = Turn::default();
        let ask = Ask {
            app: self,
            head: &head,
            source,
            turn: &turn,
        };
        let found = route::find(&head.method, head.uri.path());
        let endpoint = found.as_ref().map_or(Endpoint::None, |r| r.endpoint);
        let admitted = self.authorize(&head, endpoint);
        let result = match admitted.and_then(|()| check(&head, found)) {
            Ok(route) => handle::run(&ask, route, &mut feed).await,
            Err(refusal) => Err(refusal),
        };
        let mut answer = result.unwrap_or_else(|refusal| refuse(&head, refusal));
        if !feed.has_ended() && !Box::pin(feed.drain()).await {
            link.leave_unread();
            answer
                .headers_mut()
                .insert(CONNECTION, HeaderValue::from_static("close"));
        }
        let metrics = &self.services.metrics;
        metrics.answered(endpoint, answer.status(), begun.elapsed());
        answer
    }

    /// Answers one part of an envelope, whose own head has shown the token.
    pub(crate) async fn serve_part(&self, part: Part<'_>) -> Answer {
        let begun = Instant::now();
        let head = &part.head;
        let mut feed = Feed::held(part.body, part.link);
        let ask = Ask {
            app: self,
            head,
            source: part.source,
            turn: part.turn,
        };
        let found = route::find(&head.method, head.uri.path());
        let endpoint = found.as_ref().map_or(Endpoint::None, |r| r.endpoint);
        let result = match check(head, found) {
            Ok(route) => handle::alone(&ask, route, &mut feed).await,
            Err(refusal) => Err(refusal),
        };
        let answer = result.unwrap_or_else(|refusal| refuse(head, refusal));
        let metrics = &self.services.metrics;
        metrics.answered(endpoint, answer.status(), begun.elapsed());
        answer
    }

    fn authorize(&self, head: &Parts, endpoint: Endpoint) -> Result<(), Refusal> {
        let host = origin::host(head)?;
        if endpoint == Endpoint::Health {
            return Ok(());
        }
        if self.config.token.is_none() {
            origin::check(head, host.as_ref(), &self.config.hosts)?;
        }
        if auth::allows(self.config.token.as_ref(), &head.headers) {
            return origin::check_kind(head);
        }
        Err(Refusal::protocol(
            StatusCode::UNAUTHORIZED,
            "this server wants a token: send the header Authorization: Bearer TOKEN",
        ))
    }
}

/// A request that came in an envelope.
pub(crate) struct Part<'a> {
    pub(crate) head: Parts,
    pub(crate) body: Bytes,
    pub(crate) source: SourceId,
    pub(crate) turn: &'a Turn,
    pub(crate) link: &'a Link,
}

/// What is looked at before a request has its endpoint read it.
fn check<'r>(head: &Parts, found: Result<Route<'r>, Lost>) -> Result<Route<'r>, Refusal> {
    let route = found.map_err(lost)?;
    let is_read = head.method == Method::GET || head.method == Method::HEAD;
    if !is_read && head.headers.contains_key(IDEMPOTENCY_KEY) {
        return Err(Refusal::later("the Idempotency-Key header"));
    }
    if !route.endpoint.takes_parameters() {
        query::none(head.uri.query().unwrap_or_default())?;
    }
    Ok(route)
}

/// The answer to a request that was refused, in the form that its path's clients know.
pub(crate) fn refuse(head: &Parts, refusal: Refusal) -> Answer {
    if route::is_arango(head.uri.path()) {
        document::refuse(&refusal)
    } else {
        refusal.into_answer()
    }
}

fn lost(lost: Lost) -> Refusal {
    match lost {
        Lost::Path => Refusal::protocol(
            StatusCode::NOT_FOUND,
            format!("there is no such path; the routes are {}", route::list()),
        ),
        Lost::Method(allowed) => Refusal::protocol(
            StatusCode::METHOD_NOT_ALLOWED,
            format!("this path takes {allowed}"),
        )
        .allow(allowed),
    }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
