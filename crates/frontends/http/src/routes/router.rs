//! One request: who may ask, where it goes, how it is counted.

use std::fmt;

use http::header::{CONNECTION, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Method, Request, StatusCode};
use hyper::body::Incoming;
use tokio::time::Instant;
use windrow_core::SourceId;

use crate::answers::{Answer, Refusal};
use crate::app::App;
use crate::auth;
use crate::bodies::Feed;
use crate::config::HttpConfig;
use crate::connection_state::ConnectionState;
use crate::documents::{self, Layouts};
use crate::endpoint::{Endpoint, NoRoute, Route};
use crate::envelopes::{self, Part, PartAnswerer};
use crate::handlers::{batch, insert, keyed, ops};
use crate::handover::Handover;
use crate::origin;
use crate::query;
use crate::request::RequestContext;
use crate::routes::arango::is_arango;
use crate::routes::find::{find, list};
use crate::services::Services;

/// Promises that this version does not make must not be asked for in vain.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Brings each request to what answers it.
pub(crate) struct Router {
    app: App,
    layouts: Layouts,
}

impl Router {
    pub(crate) fn new(config: HttpConfig, services: Services) -> Self {
        Self {
            app: App::new(config, services),
            layouts: Layouts::default(),
        }
    }

    /// What all requests share.
    pub(crate) fn app(&self) -> &App {
        &self.app
    }

    /// Answers a request. Dropping the future, which happens when the client goes away, takes out
    /// what is queued of it.
    pub(crate) async fn serve(
        &self,
        request: Request<Incoming>,
        source: SourceId,
        connection: &ConnectionState,
    ) -> Answer {
        let begun = Instant::now();
        let (head, body) = request.into_parts();
        let mut feed = Feed::new(body, &head.headers, connection);
        let handover = Handover::default();
        let request = RequestContext {
            app: &self.app,
            head: &head,
            source,
            handover: &handover,
        };
        let found = find(&head.method, head.uri.path());
        let endpoint = found.as_ref().map_or(Endpoint::None, |r| r.endpoint);
        let admitted = authorize(&self.app.config, &head, endpoint);
        let result = match admitted.and_then(|()| check(&head, found)) {
            Ok(route) => self.run(&request, route, &mut feed).await,
            Err(refusal) => Err(refusal),
        };
        let mut answer = result.unwrap_or_else(|refusal| refuse(&head, refusal));
        if !feed.has_ended() && !Box::pin(feed.drain()).await {
            connection.leave_unread();
            answer
                .headers_mut()
                .insert(CONNECTION, HeaderValue::from_static("close"));
        }
        let metrics = &self.app.services.metrics;
        metrics.answered(endpoint, answer.status(), begun.elapsed());
        answer
    }

    /// Runs a request. The rare ones are boxed, so that the common one stays small.
    async fn run(
        &self,
        request: &RequestContext<'_>,
        route: Route<'_>,
        feed: &mut Feed<'_>,
    ) -> Result<Answer, Refusal> {
        if envelopes::is_one(route.endpoint, &request.head.headers) {
            return Box::pin(envelopes::run(self, request, feed)).await;
        }
        self.run_single(request, route, feed).await
    }

    /// Runs a request that holds no others.
    async fn run_single(
        &self,
        request: &RequestContext<'_>,
        route: Route<'_>,
        feed: &mut Feed<'_>,
    ) -> Result<Answer, Refusal> {
        match route.endpoint {
            Endpoint::InsertRows => insert::run(request, route.table, feed).await,
            Endpoint::UpdateRow => Box::pin(keyed::update(request, route, feed)).await,
            Endpoint::DeleteRow => Box::pin(keyed::delete(request, route)).await,
            Endpoint::GetRow => Box::pin(keyed::get(request, route)).await,
            Endpoint::Batch => Box::pin(batch::run(request, feed)).await,
            Endpoint::Ready => Box::pin(ops::ready(request)).await,
            Endpoint::Envelope | Endpoint::PutEnvelope => Err(envelopes::nested()),
            endpoint if endpoint.is_document() => {
                Box::pin(documents::run(&self.layouts, request, route, feed)).await
            }
            endpoint => Ok(ops::fixed(request, endpoint)),
        }
    }
}

impl PartAnswerer for Router {
    async fn answer(&self, part: Part<'_>) -> Answer {
        let begun = Instant::now();
        let head = &part.head;
        let mut feed = Feed::held(part.body, part.connection);
        let request = RequestContext {
            app: &self.app,
            head,
            source: part.source,
            handover: part.handover,
        };
        let found = find(&head.method, head.uri.path());
        let endpoint = found.as_ref().map_or(Endpoint::None, |r| r.endpoint);
        let result = match check(head, found) {
            Ok(route) => self.run_single(&request, route, &mut feed).await,
            Err(refusal) => Err(refusal),
        };
        let answer = result.unwrap_or_else(|refusal| refuse(head, refusal));
        let metrics = &self.app.services.metrics;
        metrics.answered(endpoint, answer.status(), begun.elapsed());
        answer
    }

    fn refuse(&self, envelope: &Parts, refusal: Refusal) -> Answer {
        refuse(envelope, refusal)
    }
}

/// Refuses a request of somebody who may not ask.
fn authorize(config: &HttpConfig, head: &Parts, endpoint: Endpoint) -> Result<(), Refusal> {
    let host = origin::host(head)?;
    if endpoint == Endpoint::Health {
        return Ok(());
    }
    if config.token.is_none() {
        origin::check(head, host.as_ref(), &config.hosts)?;
    }
    if auth::allows(config.token.as_ref(), &head.headers) {
        return origin::check_kind(head);
    }
    Err(Refusal::protocol(
        StatusCode::UNAUTHORIZED,
        "this server wants a token: send the header Authorization: Bearer TOKEN",
    ))
}

/// What is looked at before a request has its endpoint read it.
fn check<'r>(head: &Parts, found: Result<Route<'r>, NoRoute>) -> Result<Route<'r>, Refusal> {
    let route = found.map_err(no_route)?;
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
fn refuse(head: &Parts, refusal: Refusal) -> Answer {
    if is_arango(head.uri.path()) {
        documents::refuse(&refusal)
    } else {
        refusal.into_answer()
    }
}

fn no_route(why: NoRoute) -> Refusal {
    match why {
        NoRoute::Path => Refusal::protocol(
            StatusCode::NOT_FOUND,
            format!("there is no such path; the routes are {}", list()),
        ),
        NoRoute::Method(allowed) => Refusal::protocol(
            StatusCode::METHOD_NOT_ALLOWED,
            format!("this path takes {allowed}"),
        )
        .allow(allowed),
    }
}

impl fmt::Debug for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Router")
            .field("app", &self.app)
            .finish_non_exhaustive()
    }
}
