//! Describes tables and counts rows before a move begins.

use windrow_core::moves::{TableFacts, Takes};
use windrow_core::{Fault, FaultClass, MovePlan, Name, TableName};
use windrow_database::moved::push_filter;
use windrow_database::quote::backtick::{push_idents, push_table};

use super::effects;
use super::text::bytes_of_route;
use crate::catalog::information::about;
use crate::catalog::schema;
use crate::catalog::table::Facts;
use crate::fault::{Scope, Trouble};
use crate::session::Session;
use crate::values::cell::get;
use crate::values::column::{Column, Kind};

/// The query that identifies a server: MySQL and MariaDB have different numbers for it, and copies
/// of a server may share them.
const SERVER: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('server_uuid', 'server_uid', 'hostname', 'port', 'datadir')";

/// The error of a column that was given no value and has no default.
const NO_DEFAULT: u16 = 1364;

/// Returns a text that identifies this database.
pub(super) async fn place(session: &mut Session) -> Result<String, Trouble> {
    let server = server(session).await?;
    let rows = session.rows("SELECT DATABASE()").await?;
    let database = rows.first().and_then(|row| get::<String>(row, 0));
    Ok(format!("{server} {database:?}"))
}

async fn server(session: &mut Session) -> Result<String, Trouble> {
    let rows = session.rows(SERVER).await?;
    let mut parts: Vec<String> = rows
        .iter()
        .filter_map(|row| Some(format!("{:?}", get::<String>(row, 1)?)))
        .collect();
    parts.insert(
        0,
        if session.server.mariadb {
            "mariadb"
        } else {
            "mysql"
        }
        .into(),
    );
    Ok(parts.join(" "))
}

/// Describes a table.
pub(super) async fn describe(
    session: &mut Session,
    name: &TableName,
) -> Result<Option<TableFacts>, Fault> {
    let Some(facts) = facts(session, name).await? else {
        return Ok(None);
    };
    let identity = identity(session, name).await?;
    let mut outside = outside(&facts);
    if !fills(session, name).await? {
        outside.required = required(session, name, &facts).await?;
    }
    Ok(Some(TableFacts {
        identity,
        effects: effects::read(session, name).await?,
        referrers: effects::referrers(session, name).await?,
        ..outside
    }))
}

/// Returns true if a trigger may set columns that were given no value. MariaDB allows that for rows
/// of VALUES, and not for rows of another table.
async fn fills(session: &mut Session, name: &TableName) -> Result<bool, Trouble> {
    let more = " AND ACTION_TIMING = 'BEFORE' AND EVENT_MANIPULATION = 'INSERT'";
    let sql = about("TRIGGERS", "COUNT(*)", "EVENT_OBJECT", name, more);
    let rows = session.rows(&sql).await?;
    Ok(rows.first().and_then(|row| get::<u64>(row, 0)) > Some(0))
}

/// Returns the columns that an insert from another table must give a value. The information schema
/// names the candidates, and the server tells if it requires them: its mode or a trigger may be a
/// reason why it does not. MySQL tells that only for rows, so for MySQL the mode and the triggers
/// are read.
pub(super) async fn required(
    session: &mut Session,
    name: &TableName,
    facts: &Facts,
) -> Result<Vec<Name>, Trouble> {
    let more = " AND IS_NULLABLE = 'NO' AND COLUMN_DEFAULT IS NULL AND DATA_TYPE <> 'enum' \
        AND EXTRA NOT LIKE '%auto_increment%' AND EXTRA NOT LIKE '%generated%' ORDER BY ORDINAL_POSITION";
    let rows = session
        .rows(&about("COLUMNS", "COLUMN_NAME", "TABLE", name, more))
        .await?;
    let required: Vec<Name> = rows
        .iter()
        .filter_map(|row| Some(get::<String>(row, 0)?.into()))
        .collect();
    if required.is_empty() {
        return Ok(required);
    }
    if !session.server.mariadb {
        let insists = facts.sees_triggers && is_strict(session).await?;
        let insists = insists && !fills(session, name).await?;
        return Ok(if insists { required } else { Vec::new() });
    }
    match session.say(&trial(name, facts, &required)).await {
        Err(Trouble::Refused(refusal)) if refusal.number == NO_DEFAULT => Ok(required),
        Err(Trouble::Refused(refusal)) if refusal.scope == Scope::Statement => Ok(Vec::new()),
        Ok(_) => Ok(Vec::new()),
        Err(trouble) => Err(trouble),
    }
}

/// Returns true if the server refuses rows that lack a value, in tables with transactions.
async fn is_strict(session: &mut Session) -> Result<bool, Trouble> {
    let sql = "SELECT FIND_IN_SET('STRICT_TRANS_TABLES', @@sql_mode) + FIND_IN_SET('STRICT_ALL_TABLES', @@sql_mode) > 0";
    let rows = session.rows(sql).await?;
    Ok(rows.first().and_then(|row| get::<u64>(row, 0)) == Some(1))
}

/// Returns an insert of no rows that gives these columns no value. If the table has no other
/// column, one of them gets a value.
fn trial(name: &TableName, facts: &Facts, required: &[Name]) -> String {
    let given = |column: &&Column| !column.generated && !required.contains(&column.name);
    let given: Vec<Name> = facts
        .columns
        .iter()
        .filter(given)
        .map(|column| column.name.clone())
        .collect();
    let given = match given.as_slice() {
        [] => required.get(..1).unwrap_or_default(),
        given => given,
    };
    let mut sql = "INSERT INTO ".to_owned();
    push_table(&mut sql, name);
    sql.push_str(" (");
    push_idents(&mut sql, given);
    sql.push_str(") SELECT ");
    push_idents(&mut sql, given);
    sql.push_str(" FROM ");
    push_table(&mut sql, name);
    sql.push_str(" WHERE FALSE");
    sql
}

/// Reads a table's description, and refuses anything that is not a table.
pub(super) async fn facts(session: &mut Session, name: &TableName) -> Result<Option<Facts>, Fault> {
    let facts = schema::read(session, name).await?;
    let Some(facts) = facts else {
        return Ok(None);
    };
    let kind = about("TABLES", "TABLE_TYPE", "TABLE", name, "");
    let rows = session.rows(&kind).await?;
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

async fn identity(session: &mut Session, name: &TableName) -> Result<String, Trouble> {
    let server = server(session).await?;
    let row = session.rows("SELECT DATABASE()").await?;
    let here: Option<String> = row.first().and_then(|row| get(row, 0));
    let schema = name.schema.as_deref().or(here.as_deref());
    Ok(format!("{server} {schema:?} {:?}", &*name.table))
}

/// Returns the description as a move uses it, without the facts that only the server can tell.
pub(super) fn outside(facts: &Facts) -> TableFacts {
    let named = |places: &[usize]| -> Vec<Name> {
        let columns = places.iter().filter_map(|place| facts.columns.get(*place));
        columns.map(|column| column.name.clone()).collect()
    };
    let uniques = facts.uniques.iter().filter(|unique| {
        let mut columns = unique.columns.iter().map(|place| facts.columns.get(*place));
        columns.all(|column| column.is_some_and(|column| column.not_null))
    });
    let primary = facts.uniques.iter().find(|unique| unique.primary);
    let takes = |column: &Column| match column.kind {
        Kind::Bit => Some(Takes::Bits(column.length)),
        Kind::Binary | Kind::Blob | Kind::Vector => Some(Takes::Bytes),
        Kind::Json => Some(Takes::Json),
        Kind::Int | Kind::Bool | Kind::Year => Some(Takes::Whole),
        Kind::Decimal(..) | Kind::Double | Kind::Float => Some(Takes::Number),
        _ => None,
    };
    TableFacts {
        columns: facts.columns.iter().map(|c| c.name.clone()).collect(),
        takes: facts
            .columns
            .iter()
            .filter_map(|column| Some((column.name.clone(), takes(column)?)))
            .collect(),
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
        ..TableFacts::default()
    }
}

/// Counts rows by route. Routes are compared by their bytes, and not by the column's collation.
pub(super) async fn count(
    session: &mut Session,
    plan: &MovePlan,
    most: usize,
) -> Result<Vec<(Option<Box<str>>, u64)>, Fault> {
    let facts = facts(session, &plan.source).await?;
    let kind = |route: &Name| {
        let facts = facts.as_ref();
        let column = facts.and_then(|facts| facts.columns.get(facts.place_of(route)?));
        column.map_or(Kind::Other, |column| column.kind)
    };
    let mut sql = "SELECT ".to_owned();
    match &plan.route {
        Some(route) => sql.push_str(&bytes_of_route(route, kind(route))),
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
    let rows = session.rows(&sql).await?;
    Ok(rows
        .iter()
        .map(|row| {
            let route = get::<Vec<u8>>(row, 0);
            // Like NULL, a route that is not text names no table.
            let route = route.and_then(|bytes| String::from_utf8(bytes).ok());
            let route = route.map(String::into_boxed_str);
            (route, get(row, 1).unwrap_or_default())
        })
        .collect())
}
