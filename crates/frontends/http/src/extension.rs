//! Routes of another API that are served beside the frontend's own, and what their handlers use.
//!
//! An extension brings paths, their handlers and the form of their errors. Connections, tokens,
//! envelopes, metrics and the way to the lane stay with the frontend.

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

/// An answer, all of which is there.
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

    /// Returns the extension's part of the description of the API: an OpenAPI document of paths and
    /// components alone, indented by one blank a level.
    fn openapi(&self) -> &'static str;

    /// True if a path is its own: it then answers whatever is asked there, errors too. It may
    /// be one of the frontend's, which it then answers in its place.
    fn owns(&self, path: &str) -> bool;

    /// Finds the endpoint of a request for one of its own paths, by the place in
    /// [`Extension::endpoints`]. HEAD is taken as GET.
    ///
    /// # Errors
    /// Why there is none.
    fn find<'a>(&self, method: &Method, path: &'a str) -> Result<Route<'a, usize>, NoRoute>;

    /// Returns the token of a request for one of its own paths, if the request shows it in another
    /// form than `Authorization: Bearer`.
    fn token<'h>(&self, _head: &'h Parts) -> Option<Cow<'h, [u8]>> {
        None
    }

    /// Answers a request that is neither an envelope nor live. Dropping the future takes out what
    /// is queued of it.
    async fn run(
        &self,
        request: &RequestContext<'_>,
        route: Route<'_, usize>,
        feed: &mut Feed<'_>,
    ) -> WholeAnswer;

    /// Begins an answer that goes on until the client leaves: that of a live endpoint.
    ///
    /// # Errors
    /// Where the extension has none.
    fn follow(
        &self,
        _request: &RequestContext<'_>,
        _route: Route<'_, usize>,
    ) -> Result<Response<Live>, Refusal> {
        Err(Fault::internal("this extension has no live endpoint").into())
    }

    /// Returns the answer to a request for one of its own paths that the frontend refuses.
    fn refuse(&self, refusal: &Refusal) -> WholeAnswer;
}
