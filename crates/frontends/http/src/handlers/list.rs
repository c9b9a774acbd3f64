//! `GET /v1/tables` and `GET /v1/tables/{table}/rows`

use http::StatusCode;
use windrow_core::{Fault, FaultClass, KeyedTable, Name, Row, RowPage, Value};

use crate::ack::Ack;
use crate::answers::{self, Answer, Refusal, json};
use crate::lists::{LIST_BYTES, LIST_TIME};
use crate::page::ListQuery;
use crate::query;
use crate::request::RequestContext;
use crate::rights::Right;

/// Lists the tables that the request's token may read.
pub(crate) async fn tables(request: &RequestContext<'_>) -> Result<Answer, Refusal> {
    let rights = request.rights();
    if let Some(rights) = rights {
        rights.check(Right::Read)?;
    }
    let mut tables = request.app.lists.ask(|of| of.tables()).await?;
    let system = &request.app.plans.system_tables;
    tables.retain(|table| {
        let may = rights.is_none_or(|rights| rights.check_table(table).is_ok());
        may && system.check(table).is_ok()
    });
    let mut names: Vec<String> = tables.iter().map(ToString::to_string).collect();
    names.sort_unstable();
    let mut body = b"{\"tables\":".to_vec();
    json::list(&mut body, &names, |out, name| json::string(out, name));
    body.push(b'}');
    Ok(answers::of_json(StatusCode::OK, body))
}

/// Lists rows of one table.
pub(crate) async fn rows(request: &RequestContext<'_>, raw: &str) -> Result<Answer, Refusal> {
    let name = query::table(raw)?;
    if let Some(rights) = request.rights() {
        rights.check(Right::Read)?;
        rights.check_table(&name)?;
    }
    request.app.plans.system_tables.check(&name)?;
    let mut list = ListQuery::read(request.query())?;
    let _turn = request.turn(Ack::Commit, true).await?;
    let _held = request.app.budget().try_take(LIST_BYTES)?;
    let lists = &request.app.lists;
    let table = lists.ask(|of| of.table(&name)).await?;
    let table = table.ok_or_else(|| {
        Fault::new(
            FaultClass::NoTable,
            "42P01",
            format!("no such table: {name}"),
        )
    })?;
    list.fit(&table)?;
    let columns = columns(&list, &table);
    let page = RowPage {
        is_descending: list.is_descending,
        after: list.start_after.as_deref(),
        filters: &list.filters,
        is_spelled: true,
        bytes: LIST_BYTES,
        time: Some(LIST_TIME),
        ..RowPage::of(&table.name, &columns, &list.order, list.rows)
    };
    let rows = lists.ask(|of| of.rows(&page)).await?;
    Ok(answers::of_json(
        StatusCode::OK,
        body(request, raw, (&list, &table), &columns, &rows),
    ))
}

/// Returns the columns to read: the requested ones, and those that define the start of the next
/// page.
fn columns(list: &ListQuery, table: &KeyedTable) -> Vec<Name> {
    let Some(asked) = &list.columns else {
        return table.columns.to_vec();
    };
    let mut columns = asked.clone();
    columns.extend(
        list.order
            .iter()
            .filter(|name| !asked.contains(name))
            .cloned(),
    );
    columns
}

/// Appends `{"rows":[{..}],"more":true,"next":"/v1/tables/t/rows?start_after=7"}`.
fn body(
    request: &RequestContext<'_>,
    raw: &str,
    (list, table): (&ListQuery, &KeyedTable),
    columns: &[Name],
    rows: &[Row],
) -> Vec<u8> {
    let shown = list.columns.as_ref().map_or(columns.len(), Vec::len);
    let mut body = b"{\"rows\":".to_vec();
    json::list(&mut body, rows, |out, row| {
        let cells = columns.iter().zip(&**row).take(shown);
        json::object(out, cells.map(|(name, cell)| (&**name, cell)));
    });
    let bytes: usize = rows
        .iter()
        .flat_map(|row| row.iter())
        .map(Value::bytes)
        .sum();
    let has_more = rows.len() == list.rows || bytes > LIST_BYTES;
    json::field(&mut body, "more");
    body.extend_from_slice(if has_more { b"true" } else { b"false" });
    json::field(&mut body, "next");
    match rows.last().filter(|_| has_more && !table.key.is_empty()) {
        Some(last) => {
            let next = list.next(request.query(), columns, last);
            json::string(&mut body, &format!("/v1/tables/{raw}/rows?{next}"));
        }
        None => body.extend_from_slice(b"null"),
    }
    body.push(b'}');
    body
}
