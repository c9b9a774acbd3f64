//! What a move is told before it begins.

use windrow_core::relocate::TableFacts;
use windrow_core::{Fault, FaultClass, MovePlan, Name, TableName};

use super::source::{push_filter, push_route};
use crate::mysql::fault::Trouble;
use crate::mysql::line::Line;
use crate::mysql::schema::{self, about, get};
use crate::mysql::table::Facts;
use crate::sql::quote::backtick::push_table;

/// What tells servers apart: MySQL and MariaDB have different numbers for it, and copies of a server may share them.
const SERVER: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('server_uuid', 'server_uid', 'hostname', 'port', 'datadir')";

/// What tells this database apart.
pub(super) async fn place(line: &mut Line) -> Result<String, Trouble> {
    let server = server(line).await?;
    let rows = line.rows("SELECT DATABASE()").await?;
    let database = rows.first().and_then(|row| get::<String>(row, 0));
    Ok(format!("{server} {database:?}"))
}

async fn server(line: &mut Line) -> Result<String, Trouble> {
    let rows = line.rows(SERVER).await?;
    let mut parts: Vec<String> = rows
        .iter()
        .filter_map(|row| Some(format!("{:?}", get::<String>(row, 1)?)))
        .collect();
    parts.insert(
        0,
        if line.server.mariadb {
            "mariadb"
        } else {
            "mysql"
        }
        .into(),
    );
    Ok(parts.join(" "))
}

/// What a table is like.
pub(super) async fn describe(
    line: &mut Line,
    name: &TableName,
) -> Result<Option<TableFacts>, Fault> {
    let Some(facts) = facts(line, name).await? else {
        return Ok(None);
    };
    let identity = identity(line, name).await.map_err(Trouble::into_fault)?;
    Ok(Some(outside(&facts, identity)))
}

/// Reads a table's description, and refuses what is no table.
pub(super) async fn facts(line: &mut Line, name: &TableName) -> Result<Option<Facts>, Fault> {
    let facts = schema::read(line, name)
        .await
        .map_err(Trouble::into_fault)?;
    let Some(facts) = facts else {
        return Ok(None);
    };
    let kind = about("TABLES", "TABLE_TYPE", "TABLE", name, "");
    let rows = line.rows(&kind).await.map_err(Trouble::into_fault)?;
    let kind: String = rows.first().and_then(|row| get(row, 0)).unwrap_or_default();
    if kind == "BASE TABLE" || kind == "SYSTEM VERSIONED" {
        return Ok(Some(facts));
    }
    Err(Fault::new(
        FaultClass::Unsupported,
        "0A000",
        format!("{name} is no table: {}", kind.to_lowercase()),
    ))
}

async fn identity(line: &mut Line, name: &TableName) -> Result<String, Trouble> {
    let server = server(line).await?;
    let row = line.rows("SELECT DATABASE()").await?;
    let here: Option<String> = row.first().and_then(|row| get(row, 0));
    let schema = name.schema.as_deref().or(here.as_deref());
    Ok(format!("{server} {schema:?} {:?}", &*name.table))
}

/// The description as a move uses it.
pub(super) fn outside(facts: &Facts, identity: String) -> TableFacts {
    let named = |places: &[usize]| -> Vec<Name> {
        let columns = places.iter().filter_map(|place| facts.columns.get(*place));
        columns.map(|column| column.name.clone()).collect()
    };
    let uniques = facts.uniques.iter().filter(|unique| {
        let mut columns = unique.columns.iter().map(|place| facts.columns.get(*place));
        columns.all(|column| column.is_some_and(|column| column.not_null))
    });
    let primary = facts.uniques.iter().find(|unique| unique.primary);
    TableFacts {
        identity,
        columns: facts.columns.iter().map(|c| c.name.clone()).collect(),
        generated: facts
            .columns
            .iter()
            .filter(|column| column.generated)
            .map(|column| column.name.clone())
            .collect(),
        key: primary
            .map(|unique| named(&unique.columns))
            .unwrap_or_default(),
        uniques: uniques.map(|unique| named(&unique.columns)).collect(),
    }
}

/// Rows by their route. Routes are told apart by their bytes, whatever the column's collation holds for equal.
pub(super) async fn count(
    line: &mut Line,
    plan: &MovePlan,
    most: usize,
) -> Result<Vec<(Option<Box<str>>, u64)>, Trouble> {
    let mut sql = "SELECT ".to_owned();
    match &plan.route {
        Some(route) => {
            sql.push_str("CAST(");
            push_route(&mut sql, route);
            sql.push_str(" AS BINARY)");
        }
        None => sql.push_str("NULL"),
    }
    sql.push_str(" AS windrow_route, COUNT(*) FROM ");
    push_table(&mut sql, &plan.source);
    push_filter(&mut sql, plan.filter.as_deref());
    if plan.route.is_some() {
        sql.push_str(&format!(
            " GROUP BY windrow_route ORDER BY windrow_route LIMIT {most}"
        ));
    }
    let rows = line.rows(&sql).await?;
    Ok(rows
        .iter()
        .map(|row| {
            let route = get::<Vec<u8>>(row, 0);
            let route = route.map(|bytes| String::from_utf8_lossy(&bytes).into());
            (route, get(row, 1).unwrap_or_default())
        })
        .collect())
}
