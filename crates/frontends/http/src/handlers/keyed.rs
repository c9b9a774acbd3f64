//! `PATCH`, `DELETE` and `GET /v1/tables/{table}/rows/{key}`

use std::sync::Arc;

use http::StatusCode;
use windrow_core::{Fault, FaultClass, Key, Op, Permit, Value, Write};

use crate::ack::Ack;
use crate::answers::{self, Answer, Refusal, json};
use crate::bodies::{Feed, kind};
use crate::endpoint::{Endpoint, Route};
use crate::plan::Plan;
use crate::query::{self, Options};
use crate::request::RequestContext;
use crate::rows::object::{self, Columns};

pub(crate) async fn update(
    request: &RequestContext<'_>,
    route: Route<'_, Endpoint>,
    feed: &mut Feed<'_>,
) -> Result<Answer, Refusal> {
    kind::only_json(&request.head.headers)?;
    let (plan, key) = plan(request, Op::Update, &route)?;
    let (write, held) = whole(request, &plan, key, feed).await?;
    answer_done(request, write, held).await
}

async fn whole(
    request: &RequestContext<'_>,
    plan: &Plan,
    key: Vec<Value>,
    feed: &mut Feed<'_>,
) -> Result<(Write, Permit), Refusal> {
    let app = request.app;
    let whole = feed.all(app.row_limit(), app.budget()).await?;
    let guess = plan.guess();
    let (columns, mut values) = object::read(&whole.bytes, guess.as_ref(), key.len())?;
    let shape = match (columns, guess) {
        (Columns::Guessed, Some(shape)) => shape,
        (Columns::Named(names), _) if !names.is_empty() => plan.shape(names),
        _ => {
            return Err(
                Fault::invalid("the object has no columns; there is nothing to change").into(),
            );
        }
    };
    values.extend(key);
    Ok((Write::new(shape, values), whole.permit))
}

pub(crate) async fn delete(
    request: &RequestContext<'_>,
    route: Route<'_, Endpoint>,
) -> Result<Answer, Refusal> {
    let (plan, key) = plan(request, Op::Delete, &route)?;
    let write = Write::new(plan.without_columns(), key);
    answer_done(request, write, Permit::empty()).await
}

pub(crate) async fn get(
    request: &RequestContext<'_>,
    route: Route<'_, Endpoint>,
) -> Result<Answer, Refusal> {
    let (plan, key) = plan(request, Op::Get, &route)?;
    let write = Write::new(plan.without_columns(), key);
    let done = request.write(Ack::Commit, write, Permit::empty()).await?;
    let found = done.returned.as_deref();
    let Some((returned, row)) = found.and_then(|r| Some((r, r.rows.first()?))) else {
        let table = query::table(route.table)?;
        return Err(not_found(&table.to_string()));
    };
    let mut body = Vec::with_capacity(256);
    json::row(&mut body, returned, row);
    Ok(answers::of_json(StatusCode::OK, body))
}

fn not_found(table: &str) -> Refusal {
    let fault = Fault::new(
        FaultClass::Other,
        "02000",
        format!("the table {table} has no row with this key"),
    );
    Refusal::new(StatusCode::NOT_FOUND, fault)
}

/// Returns the plan, and the values of the key as texts: the sink knows the types of the columns.
fn plan(
    request: &RequestContext<'_>,
    op: Op,
    route: &Route<'_, Endpoint>,
) -> Result<(Arc<Plan>, Vec<Value>), Refusal> {
    let plan = request.own_plan(op, route.table)?;
    let Options { returning, ack, .. } = &plan.options;
    let what = (op, plan.options.on_conflict, returning);
    request.app.ack(what, false, *ack)?;
    let parts = query::key_parts(route.key)?;
    if let Key::Columns(columns) = &plan.options.key
        && columns.len() != parts.len()
    {
        return Err(Fault::invalid(format!(
            "the key has {} values, the parameter key names {} columns; a comma within a value is written %2C",
            parts.len(),
            columns.len()
        ))
        .into());
    }
    let values = parts.iter().map(|part| Value::text(&**part)).collect();
    Ok((plan, values))
}

async fn answer_done(
    request: &RequestContext<'_>,
    write: Write,
    held: Permit,
) -> Result<Answer, Refusal> {
    let done = request.write(Ack::Commit, write, held).await?;
    let mut body = Vec::with_capacity(128);
    body.push(b'{');
    json::done(&mut body, Ack::Commit, &done);
    body.push(b'}');
    Ok(answers::of_json(StatusCode::OK, body))
}
