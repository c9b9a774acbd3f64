//! One request: who may ask, where it goes, how it is counted.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONNECTION, HeaderName, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Method, Request, StatusCode};
use hyper::body::Incoming;
use tokio::time::Instant;

use crate::answers::{self, Answer, AnswerBody, Refusal};
use crate::app::App;
use crate::bodies::Feed;
use crate::config::HttpConfig;
use crate::connection_state::ConnectionState;
use crate::endpoint::{Endpoint, NoRoute, Route};
use crate::envelopes::{self, Part, PartAnswerer};
use crate::extension::Extension;
use crate::handlers::{batch, insert, keyed, ops};
use crate::handover::Handover;
use crate::openapi;
use crate::origin;
use crate::query;
use crate::request::RequestContext;
use crate::routes::find::find;
use crate::services::Services;
use crate::source::WriteSource;

/// Promises that this version does not make must not be asked for in vain.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Brings each request to what answers it.
pub(crate) struct Router {
    app: App,
    extension: Option<Arc<dyn Extension>>,
    openapi: Bytes,
}

/// Where a request goes.
#[derive(Clone, Copy)]
enum Target<'r> {
    /// To one of the frontend's own endpoints.
    Own(Route<'r, Endpoint>),
    /// To one of the extension's.
    Extra {
        extension: &'r dyn Extension,
        route: Route<'r, usize>,
        is_envelope: bool,
    },
}

impl Router {
    pub(crate) fn new(
        config: HttpConfig,
        services: Services,
        extension: Option<Arc<dyn Extension>>,
    ) -> Self {
        let openapi = openapi::description(extension.as_ref().map(|e| e.openapi()));
        Self {
            app: App::new(config, services),
            extension,
            openapi: openapi.into(),
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
        source: &WriteSource,
        connection: &ConnectionState,
    ) -> Answer {
        let begun = Instant::now();
        let (head, body) = request.into_parts();
        let mut feed = Feed::new(body, &head.headers, connection);
        let handover = Handover::default();
        source.begin_request();
        let found = self.find(&head);
        let admitted = authorize(&self.app, &head, is_health(&found));
        let checked = admitted.and_then(|()| self.check(&head, found));
        let context = RequestContext::new(&self.app, &head, source, &handover);
        let mut answer = match checked.and_then(|target| Ok((target, context?))) {
            Ok((target, request)) => {
                let result = self.run(&request, target, &mut feed).await;
                self.answer_of(&request, result)
            }
            Err(refusal) => self.refuse(&head, refusal),
        };
        if !feed.has_ended() && !Box::pin(feed.drain()).await {
            connection.leave_unread();
            answer
                .headers_mut()
                .insert(CONNECTION, HeaderValue::from_static("close"));
        }
        self.count(&found, answer.status(), begun);
        answer
    }

    /// Finds the endpoint: the extension's for its own paths.
    fn find<'r>(&'r self, head: &'r Parts) -> Result<Target<'r>, NoRoute> {
        let path = head.uri.path();
        match self.extension_for(path) {
            Some(extension) => {
                let route = extension.find(&head.method, path)?;
                let endpoint = extension.endpoints().get(route.endpoint);
                Ok(Target::Extra {
                    extension,
                    route,
                    is_envelope: endpoint.is_some_and(|endpoint| endpoint.is_envelope),
                })
            }
            None => find(&head.method, path).map(Target::Own),
        }
    }

    /// The extension, where the path is its own.
    fn extension_for(&self, path: &str) -> Option<&dyn Extension> {
        self.extension
            .as_deref()
            .filter(|extension| extension.owns(path))
    }

    /// What is looked at before a request has its endpoint read it.
    fn check<'r>(
        &self,
        head: &Parts,
        found: Result<Target<'r>, NoRoute>,
    ) -> Result<Target<'r>, Refusal> {
        let target = found.map_err(|why| self.no_route(why))?;
        let is_read = head.method == Method::GET || head.method == Method::HEAD;
        if !is_read && head.headers.contains_key(IDEMPOTENCY_KEY) {
            return Err(Refusal::later("the Idempotency-Key header"));
        }
        if !target.takes_parameters(&head.headers) {
            query::none(head.uri.query().unwrap_or_default())?;
        }
        Ok(target)
    }

    /// Runs a request. The rare ones are boxed, so that the common one stays small.
    async fn run(
        &self,
        request: &RequestContext<'_>,
        target: Target<'_>,
        feed: &mut Feed<'_>,
    ) -> Result<Answer, Refusal> {
        if target.is_envelope(&request.head.headers) {
            return Box::pin(envelopes::run(self, request, feed)).await;
        }
        self.run_single(request, target, feed).await
    }

    /// Runs a request that holds no others.
    async fn run_single(
        &self,
        request: &RequestContext<'_>,
        target: Target<'_>,
        feed: &mut Feed<'_>,
    ) -> Result<Answer, Refusal> {
        let route = match target {
            Target::Own(route) => route,
            Target::Extra {
                is_envelope: true, ..
            } => return Err(envelopes::nested()),
            Target::Extra {
                extension, route, ..
            } => {
                let answer = extension.run(request, route, feed).await;
                return Ok(answer.map(AnswerBody::Whole));
            }
        };
        match route.endpoint {
            Endpoint::InsertRows => insert::run(request, route.table, feed).await,
            Endpoint::UpdateRow => Box::pin(keyed::update(request, route, feed)).await,
            Endpoint::DeleteRow => Box::pin(keyed::delete(request, route)).await,
            Endpoint::GetRow => Box::pin(keyed::get(request, route)).await,
            Endpoint::Batch => Box::pin(batch::run(request, feed)).await,
            Endpoint::Ready => Box::pin(ops::ready(request)).await,
            Endpoint::OpenApi => Ok(ops::description(&self.openapi)),
            endpoint => Ok(ops::fixed(request, endpoint)),
        }
    }

    /// The answer to a request that was run, with its place in the spool where that has taken it.
    fn answer_of(&self, request: &RequestContext<'_>, result: Result<Answer, Refusal>) -> Answer {
        let mut answer = result.unwrap_or_else(|refusal| self.refuse(request.head, refusal));
        if let Some(place) = request.place() {
            answers::add_place(&mut answer, &place);
        }
        answer
    }

    /// The answer to a request that was refused, in the form that its path's clients know.
    fn refuse(&self, head: &Parts, refusal: Refusal) -> Answer {
        match self.extension_for(head.uri.path()) {
            Some(extension) => extension.refuse(&refusal).map(AnswerBody::Whole),
            None => refusal.into_answer(),
        }
    }

    fn no_route(&self, why: NoRoute) -> Refusal {
        match why {
            NoRoute::Path => Refusal::protocol(
                StatusCode::NOT_FOUND,
                format!("there is no such path; the routes are {}", self.list()),
            ),
            NoRoute::Method(allowed) => Refusal::protocol(
                StatusCode::METHOD_NOT_ALLOWED,
                format!("this path takes {allowed}"),
            )
            .allow(allowed),
        }
    }

    /// All routes, for whoever asked for another.
    fn list(&self) -> String {
        let own = Endpoint::ALL.iter().filter(|e| **e != Endpoint::None);
        let own = own.map(|e| (e.method(), e.template()));
        let extension = self.extension.as_deref();
        let extra = extension.map_or(&[][..], Extension::endpoints);
        own.chain(extra.iter().map(|e| (e.method, e.template)))
            .map(|(method, template)| format!("{method} {template}"))
            .collect::<Vec<_>>()
            .join(", ")
            + extension.map_or("", Extension::note)
    }

    fn count(&self, found: &Result<Target<'_>, NoRoute>, status: StatusCode, begun: Instant) {
        let endpoint = match found {
            Ok(Target::Own(route)) => route.endpoint.index(),
            Ok(Target::Extra { route, .. }) => Endpoint::ALL.len() + route.endpoint,
            Err(_) => Endpoint::None.index(),
        };
        let metrics = &self.app.services.metrics;
        metrics.answered(endpoint, status, begun.elapsed());
    }
}

impl Target<'_> {
    /// True where the request may have parameters, which its handler reads.
    fn takes_parameters(&self, headers: &HeaderMap) -> bool {
        let may = match self {
            Self::Own(route) => route.endpoint.takes_parameters(),
            Self::Extra { .. } => true,
        };
        may && !self.is_envelope(headers)
    }

    /// True for a request that holds others.
    fn is_envelope(&self, headers: &HeaderMap) -> bool {
        match self {
            Self::Own(route) => route.endpoint == Endpoint::Batch && envelopes::is_one(headers),
            Self::Extra { is_envelope, .. } => *is_envelope,
        }
    }
}

impl PartAnswerer for Router {
    async fn answer(&self, part: Part<'_>) -> Answer {
        let begun = Instant::now();
        let head = &part.head;
        let mut feed = Feed::held(part.body, &head.headers, part.connection);
        let found = self.find(head);
        let checked = self.check(head, found);
        let context = RequestContext::new(&self.app, head, part.source, part.handover);
        let answer = match checked.and_then(|target| Ok((target, context?))) {
            Ok((target, request)) => {
                let result = self.run_single(&request, target, &mut feed).await;
                self.answer_of(&request, result)
            }
            Err(refusal) => self.refuse(head, refusal),
        };
        self.count(&found, answer.status(), begun);
        answer
    }

    fn refuse(&self, envelope: &Parts, refusal: Refusal) -> Answer {
        self.refuse(envelope, refusal)
    }
}

fn is_health(found: &Result<Target<'_>, NoRoute>) -> bool {
    matches!(found, Ok(Target::Own(route)) if route.endpoint == Endpoint::Health)
}

/// Refuses a request of somebody who may not ask.
fn authorize(app: &App, head: &Parts, is_health: bool) -> Result<(), Refusal> {
    let host = origin::host(head)?;
    if is_health {
        return Ok(());
    }
    if !app.token.is_set() {
        origin::check(head, host.as_ref(), &app.config.hosts)?;
    }
    if app.token.allows(&head.headers) {
        return origin::check_kind(head);
    }
    Err(Refusal::protocol(
        StatusCode::UNAUTHORIZED,
        "this server wants a token: send the header Authorization: Bearer TOKEN",
    ))
}

impl fmt::Debug for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Router")
            .field("app", &self.app)
            .finish_non_exhaustive()
    }
}
