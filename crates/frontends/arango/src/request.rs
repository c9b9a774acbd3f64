//! A request about documents whose head has been read.

use std::sync::Arc;

use http::StatusCode;
use windrow_core::{Key, OnConflict, Op, Returning};
use windrow_http::extension::{Ack, Options as RowOptions, Plan, RequestContext, Route, table};

use crate::attributes::KEY;
use crate::endpoint::Endpoint;
use crate::error::{COLLECTION_MISSING, Error, bad};
use crate::layout::Layouts;
use crate::options::Options;

/// A collection as a request names it.
pub(crate) struct Collection<'a> {
    /// The name, percent-encoded as in a path.
    pub(crate) raw: &'a str,
    /// The name, decoded, as in answers.
    pub(crate) name: String,
}

impl<'a> Collection<'a> {
    /// Returns the collection in the path, or else in the parameter.
    pub(crate) fn of(
        route: &Route<'a, Endpoint>,
        parameter: Option<&'a str>,
    ) -> Result<Self, Error> {
        let raw = match (route.endpoint, parameter) {
            (Endpoint::CreateIn, Some(named)) => named,
            (Endpoint::CreateIn, None) => {
                return Err(bad(
                    COLLECTION_MISSING,
                    "the parameter collection is missing: POST /_api/document?collection=NAME, or /_api/document/NAME",
                ));
            }
            _ => route.table,
        };
        Ok(Self {
            raw,
            name: table(raw)?.to_string(),
        })
    }
}

/// A request about documents whose head has been read.
pub(crate) struct DocumentRequest<'a> {
    pub(crate) context: &'a RequestContext<'a>,
    /// The columns of recent collections.
    pub(crate) layouts: &'a Layouts,
    /// True if the database returns written rows.
    pub(crate) gives_back: bool,
    pub(crate) collection: Collection<'a>,
    pub(crate) options: Options,
}

impl DocumentRequest<'_> {
    /// Returns the plan for requests like this one. The write returns its row, from which the
    /// revision is computed, unless the client asked for a silent answer.
    pub(crate) fn plan(&self, op: Op) -> Result<Arc<Plan>, Error> {
        self.plan_with(op, self.gives_back && !self.options.silent)
    }

    /// Decides when an insert is answered. The spool answers it if that is the server's default,
    /// the answer has no revision, and the request does not ask for `waitForSync`.
    pub(crate) fn insert_ack(&self) -> Result<Ack, Error> {
        if self.options.wait_for_sync || (self.gives_back && !self.options.silent) {
            return Ok(Ack::Commit);
        }
        let app = self.context.app;
        let what = (Op::Insert, self.options.on_conflict, &Returning::Nothing);
        Ok(app.ack(what, false, None)?)
    }

    /// Returns the status of a successful insert: 201 if it is on disk, 202 if not yet.
    pub(crate) fn insert_status(ack: Ack) -> StatusCode {
        match ack {
            Ack::Commit => StatusCode::CREATED,
            Ack::Spool => StatusCode::ACCEPTED,
        }
    }

    /// As [`DocumentRequest::plan`]; `all` asks for the whole row.
    pub(crate) fn plan_with(&self, op: Op, all: bool) -> Result<Arc<Plan>, Error> {
        let conflict = self.options.on_conflict;
        let all = all || op == Op::Get;
        // A name that no query can have, because of a character that URLs do not contain.
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
        let options = || {
            let key = Key::Columns([KEY.into()].into());
            let returning = match all {
                true => Returning::All,
                false => Returning::Nothing,
            };
            RowOptions::new(conflict, key, returning)
        };
        let raw = self.collection.raw;
        Ok(self.context.plan(op, raw, tag, options)?)
    }
}
