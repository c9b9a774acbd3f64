//! Routes of another API that are served beside the frontend's own, and the helpers of their
//! handlers.
//!
//! An extension adds paths, their handlers and the format of their errors. Connections, tokens,
//! envelopes, metrics and the submission of writes stay with the frontend.

use std::borrow::Cow;

use async_trait::async_trait;
use bytes::Bytes;
use http::request::Parts;
use http::{Method, Response};
use windrow_core::Fault;
pub use windrow_idempotency::Extent;

pub use crate::ack::Ack;
pub use crate::answers::json;
pub use crate::answers::refusal::{PROTOCOL, Refusal};
pub use crate::answers::{Live, whole_json};
pub use crate::app::App;
pub use crate::bodies::Feed;
pub use crate::bodies::charge::Charge;
pub use crate::bodies::kind::{check_encoding, only_json};
pub use crate::bodies::whole::{Limit, Whole};
pub use crate::endpoint::{ExtraEndpoint, ExtraKind, NoRoute, Route};
pub use crate::handlers::ops::INDEX;
pub use crate::plan::Plan;
pub use crate::query::{Options, decode, none as no_parameters, pairs, table};
pub use crate::request::{RequestContext, done_of};
pub use crate::rows::elements::elements;
pub use crate::rows::object;

/// A complete answer.
pub type WholeAnswer = Response<Bytes>;

/// An API beside the frontend's own.
#[async_trait]
pub trait Extension: Send + Sync {
    /// Returns the extension's endpoints, for metrics and the list of routes.
    fn endpoints(&self) -> &'static [ExtraEndpoint];

    /// Returns the text after the list of routes in the answer to an unknown path.
    fn note(&self) -> &'static str {
        ""
    }

    /// Returns the extension's part of the description of the API: an OpenAPI document with only
    /// paths and components, indented by one blank for each level.
    fn openapi(&self) -> &'static str;

    /// True if the path belongs to the extension, which then answers all requests for it, also with
    /// errors. The path may be one of the frontend's, which the extension then replaces.
    fn owns(&self, path: &str) -> bool;

    /// Finds the endpoint of a request for one of its paths, as an index into
    /// [`Extension::endpoints`]. HEAD counts as GET.
    ///
    /// # Errors
    /// The reason why there is none.
    fn find<'a>(&self, method: &Method, path: &'a str) -> Result<Route<'a, usize>, NoRoute>;

    /// Returns the token of a request for one of its paths, if the request has it in another form
    /// than `Authorization: Bearer`.
    fn token<'h>(&self, _head: &'h Parts) -> Option<Cow<'h, [u8]>> {
        None
    }

    /// Answers a request that is neither an envelope nor live. If the future is dropped, queued
    /// writes are dropped.
    async fn run(
        &self,
        request: &RequestContext<'_>,
        route: Route<'_, usize>,
        feed: &mut Feed<'_>,
    ) -> WholeAnswer;

    /// Begins the answer of a live endpoint, which continues until the client leaves.
    ///
    /// # Errors
    /// The extension has no such endpoint.
    fn follow(
        &self,
        _request: &RequestContext<'_>,
        _route: Route<'_, usize>,
    ) -> Result<Response<Live>, Refusal> {
        Err(Fault::internal("this extension has no live endpoint").into())
    }

    /// Returns the answer to a request for one of its paths that the frontend refuses.
    fn refuse(&self, refusal: &Refusal) -> WholeAnswer;
}
