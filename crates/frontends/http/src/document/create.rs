//! `POST /_api/document/{collection}` and `POST /_api/document?collection=NAME`

use http::StatusCode;
use windrow_core::{Op, Value, Write};

use super::draft::Draft;
use super::{Door, KEY, answer, key, many};
use crate::answer::{Answer, Refusal};
use crate::body::Feed;
use crate::body::whole::Whole;
use crate::plan::Plan;

pub(super) async fn run(door: &Door<'_>, feed: &mut Feed<'_>) -> Result<Answer, Refusal> {
    let app = door.ask.app;
    let whole = feed.all(app.body_limit(), app.budget()).await?;
    if whole.bytes.trim_ascii_start().starts_with(b"[") {
        return many::create(door, whole).await;
    }
    app.row_limit().check(whole.bytes.len() as u64)?;
    let plan = door.plan(Op::Insert)?;
    let Whole { bytes, permit } = whole;
    let (key, write) = insert(door, &plan, &bytes)?;
    // The permit is for the row from here on.
    drop(bytes);
    let done = door.write(write, permit).await?;
    Ok(answer::one(door, StatusCode::CREATED, &key, &done))
}

/// The write that inserts a document, and its key: made here where the document has none.
pub(super) fn insert(
    door: &Door<'_>,
    plan: &Plan,
    text: &[u8],
) -> Result<(Box<str>, Write), Refusal> {
    let mut draft = Draft::read(text, plan.guess().as_ref())?;
    draft.check_merge(door, Op::Insert)?;
    let key = match draft.key.take() {
        Some(key) => {
            key::check(&key)?;
            key
        }
        None => key::generate(),
    };
    // Before the others, where clients write it too: the next document's columns are then those
    // that are guessed.
    draft.names.insert(0, KEY.into());
    draft.values.insert(0, Value::Text(key.clone()));
    Ok((key, Write::new(plan.shape(draft.names), draft.values)))
}
