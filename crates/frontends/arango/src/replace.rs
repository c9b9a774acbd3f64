//! Handles `PUT /_api/document/{collection}/{key}`: columns that the document does not name become
//! NULL.
//!
//! The columns are known from a row returned earlier, so the first replacement in a collection
//! reads one. Each replacement returns its row. If that has other columns than expected, the table
//! was altered, and the replacement is repeated. If the database returns no rows, one is read
//! before each replacement.

use std::sync::Arc;

use http::StatusCode;
use windrow_core::unit::UNIT_OVERHEAD;
use windrow_core::{Fault, FaultClass, Name, Op, UnitOutcome, Value, Write, WriteDone};
use windrow_http::extension::{Ack, Charge, Extent, Feed, Plan, WholeAnswer, done_of};

use crate::attributes::{ID, KEY, REV};
use crate::document::Document;
use crate::error::{self, Error};
use crate::layout::Layout;
use crate::request::DocumentRequest;
use crate::{answer, key, writes};

/// The largest number of attempts if a table is altered meanwhile.
const MAX_ATTEMPTS: usize = 3;

/// A document that replaces the one with its key.
pub(crate) struct Replacement {
    pub(crate) key: Box<str>,
    names: Vec<Name>,
    values: Vec<Value>,
}

impl Replacement {
    pub(crate) fn new(key: Box<str>, document: Document) -> Self {
        Self {
            key,
            names: document.names,
            values: document.values,
        }
    }

    fn write(&self, plan: &Plan, layout: &Layout) -> Write {
        let mut names = self.names.clone();
        let mut values = self.values.clone();
        let absent = |column: &&Name| !self.names_column(column, layout);
        for column in layout.iter().filter(absent) {
            names.push(Arc::clone(column));
            values.push(Value::Null);
        }
        if names.is_empty() {
            names.push(KEY.into());
            values.push(Value::Text(self.key.clone()));
        }
        values.push(Value::Text(self.key.clone()));
        Write::new(plan.shape(names), values)
    }

    /// Returns true if the document has a value for the column. Names that differ only in case are
    /// equal, as in some databases.
    fn names_column(&self, column: &Name, layout: &Layout) -> bool {
        if [ID, KEY, REV].contains(&&**column) {
            return true;
        }
        self.names.iter().any(|name| {
            let exact = || layout.iter().any(|other| other == name);
            name == column || (name.eq_ignore_ascii_case(column) && !exact())
        })
    }
}

pub(crate) async fn one(
    request: &DocumentRequest<'_>,
    raw: &str,
    feed: &mut Feed<'_>,
) -> Result<WholeAnswer, Error> {
    let key = key::of_path(raw)?;
    let app = request.context.app;
    let whole = feed.all(app.row_limit(), app.budget()).await?;
    let document = Document::read(&whole.bytes, None)?;
    document.check_same(&key)?;
    let mut results = each(request, &[Replacement::new(key.clone(), document)]).await?;
    let done = results
        .pop()
        .unwrap_or_else(|| Err(Fault::internal("a replacement has no result")))?;
    error::check_found(&key, done.rows)?;
    Ok(answer::one(request, StatusCode::CREATED, &key, &done))
}

/// Replaces documents, each as a request of its own would. Returns a result for each.
pub(crate) async fn each(
    request: &DocumentRequest<'_>,
    documents: &[Replacement],
) -> Result<Vec<Result<WriteDone, Fault>>, Error> {
    let Some(first) = documents.first() else {
        return Ok(Vec::new());
    };
    let layouts = request.layouts;
    let collection = request.collection.raw;
    let mut layout = match layouts.get(collection) {
        Some(layout) if request.gives_back => layout,
        _ => learn(request, &first.key).await?,
    };
    let mut round = Round::new(documents.len());
    for _ in 0..MAX_ATTEMPTS {
        let open = std::mem::take(&mut round.open);
        let outcomes = attempt(request, documents, &open, &layout).await?;
        open.into_iter()
            .zip(outcomes)
            .for_each(|(at, outcome)| round.settle(at, outcome, &layout));
        if round.open.is_empty() {
            break;
        }
        let newer = match round.altered.take() {
            Some(newer) => newer,
            None => learn(request, &first.key).await?,
        };
        layouts.set(collection, &newer);
        if newer == layout {
            break;
        }
        layout = newer;
    }
    Ok(round.results)
}

/// The results so far, and the documents still to be written.
struct Round {
    results: Vec<Result<WriteDone, Fault>>,
    open: Vec<usize>,
    /// The columns of a returned row, if they differ from the known ones.
    altered: Option<Layout>,
}

impl Round {
    fn new(documents: usize) -> Self {
        let mut results = Vec::new();
        results.resize_with(documents, || Ok(WriteDone::default()));
        Self {
            results,
            open: (0..documents).collect(),
            altered: None,
        }
    }

    fn settle(&mut self, at: usize, outcome: UnitOutcome, layout: &Layout) {
        let Some(result) = self.results.get_mut(at) else {
            return;
        };
        match done_of(outcome) {
            Ok(done) if has_others(&done, layout) => {
                self.altered = done.returned.as_ref().map(|r| Arc::clone(&r.columns));
                self.open.push(at);
                *result = Ok(done);
            }
            // The row was replaced in an earlier attempt and deleted since: that is a success.
            Ok(done) if done.rows == 0 && matches!(result, Ok(d) if d.rows > 0) => {}
            Ok(done) => *result = Ok(done),
            Err(fault) => {
                if fault.class == FaultClass::NoColumn {
                    self.open.push(at);
                }
                *result = Err(fault);
            }
        }
    }
}

async fn attempt(
    request: &DocumentRequest<'_>,
    documents: &[Replacement],
    open: &[usize],
    layout: &Layout,
) -> Result<impl Iterator<Item = UnitOutcome> + use<>, Error> {
    let plan = request.plan_with(Op::Update, request.gives_back)?;
    let mut charge = Charge::new(request.context.app.budget().clone());
    let mut writes = Vec::with_capacity(open.len());
    for document in open.iter().filter_map(|at| documents.get(*at)) {
        let write = document.write(&plan, layout);
        charge.add(UNIT_OVERHEAD + write.bytes())?;
        writes.push(write);
    }
    let outcomes = request
        .context
        .outcomes_of(Ack::Commit, writes, charge.into_permit(), Extent::Last)
        .await?;
    Ok(outcomes.into_iter())
}

/// Returns true if a returned row has columns that were not known.
fn has_others(done: &WriteDone, layout: &Layout) -> bool {
    let columns = done.returned.as_ref().map(|r| &r.columns);
    done.rows > 0 && columns.is_some_and(|c| c.iter().any(|column| !layout.contains(column)))
}

/// Reads the columns of the collection, also if no document has the key.
async fn learn(request: &DocumentRequest<'_>, key: &str) -> Result<Layout, Error> {
    let plan = request.plan(Op::Get)?;
    let write = writes::of_key(&plan, key);
    let context = request.context;
    let permit = context
        .app
        .budget()
        .try_take(UNIT_OVERHEAD + write.bytes())?;
    // The replacement follows, and requests after it must not overtake it.
    let mut outcomes = context
        .outcomes_of(Ack::Commit, vec![write], permit, Extent::More)
        .await?;
    let outcome = outcomes
        .pop()
        .unwrap_or_else(|| Err(Fault::internal("the lane did not answer a read").into()));
    let done = done_of(outcome)?;
    let Some(returned) = done.returned else {
        return Err(error::not_found(key));
    };
    let layout = Arc::clone(&returned.columns);
    request.layouts.set(request.collection.raw, &layout);
    Ok(layout)
}
