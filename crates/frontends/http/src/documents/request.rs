//! A request about documents, past its head.

use std::sync::Arc;

use windrow_core::{Key, OnConflict, Op, Returning};

use super::attributes::KEY;
use super::error::COLLECTION_MISSING;
use super::layout::Layouts;
use super::options::Options;
use crate::answers::Refusal;
use crate::endpoint::{Endpoint, Route};
use crate::plan::Plan;
use crate::query;
use crate::request::RequestContext;

/// A collection as a request names it.
pub(super) struct Collection<'a> {
    /// Percent-encoded, as it stands in a path.
    pub(super) raw: &'a str,
    /// As answers name it.
    pub(super) name: String,
    pub(super) database: &'a str,
}

impl<'a> Collection<'a> {
    /// The collection that the path names, or the parameter where the path does not.
    pub(super) fn of(route: &Route<'a>, parameter: Option<&'a str>) -> Result<Self, Refusal> {
        let raw = match (route.endpoint, parameter) {
            (Endpoint::CreateIn, Some(named)) => named,
            (Endpoint::CreateIn, None) => {
                return Err(query::invalid(
                    "the parameter collection is missing: POST /_api/document?collection=NAME, or /_api/document/NAME",
                )
                .numbered(COLLECTION_MISSING));
            }
            _ => route.table,
        };
        Ok(Self {
            raw,
            name: query::table(raw)?.to_string(),
            database: route.database,
        })
    }
}

/// A request about documents, past its head.
pub(super) struct DocumentRequest<'a> {
    pub(super) context: &'a RequestContext<'a>,
    /// The columns of recent collections.
    pub(super) layouts: &'a Layouts,
    pub(super) collection: Collection<'a>,
    pub(super) options: Options,
}

impl DocumentRequest<'_> {
    /// What is known of requests like this one. The row is asked back, since its revision is made
    /// from it, unless the client wants to be told nothing.
    pub(super) fn plan(&self, op: Op) -> Result<Arc<Plan>, Refusal> {
        self.plan_with(op, self.gives_back() && !self.options.silent)
    }

    /// Whether the database gives back what it wrote.
    pub(super) fn gives_back(&self) -> bool {
        self.context.app.services.gives_back
    }

    /// As [`DocumentRequest::plan`], with the row asked back or not.
    pub(super) fn plan_with(&self, op: Op, all: bool) -> Result<Arc<Plan>, Refusal> {
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
        self.context
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
}
