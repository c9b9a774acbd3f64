//! Answers a request: finds its endpoint, checks the token, runs the handler, counts the answer.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONNECTION, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Method, Request, StatusCode};
use hyper::body::Incoming;
use tokio::time::Instant;

use crate::answers::{self, Answer, AnswerBody, Refusal};
use crate::app::App;
use crate::bodies::{Feed, kind};
use crate::config::HttpConfig;
use crate::connection_state::ConnectionState;
use crate::endpoint::{Endpoint, ExtraKind, NoRoute, Route};
use crate::envelopes::{self, Part, PartAnswerer};
use crate::extension::Extension;
use crate::handlers::{batch, insert, keyed, list, ops};
use crate::handover::Handover;
use crate::idempotency;
use crate::openapi;
use crate::origin;
use crate::query;
use crate::request::RequestContext;
use crate::rights::{Right, Rights};
use crate::routes::find::find;
use crate::services::Services;
use crate::source::WriteSource;
use crate::traces;

/// Routes each request to its handler.
pub(crate) struct Router {
    app: App,
    extensions: Box<[Arc<dyn Extension>]>,
    openapi: Bytes,
}

/// The endpoint of a request.
#[derive(Clone, Copy)]
enum Target<'r> {
    /// One of the frontend's own endpoints.
    Own(Route<'r, Endpoint>),
    /// One of the extension's endpoints.
    Extra {
        extension: &'r dyn Extension,
        route: Route<'r, usize>,
        kind: ExtraKind,
        /// The index of the endpoint among those of all extensions.
        place: usize,
    },
}

impl Router {
    pub(crate) fn new(
        config: HttpConfig,
        services: Services,
        extensions: Vec<Arc<dyn Extension>>,
    ) -> Self {
        let openapi = openapi::description(extensions.iter().map(|e| e.openapi()));
        Self {
            app: App::new(config, services),
            extensions: extensions.into(),
            openapi: openapi.into(),
        }
    }

    /// Returns the state that all requests share.
    pub(crate) fn app(&self) -> &App {
        &self.app
    }

    /// Answers a request. If the future is dropped because the client has left, queued writes are
    /// dropped.
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
        let admitted = authorize(&self.app, &head, &found);
        let traced = match &self.app.services.tracer {
            Some(tracer) if admitted.is_ok() => traces::begin(tracer, &head, name(&found)),
            _ => None,
        };
        let context = |rights| {
            let target = self.check(&head, found)?;
            let trace = traced.as_ref().map(|traced| traced.trace());
            let app = &self.app;
            let request = RequestContext::new(app, &head, source, &handover, trace, rights)?;
            Ok((target, request))
        };
        let mut answer = match admitted.and_then(context) {
            Ok((target, request)) => {
                let result = self.run(&request, target, &mut feed).await;
                if let (Some(traced), Err(refusal)) = (&traced, &result) {
                    traced.fails(&refusal.fault().code);
                }
                let mut answer = self.answer_of(&request, result);
                let room = self.app.budget().answers();
                answer.body_mut().count(room, request.take_room());
                answer
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
        if let Some(traced) = traced {
            traces::end(*traced, answer.status());
        }
        answer
    }

    /// Finds the endpoint. Paths of the extension come first.
    fn find<'r>(&'r self, head: &'r Parts) -> Result<Target<'r>, NoRoute> {
        let path = head.uri.path();
        let mut before = 0;
        for extension in &self.extensions {
            let endpoints = extension.endpoints();
            if extension.owns(path) {
                let route = extension.find(&head.method, path)?;
                let endpoint = endpoints.get(route.endpoint);
                return Ok(Target::Extra {
                    extension: &**extension,
                    route,
                    kind: endpoint.map_or(ExtraKind::Plain, |endpoint| endpoint.kind),
                    place: before + route.endpoint,
                });
            }
            before += endpoints.len();
        }
        find(&head.method, path).map(Target::Own)
    }

    /// Returns the extension, if the path belongs to it.
    fn extension_for(&self, path: &str) -> Option<&dyn Extension> {
        let mut all = self.extensions.iter().map(|extension| &**extension);
        all.find(|extension| extension.owns(path))
    }

    /// Checks a request before its handler reads it.
    fn check<'r>(
        &self,
        head: &Parts,
        found: Result<Target<'r>, NoRoute>,
    ) -> Result<Target<'r>, Refusal> {
        let target = found.map_err(|why| self.no_route(why))?;
        kind::check_coding(&head.headers)?;
        if target.is_envelope(&head.headers) && idempotency::is_asked_for(head) {
            return Err(idempotency::on_an_envelope());
        }
        if !target.takes_parameters(&head.headers) {
            query::none(head.uri.query().unwrap_or_default())?;
        }
        Ok(target)
    }

    /// Runs a request. The rare ones are boxed, so that the future of the common ones stays small.
    async fn run(
        &self,
        request: &RequestContext<'_>,
        target: Target<'_>,
        feed: &mut Feed<'_>,
    ) -> Result<Answer, Refusal> {
        if target.is_envelope(&request.head.headers) {
            return Box::pin(envelopes::run(self, request, feed)).await;
        }
        if let Target::Extra {
            extension,
            route,
            kind: ExtraKind::Live,
            ..
        } = target
        {
            return Ok(extension.follow(request, route)?.map(AnswerBody::Live));
        }
        self.run_single(request, target, feed).await
    }

    /// Runs a request that is not an envelope.
    async fn run_single(
        &self,
        request: &RequestContext<'_>,
        target: Target<'_>,
        feed: &mut Feed<'_>,
    ) -> Result<Answer, Refusal> {
        let route = match target {
            Target::Own(route) => route,
            Target::Extra {
                kind: ExtraKind::Envelope,
                ..
            } => return Err(envelopes::nested()),
            Target::Extra {
                kind: ExtraKind::Live,
                ..
            } => return Err(endless()),
            Target::Extra {
                extension, route, ..
            } => {
                let answer = extension.run(request, route, feed).await;
                return Ok(answer.map(AnswerBody::Whole));
            }
        };
        match route.endpoint {
            Endpoint::InsertRows => insert::run(request, route.table, feed).await,
            Endpoint::ListTables => Box::pin(list::tables(request)).await,
            Endpoint::ListRows => Box::pin(list::rows(request, route.table)).await,
            Endpoint::UpdateRow => Box::pin(keyed::update(request, route, feed)).await,
            Endpoint::DeleteRow => Box::pin(keyed::delete(request, route)).await,
            Endpoint::GetRow => Box::pin(keyed::get(request, route)).await,
            Endpoint::Batch => Box::pin(batch::run(request, feed)).await,
            Endpoint::Ready => Box::pin(ops::ready(request)).await,
            Endpoint::OpenApi => Ok(ops::description(&self.openapi)),
            endpoint => Ok(ops::fixed(request, endpoint)),
        }
    }

    /// Returns the answer to a request, with its place in the spool if the spool has accepted it.
    fn answer_of(&self, request: &RequestContext<'_>, result: Result<Answer, Refusal>) -> Answer {
        let mut answer = result.unwrap_or_else(|refusal| self.refuse(request.head, refusal));
        if let Some(place) = request.place() {
            answers::add_place(&mut answer, &place);
        }
        if request.is_replayed() {
            answers::add_replayed(&mut answer);
        }
        answer
    }

    /// Returns the answer to a refused request, in the format of its path.
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

    /// Lists all routes, for the answer to an unknown path.
    fn list(&self) -> String {
        let own = Endpoint::ALL.iter().filter(|e| **e != Endpoint::None);
        let own = own.map(|e| (e.method(), e.template()));
        let mut list = listed(own);
        for extension in &self.extensions {
            let extra = extension.endpoints().iter();
            let extra = extra.filter(|e| find(&Method::GET, e.template).is_err());
            list += ", ";
            list += &listed(extra.map(|e| (e.method, e.template)));
            list += extension.note();
        }
        list
    }

    fn count(&self, found: &Result<Target<'_>, NoRoute>, status: StatusCode, begun: Instant) {
        let endpoint = match found {
            Ok(Target::Own(route)) => route.endpoint.index(),
            Ok(Target::Extra { place, .. }) => Endpoint::ALL.len() + place,
            Err(_) => Endpoint::None.index(),
        };
        let metrics = &self.app.services.metrics;
        metrics.answered(endpoint, status, begun.elapsed());
    }
}

impl Target<'_> {
    /// True if the request may have parameters, which its handler reads.
    fn takes_parameters(&self, headers: &HeaderMap) -> bool {
        let may = match self {
            Self::Own(route) => route.endpoint.takes_parameters(),
            Self::Extra { .. } => true,
        };
        may && !self.is_envelope(headers)
    }

    /// True for an envelope of other requests.
    fn is_envelope(&self, headers: &HeaderMap) -> bool {
        match self {
            Self::Own(route) => route.endpoint == Endpoint::Batch && envelopes::is_one(headers),
            Self::Extra { kind, .. } => *kind == ExtraKind::Envelope,
        }
    }
}

impl PartAnswerer for Router {
    async fn answer(&self, part: Part<'_>) -> Answer {
        let begun = Instant::now();
        let head = &part.head;
        let mut feed = Feed::held(part.body, &head.headers, part.connection);
        let found = self.find(head);
        let context = |target| {
            may_reach(part.rights.as_deref(), &found)?;
            let (source, handover, trace) = (part.source, part.handover, part.trace);
            let rights = part.rights;
            let request = RequestContext::new(&self.app, head, source, handover, trace, rights)?;
            Ok((target, request))
        };
        let answer = match self.check(head, found).and_then(context) {
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

/// Returns the name of a request in a trace: its method and the form of its path. `None` for
/// requests that are not about rows.
fn name(found: &Result<Target<'_>, NoRoute>) -> Option<(&'static str, &'static str)> {
    match found {
        Ok(Target::Own(route)) if route.endpoint.is_about_rows() => {
            Some((route.endpoint.method(), route.endpoint.template()))
        }
        Ok(Target::Extra {
            extension,
            route,
            kind: ExtraKind::Plain | ExtraKind::Untyped | ExtraKind::Envelope,
            ..
        }) => {
            let endpoint = extension.endpoints().get(route.endpoint)?;
            Some((endpoint.method, endpoint.template))
        }
        _ => None,
    }
}

fn listed<'a>(routes: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let routes = routes.map(|(method, template)| format!("{method} {template}"));
    routes.collect::<Vec<_>>().join(", ")
}

/// Returns the answer to a part of an envelope whose own answer would continue until its client
/// leaves.
fn endless() -> Refusal {
    Refusal::protocol(
        StatusCode::BAD_REQUEST,
        "this path answers without an end, so it cannot be a part of an envelope: ask for it alone",
    )
}

/// Returns the rights of a request; `None` for all rights. Refuses a request without a token, one
/// of a web page of another origin, and one for an endpoint that its token does not allow.
fn authorize(
    app: &App,
    head: &Parts,
    found: &Result<Target<'_>, NoRoute>,
) -> Result<Option<Arc<Rights>>, Refusal> {
    let host = origin::host(head)?;
    let (is_health, is_open) = match found {
        Ok(Target::Own(route)) => (route.endpoint == Endpoint::Health, false),
        Ok(Target::Extra { kind, .. }) => (false, *kind == ExtraKind::Open),
        Err(_) => (false, false),
    };
    if is_health {
        return Ok(None);
    }
    if !app.admission.is_set() {
        origin::check(head, host.as_ref(), &app.config.hosts)?;
    }
    let (own_token, is_untyped) = match found {
        Ok(Target::Extra {
            extension, kind, ..
        }) => (extension.token(head), *kind == ExtraKind::Untyped),
        _ => (None, false),
    };
    let rights = match own_token {
        Some(token) => app.admission.rights_of(Some(&token)),
        None => app.admission.rights(&head.headers),
    };
    match rights {
        Some(rights) => {
            if !is_untyped {
                origin::check_kind(head)?;
            }
            may_reach(rights.as_deref(), found)?;
            Ok(rights)
        }
        None if is_open => origin::check_kind(head).map(|()| None),
        None => Err(Refusal::protocol(
            StatusCode::UNAUTHORIZED,
            "this server wants a token: send the header Authorization: Bearer TOKEN",
        )),
    }
}

/// Refuses an endpoint about the gateway itself if the token lacks the right to metrics. Endpoints
/// about rows check the rights on each table.
fn may_reach(rights: Option<&Rights>, found: &Result<Target<'_>, NoRoute>) -> Result<(), Refusal> {
    let (Some(rights), Ok(target)) = (rights, found) else {
        return Ok(());
    };
    let is_about_gateway = match target {
        Target::Own(route) => matches!(route.endpoint, Endpoint::Lanes | Endpoint::Metrics),
        Target::Extra { kind, .. } => matches!(kind, ExtraKind::Live | ExtraKind::Gateway),
    };
    match is_about_gateway {
        true => Ok(rights.check(Right::Metrics)?),
        false => Ok(()),
    }
}

impl fmt::Debug for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Router")
            .field("app", &self.app)
            .finish_non_exhaustive()
    }
}
