//! ArangoDB's document routes over any sink: a document is a row whose key column is `_key`.
//!
//! What a sink cannot promise is refused, never ignored. Answers and errors have ArangoDB's form.

mod answer;
mod create;
mod draft;
mod error;
mod key;
mod layout;
mod many;
mod modify;
mod options;
mod read;
mod replace;
mod revision;

use std::sync::Arc;

use http::HeaderMap;
use http::header::{IF_MATCH, IF_NONE_MATCH};
use windrow_core::{Done, Key, OnConflict, Op, Permit, Returning, Unit, Write};

use crate::answer::{Answer, Refusal};
use crate::app::Ask;
use crate::body::{Feed, kind};
use crate::plan::Plan;
use crate::query;
use crate::route::{Endpoint, Route};

use options::Options;

pub(crate) use error::refuse;
pub(crate) use layout::Layouts;

/// The column that is the key.
const KEY: &str = "_key";
/// Attributes that ArangoDB makes itself; those of a body are not written.
const ID: &str = "_id";
const REV: &str = "_rev";

/// A collection as a request names it.
struct Collection<'a> {
    /// Percent-encoded, as it stands in a path.
    raw: &'a str,
    /// As it is told.
    name: String,
    database: &'a str,
}

/// Runs a request about documents.
pub(crate) async fn run(
    ask: &Ask<'_>,
    route: Route<'_>,
    feed: &mut Feed<'_>,
) -> Result<Answer, Refusal> {
    let query = ask.head.uri.query().unwrap_or_default();
    let mut options = Options::read(route.endpoint, query)?;
    check_headers(&ask.head.headers, route.endpoint)?;
    kind::only_json(&ask.head.headers)?;
    let parameter = options.collection.take();
    let named = match (route.endpoint, &parameter) {
        (Endpoint::CreateIn, Some(named)) => &**named,
        (Endpoint::CreateIn, None) => {
            return Err(query::invalid(
                "the parameter collection is missing: POST /_api/document?collection=NAME, or /_api/document/NAME",
            )
            .numbered(error::COLLECTION_MISSING));
        }
        _ => route.table,
    };
    let collection = Collection {
        raw: named,
        name: query::table(named)?.to_string(),
        database: route.database,
    };
    let door = Door {
        ask,
        collection,
        options,
    };
    if !door.gives_back() && (door.options.return_new || door.options.return_old) {
        return Err(error::unsupported(
            "returnNew and returnOld are not available: this database does not give back what it wrote",
        ));
    }
    match route.endpoint {
        Endpoint::GetDocument => Box::pin(read::one(&door, route.key)).await,
        Endpoint::RemoveDocument => Box::pin(modify::remove(&door, route.key)).await,
        Endpoint::UpdateDocument => Box::pin(modify::update(&door, route.key, feed)).await,
        Endpoint::ReplaceDocument => Box::pin(replace::one(&door, route.key, feed)).await,
        Endpoint::CreateIn | Endpoint::CreateDocuments => Box::pin(create::run(&door, feed)).await,
        endpoint => Box::pin(many::run(&door, endpoint, feed)).await,
    }
}

/// A request about documents, past its head.
struct Door<'a> {
    ask: &'a Ask<'a>,
    collection: Collection<'a>,
    options: Options,
}

impl Door<'_> {
    /// What is known of requests like this one. The row is asked back, since its revision is made
    /// from it, unless the client wants to be told nothing.
    fn plan(&self, op: Op) -> Result<Arc<Plan>, Refusal> {
        self.plan_with(op, self.gives_back() && !self.options.silent)
    }

    /// Whether the database gives back what it wrote.
    fn gives_back(&self) -> bool {
        self.ask.app.services.gives_back
    }

    /// As [`Door::plan`], with the row asked back or not.
    fn plan_with(&self, op: Op, all: bool) -> Result<Arc<Plan>, Refusal> {
        let conflict = self.options.on_conflict;
        let all = all || op == Op::Get;
        // A name that no query has, since a URL holds no such character.
        let tag = match (op, conflict, all) {
            (Op::Insert, OnConflict::Error, true) => "\u{1}conflict",
            (Op::Insert, OnConflict::Error, false) => "\u{1}conflict silent",
            (Op::Insert, OnConflict::Ignore, true) => "\u{1}ignore",
            (Op::Insert, OnConflict::Ignore, false) => "\u{1}ignore silent",
            (Op::Insert, OnConflict::Update, true) => "\u{1}update",
            (Op::Insert, OnConflict::Update, false) => "\u{1}update silent",
            (_, _, true) => "\u{1}key",
            (_, _, false) => "\u{1}key silent",
        };
        self.ask
            .app
            .plans
            .get_with(op, self.collection.raw, tag, || {
                Ok(query::Options {
                    on_conflict: conflict,
                    key: Key::Columns([KEY.into()].into()),
                    returning: if all {
                        Returning::All
                    } else {
                        Returning::Nothing
                    },
                    ..query::Options::default()
                })
            })
    }

    /// Hands one write to the lane; what it did.
    async fn write(&self, write: Write, held: Permit) -> Result<Done, Refusal> {
        let outcome = self.ask.submit_one(Unit::one(write), held).await;
        let dones = outcome.map_err(|failed| failed.fault)?;
        Ok(dones.into_iter().next().unwrap_or_default())
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
