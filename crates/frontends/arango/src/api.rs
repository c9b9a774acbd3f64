//! The extension that the HTTP server serves below `/_api`.

use async_trait::async_trait;
use http::Method;
use windrow_core::Fault;
use windrow_http::extension::{
    Extension, ExtraEndpoint, Feed, NoRoute, Refusal, RequestContext, Route, WholeAnswer,
};

use crate::documents;
use crate::endpoint::{ENDPOINTS, Endpoint};
use crate::error::{self, Error};
use crate::layout::Layouts;
use crate::routes;

/// ArangoDB's API: documents and the batch envelope.
#[derive(Debug)]
pub struct ArangoApi {
    gives_back: bool,
    /// The columns of recent collections.
    layouts: Layouts,
}

impl ArangoApi {
    /// Returns the API. `gives_back` is true if the database returns written rows
    /// ([`windrow_core::Promise::Returned`]); otherwise answers have no revision.
    pub fn new(gives_back: bool) -> Self {
        Self {
            gives_back,
            layouts: Layouts::default(),
        }
    }
}

#[async_trait]
impl Extension for ArangoApi {
    fn endpoints(&self) -> &'static [ExtraEndpoint] {
        &ENDPOINTS
    }

    fn note(&self) -> &'static str {
        " (those under /_api also under /_db/{database})"
    }

    fn openapi(&self) -> &'static str {
        include_str!("openapi.json")
    }

    fn owns(&self, path: &str) -> bool {
        path.starts_with("/_api/") || path.starts_with("/_db/")
    }

    fn find<'a>(&self, method: &Method, path: &'a str) -> Result<Route<'a, usize>, NoRoute> {
        let Route {
            endpoint,
            table,
            key,
        } = routes::find(method, path)?;
        Ok(Route {
            endpoint: endpoint.index(),
            table,
            key,
        })
    }

    async fn run(
        &self,
        context: &RequestContext<'_>,
        route: Route<'_, usize>,
        feed: &mut Feed<'_>,
    ) -> WholeAnswer {
        let Some(endpoint) = Endpoint::ALL.get(route.endpoint).copied() else {
            return error::refuse(&Fault::internal("there is no such endpoint").into());
        };
        let route = Route {
            endpoint,
            table: route.table,
            key: route.key,
        };
        let answered = documents::run(self.gives_back, &self.layouts, context, route, feed).await;
        answered.unwrap_or_else(|error| error::refuse(&error))
    }

    fn refuse(&self, refusal: &Refusal) -> WholeAnswer {
        error::refuse(&Error::from(refusal.clone()))
    }
}
