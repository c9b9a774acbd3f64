//! ArangoDB's document routes over any sink: a document is a row whose key column is `_key`.
//!
//! What a sink cannot promise is refused, never ignored. Answers and errors have ArangoDB's form.

mod answer;
mod attributes;
mod create;
mod document;
mod error;
mod key;
mod layout;
mod many;
mod modify;
mod options;
mod read;
mod replace;
mod request;
mod revision;
mod writes;

use http::HeaderMap;
use http::header::{IF_MATCH, IF_NONE_MATCH};

use crate::answers::{Answer, Refusal};
use crate::bodies::{Feed, kind};
use crate::endpoint::{Endpoint, Route};
use crate::request::RequestContext;

use options::Options;
use request::{Collection, DocumentRequest};

pub(crate) use error::refuse;
pub(crate) use layout::Layouts;

/// Runs a request about documents.
pub(crate) async fn run(
    layouts: &Layouts,
    context: &RequestContext<'_>,
    route: Route<'_>,
    feed: &mut Feed<'_>,
) -> Result<Answer, Refusal> {
    let query = context.head.uri.query().unwrap_or_default();
    let mut options = Options::read(route.endpoint, query)?;
    check_headers(&context.head.headers, route.endpoint)?;
    kind::only_json(&context.head.headers)?;
    let parameter = options.collection.take();
    let request = DocumentRequest {
        context,
        layouts,
        collection: Collection::of(&route, parameter.as_deref())?,
        options,
    };
    if !request.gives_back() && (request.options.return_new || request.options.return_old) {
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

/// Promises of ArangoDB's that are made by headers.
fn check_headers(headers: &HeaderMap, endpoint: Endpoint) -> Result<(), Refusal> {
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
