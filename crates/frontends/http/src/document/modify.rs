//! `PATCH` and `DELETE /_api/document/{collection}/{key}`

use std::sync::Arc;

use http::StatusCode;
use windrow_core::{Op, Permit, Shape, Value, Write};

use super::draft::Draft;
use super::error::{KEY_BAD, bad, not_found};
use super::{Door, KEY, answer, key};
use crate::answer::{Answer, Refusal};
use crate::body::Feed;
use crate::body::whole::Whole;
use crate::plan::Plan;

pub(super) async fn update(
    door: &Door<'_>,
    raw: &str,
    feed: &mut Feed<'_>,
) -> Result<Answer, Refusal> {
    let key = key::of_path(raw)?;
    let plan = door.plan(Op::Update)?;
    let app = door.ask.app;
    let Whole { bytes, permit } = feed.all(app.row_limit(), app.budget()).await?;
    let draft = Draft::read(&bytes, plan.guess().as_ref())?;
    // The permit is for the row from here on.
    drop(bytes);
    check_same(&key, &draft)?;
    let write = change(door, &plan, draft, &key)?;
    let done = door.write(write, permit).await?;
    found(&key, done.rows)?;
    Ok(answer::one(door, StatusCode::CREATED, &key, &done))
}

pub(super) async fn remove(door: &Door<'_>, raw: &str) -> Result<Answer, Refusal> {
    let key = key::of_path(raw)?;
    let plan = door.plan(Op::Delete)?;
    let write = Write::new(bare(&plan), [Value::Text(key.clone())]);
    let done = door.write(write, Permit::empty()).await?;
    found(&key, done.rows)?;
    Ok(answer::one(door, StatusCode::OK, &key, &done))
}

/// The write that changes the attributes of a draft in the row with a key.
pub(super) fn change(
    door: &Door<'_>,
    plan: &Plan,
    draft: Draft,
    key: &str,
) -> Result<Write, Refusal> {
    draft.check_merge(door, Op::Update)?;
    let (mut names, mut values) = (draft.names, draft.values);
    if names.is_empty() {
        // Nothing is to change: the row is found, counted and given back all the same.
        names.push(KEY.into());
        values.push(Value::text(key));
    }
    values.push(Value::text(key));
    Ok(Write::new(plan.shape(names), values))
}

/// A document in the body of a request whose path names its key may repeat that key, and no other.
pub(super) fn check_same(key: &str, draft: &Draft) -> Result<(), Refusal> {
    match &draft.key {
        Some(other) if **other != *key => Err(bad(
            KEY_BAD,
            format!("the body has the _key {other:?}, the path {key:?}; a key cannot be changed"),
        )),
        _ => Ok(()),
    }
}

pub(super) fn found(key: &str, rows: u64) -> Result<(), Refusal> {
    if rows == 0 {
        return Err(not_found(key));
    }
    Ok(())
}

/// The shape of a write without columns.
pub(super) fn bare(plan: &Plan) -> Arc<Shape> {
    plan.guess().unwrap_or_else(|| plan.shape(Vec::new()))
}
