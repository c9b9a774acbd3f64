//! Dispatches a request about documents to its handler.

use http::HeaderMap;
use http::header::{IF_MATCH, IF_NONE_MATCH};
use windrow_http::extension::{Feed, RequestContext, Route, WholeAnswer, only_json};

use crate::endpoint::Endpoint;
use crate::error::{self, Error};
use crate::layout::Layouts;
use crate::options::Options;
use crate::request::{Collection, DocumentRequest};
use crate::{create, many, modify, read, replace};

/// Runs a request about documents.
pub(crate) async fn run(
    gives_back: bool,
    layouts: &Layouts,
    context: &RequestContext<'_>,
    route: Route<'_, Endpoint>,
    feed: &mut Feed<'_>,
) -> Result<WholeAnswer, Error> {
    let mut options = Options::read(route.endpoint, context.query())?;
    check_headers(&context.head.headers, route.endpoint)?;
    only_json(&context.head.headers)?;
    let parameter = options.collection.take();
    let request = DocumentRequest {
        context,
        layouts,
        gives_back,
        collection: Collection::of(&route, parameter.as_deref())?,
        options,
    };
    if !request.gives_back && (request.options.return_new || request.options.return_old) {
        return Err(error::unsupported(
            "returnNew and returnOld are not available: this database does not give back what it wrote",
        ));
    }
    match route.endpoint {
        Endpoint::GetDocument => Box::pin(read::one(&request, route.key)).await,
        Endpoint::RemoveDocument => Box::pin(modify::remove(&request, route.key)).await,
        Endpoint::UpdateDocument => Box::pin(modify::update(&request, route.key, feed)).await,
        Endpoint::ReplaceDocument => Box::pin(replace::one(&request, route.key, feed)).await,
        Endpoint::CreateIn | Endpoint::CreateDocuments => {
            Box::pin(create::run(&request, feed)).await
        }
        endpoint => Box::pin(many::run(&request, endpoint, feed)).await,
    }
}

/// Refuses headers that ask for promises of ArangoDB that Windrow cannot keep.
fn check_headers(headers: &HeaderMap, endpoint: Endpoint) -> Result<(), Error> {
    let refuse = |what: &str| {
        Err(error::unsupported(format!(
            "{what} is not available: it cannot be promised over any database"
        )))
    };
    if headers.contains_key("x-arango-trx-id") {
        return refuse("a stream transaction (x-arango-trx-id)");
    }
    if headers.get("x-arango-async").is_some_and(|v| v != "false") {
        return refuse("an answer before the commit (x-arango-async)");
    }
    let conditional = headers.contains_key(IF_MATCH) || headers.contains_key(IF_NONE_MATCH);
    if conditional && endpoint != Endpoint::GetDocument {
        return refuse("a write under the condition of a revision (If-Match)");
    }
    Ok(())
}
