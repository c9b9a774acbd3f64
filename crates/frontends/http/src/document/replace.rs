//! `PUT /_api/document/{collection}/{key}`: all columns that the document does not name become
//! NULL.
//!
//! The columns are those of a row that came back before, so the first replacement of a collection
//! reads one. Each replacement gives its row back: where that has other columns than expected, the
//! table was altered, and it is done again. Over a database that gives nothing back a row is read
//! before each.

use std::sync::Arc;

use http::StatusCode;
use windrow_core::unit::UNIT_OVERHEAD;
use windrow_core::{Done, Fault, FaultClass, Name, Op, UnitOutcome, Value, Write};

use super::draft::Draft;
use super::layout::Layout;
use super::{Door, ID, KEY, REV, answer, error, key, modify};
use crate::answer::{Answer, Refusal};
use crate::body::Feed;
use crate::body::charge::Charge;
use crate::plan::Plan;

/// How often a table may be altered while a document of it is replaced.
const TRIES: usize = 3;

/// A document that takes the place of the one with its key.
pub(super) struct Replacement {
    pub(super) key: Box<str>,
    names: Vec<Name>,
    values: Vec<Value>,
}

impl Replacement {
    pub(super) fn new(key: Box<str>, draft: Draft) -> Self {
        Self {
            key,
            names: draft.names,
            values: draft.values,
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

    /// True where the document says what becomes of the column. Some databases do not tell cases
    /// apart.
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

pub(super) async fn one(
    door: &Door<'_>,
    raw: &str,
    feed: &mut Feed<'_>,
) -> Result<Answer, Refusal> {
    let key = key::of_path(raw)?;
    let app = door.ask.app;
    let whole = feed.all(app.row_limit(), app.budget()).await?;
    let draft = Draft::read(&whole.bytes, None)?;
    modify::check_same(&key, &draft)?;
    let mut results = each(door, &[Replacement::new(key.clone(), draft)]).await?;
    let done = results
        .pop()
        .unwrap_or_else(|| Err(Fault::internal("a replacement has no result")))?;
    modify::found(&key, done.rows)?;
    Ok(answer::one(door, StatusCode::CREATED, &key, &done))
}

/// Replaces documents, each as if alone; a result for each of them.
pub(super) async fn each(
    door: &Door<'_>,
    documents: &[Replacement],
) -> Result<Vec<Result<Done, Fault>>, Refusal> {
    let Some(first) = documents.first() else {
        return Ok(Vec::new());
    };
    let layouts = &door.ask.app.layouts;
    let collection = door.collection.raw;
    let mut layout = match layouts.get(collection) {
        Some(layout) if door.gives_back() => layout,
        _ => learn(door, &first.key).await?,
    };
    let mut round = Round::new(documents.len());
    for _ in 0..TRIES {
        let open = std::mem::take(&mut round.again);
        let outcomes = attempt(door, documents, &open, &layout).await?;
        open.into_iter()
            .zip(outcomes)
            .for_each(|(at, outcome)| round.settle(at, outcome, &layout));
        if round.again.is_empty() {
            break;
        }
        let newer = match round.altered.take() {
            Some(newer) => newer,
            None => learn(door, &first.key).await?,
        };
        layouts.set(collection, &newer);
        if newer == layout {
            break;
        }
        layout = newer;
    }
    Ok(round.results)
}

/// What has become of the documents, and which of them are to be written (again).
struct Round {
    results: Vec<Result<Done, Fault>>,
    again: Vec<usize>,
    /// Columns that were not known.
    altered: Option<Layout>,
}

impl Round {
    fn new(documents: usize) -> Self {
        let mut results = Vec::new();
        results.resize_with(documents, || Ok(Done::default()));
        Self {
            results,
            again: (0..documents).collect(),
            altered: None,
        }
    }

    fn settle(&mut self, at: usize, outcome: UnitOutcome, layout: &Layout) {
        let Some(result) = self.results.get_mut(at) else {
            return;
        };
        match outcome.map(|dones| dones.into_iter().next().unwrap_or_default()) {
            Ok(done) if has_others(&done, layout) => {
                self.altered = done.returned.as_ref().map(|r| Arc::clone(&r.columns));
                self.again.push(at);
                *result = Ok(done);
            }
            // A row that was replaced a moment ago and has gone since was replaced.
            Ok(done) if done.rows == 0 && matches!(result, Ok(d) if d.rows > 0) => {}
            Ok(done) => *result = Ok(done),
            Err(failed) => {
                if failed.fault.class == FaultClass::NoColumn {
                    self.again.push(at);
                }
                *result = Err(failed.fault);
            }
        }
    }
}

async fn attempt(
    door: &Door<'_>,
    documents: &[Replacement],
    open: &[usize],
    layout: &Layout,
) -> Result<impl Iterator<Item = UnitOutcome> + use<>, Refusal> {
    let plan = door.plan_with(Op::Update, door.gives_back())?;
    let mut charge = Charge::new(door.ask.app.budget().clone());
    let mut writes = Vec::with_capacity(open.len());
    for document in open.iter().filter_map(|at| documents.get(*at)) {
        let write = document.write(&plan, layout);
        charge.add(UNIT_OVERHEAD + write.bytes())?;
        writes.push(write);
    }
    let outcomes = door.ask.outcomes_of(writes, charge.into_permit()).await?;
    Ok(outcomes.into_iter())
}

/// True where a row has come back with columns that were not known.
fn has_others(done: &Done, layout: &Layout) -> bool {
    let columns = done.returned.as_ref().map(|r| &r.columns);
    done.rows > 0 && columns.is_some_and(|c| c.iter().any(|column| !layout.contains(column)))
}

/// Reads the columns of the collection. A row need not be there.
async fn learn(door: &Door<'_>, key: &str) -> Result<Layout, Refusal> {
    let plan = door.plan(Op::Get)?;
    let write = Write::new(modify::bare(&plan), [Value::text(key)]);
    let ask = door.ask;
    let permit = ask.app.budget().try_take(UNIT_OVERHEAD + write.bytes())?;
    // The turn is not passed on yet: what follows must not overtake the replacement.
    let mut outcomes = ask.submit_each(vec![write], permit).await?.await;
    let dones = outcomes
        .pop()
        .unwrap_or_else(|| Err(Fault::internal("the lane did not answer a read").into()));
    let done = dones
        .map_err(|failed| failed.fault)?
        .into_iter()
        .next()
        .unwrap_or_default();
    let Some(returned) = done.returned else {
        return Err(error::not_found(key));
    };
    let layout = Arc::clone(&returned.columns);
    ask.app.layouts.set(door.collection.raw, &layout);
    Ok(layout)
}
