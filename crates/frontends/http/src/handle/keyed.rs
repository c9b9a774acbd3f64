//! `PATCH`, `DELETE` and `GET /v1/tables/{table}/rows/{key}`

use std::sync::Arc;

use http::StatusCode;
use windrow_core::{Done, Fault, FaultClass, Key, Op, Permit, Shape, Unit, Value, Write};

use crate::answer::{self, Answer, Refusal, json};
use crate::app::Ask;
use crate::body::{Feed, kind};
use crate::plan::Plan;
use crate::query;
use crate::route::Route;
use crate::rows::object::{self, Columns};

pub(crate) async fn update(
    ask: &Ask<'_>,
    route: Route<'_>,
    feed: &mut Feed<'_>,
) -> Result<Answer, Refusal> {
    kind::only_json(&ask.head.headers)?;
    let (plan, key) = plan(ask, Op::Update, &route)?;
    let (write, held) = whole(ask, &plan, key, feed).await?;
    answer_done(ask, write, held).await
}

async fn whole(
    ask: &Ask<'_>,
    plan: &Plan,
    key: Vec<Value>,
    feed: &mut Feed<'_>,
) -> Result<(Write, Permit), Refusal> {
    let app = ask.app;
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

pub(crate) async fn delete(ask: &Ask<'_>, route: Route<'_>) -> Result<Answer, Refusal> {
    let (plan, key) = plan(ask, Op::Delete, &route)?;
    let write = Write::new(bare(&plan), key);
    answer_done(ask, write, Permit::empty()).await
}

pub(crate) async fn get(ask: &Ask<'_>, route: Route<'_>) -> Result<Answer, Refusal> {
    let (plan, key) = plan(ask, Op::Get, &route)?;
    let done = run(ask, Write::new(bare(&plan), key), Permit::empty()).await?;
    let found = done.returned.as_deref();
    let Some((returned, row)) = found.and_then(|r| Some((r, r.rows.first()?))) else {
        let table = query::table(route.table)?;
        return Err(not_found(&table.to_string()));
    };
    let mut body = Vec::with_capacity(256);
    json::row(&mut body, returned, row);
    Ok(answer::of_json(StatusCode::OK, body))
}

fn not_found(table: &str) -> Refusal {
    let fault = Fault::new(
        FaultClass::Other,
        "02000",
        format!("the table {table} has no row with this key"),
    );
    Refusal::new(StatusCode::NOT_FOUND, fault)
}

/// The plan, and the values of the key. They are text; the sink knows the columns' types.
fn plan(ask: &Ask<'_>, op: Op, route: &Route<'_>) -> Result<(Arc<Plan>, Vec<Value>), Refusal> {
    let query = ask.head.uri.query().unwrap_or_default();
    let plan = ask.app.plans.get(op, route.table, query)?;
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

/// The shape of a write without columns.
fn bare(plan: &Plan) -> Arc<Shape> {
    plan.guess().unwrap_or_else(|| plan.shape(Vec::new()))
}

async fn answer_done(ask: &Ask<'_>, write: Write, held: Permit) -> Result<Answer, Refusal> {
    let done = run(ask, write, held).await?;
    let mut body = Vec::with_capacity(128);
    body.push(b'{');
    json::done(&mut body, &done);
    body.push(b'}');
    Ok(answer::of_json(StatusCode::OK, body))
}

async fn run(ask: &Ask<'_>, write: Write, held: Permit) -> Result<Done, Refusal> {
    let outcome = ask.submit_one(Unit::one(write), held).await;
    let dones = outcome.map_err(|failed| failed.fault)?;
    Ok(dones.into_iter().next().unwrap_or_default())
}
