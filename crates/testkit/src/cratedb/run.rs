//! Requests answered, in CrateDB's words.

use std::collections::HashMap;

use serde_json::Value;

use super::cell::Cell;
use super::sql::{Statement, read};
use super::store::{Row, Table, Tables, shard};
use super::write::{CrateError, Outcome, execute, known, parse_error, prepare, select};
use crate::web::{Reply, Request};

/// Failures of a shard that carry their text are among its first so many rows
/// (`BULK_RESPONSE_MAX_ERRORS_PER_SHARD`).
const TEXTS: usize = 10;

/// Answers a request.
pub(super) fn answer(store: &mut Tables, request: &Request) -> Reply {
    if let Some(required) = &store.authorization
        && request.header("authorization") != Some(required)
    {
        let body = "password authentication failed for user \"crate\"\n";
        return Reply {
            status: 401,
            headers: vec![(
                "www-authenticate".into(),
                "Basic realm=\"CrateDB Authenticator\"".into(),
            )],
            body: body.to_owned(),
        };
    }
    let body: Value = serde_json::from_str(&request.body).unwrap_or_default();
    let Some(sql) = body.get("stmt").and_then(Value::as_str) else {
        return failed(&parse_error(format!(
            "Failed to parse source [{}]",
            request.body
        )));
    };
    let Some(statement) = read(sql) else {
        return failed(&parse_error(format!(
            "line 1:1: mismatched input in '{sql}'"
        )));
    };
    if let Some(rows) = body.get("bulk_args").and_then(Value::as_array) {
        return bulk(store, &statement, rows);
    }
    let none = Vec::new();
    let args = body.get("args").and_then(Value::as_array).unwrap_or(&none);
    match single(store, &statement, args) {
        Ok(body) => Reply::json(200, body),
        Err(error) => failed(&error),
    }
}

fn failed(CrateError(status, code, message): &CrateError) -> Reply {
    let message = Value::String(message.clone());
    Reply::json(
        *status,
        format!("{{\"error\":{{\"message\":{message},\"code\":{code}}}}}"),
    )
}

fn single(store: &mut Tables, statement: &Statement, args: &[Value]) -> Result<String, CrateError> {
    let text = |place: usize| args.get(place).and_then(Value::as_str).unwrap_or_default();
    let name = format!("{}.{}", text(0), text(1));
    match statement {
        Statement::Nothing => Ok(rows(&["1".to_owned()], &[vec!["1".to_owned()]])),
        Statement::Columns => {
            let table = store.tables.get(&name);
            let columns = table.into_iter().flat_map(|table| {
                table.columns.iter().map(|(column, data_type)| {
                    let quoted = |text: &str| Value::String(text.to_owned()).to_string();
                    let nullable = !table.key.contains(column);
                    vec![quoted(column), quoted(data_type), nullable.to_string()]
                })
            });
            let names = ["column_name", "data_type", "is_nullable"].map(str::to_owned);
            Ok(rows(&names, &columns.collect::<Vec<_>>()))
        }
        Statement::Key => {
            let table = store.tables.get(&name);
            let key = table.into_iter().flat_map(|table| &table.key);
            let key = key.map(|column| vec![Value::String(column.clone()).to_string()]);
            Ok(rows(&["column_name".to_owned()], &key.collect::<Vec<_>>()))
        }
        Statement::Create {
            table,
            columns,
            key,
            dynamic,
        } => {
            let there = store.tables.contains_key(table);
            let made = Table {
                columns: columns.clone(),
                key: key.clone(),
                dynamic: *dynamic,
                rows: Vec::new(),
            };
            store.tables.entry(table.clone()).or_insert(made);
            Ok(counted(i64::from(!there)))
        }
        Statement::Add {
            table,
            column,
            data_type,
        } => {
            let found = known(store, table)?;
            if found.data_type(column).is_some() {
                return Err(CrateError(
                    400,
                    4000,
                    format!(
                        "IllegalArgumentException[The table {table} already has a column named {column}]"
                    ),
                ));
            }
            found.columns.push((column.clone(), data_type.clone()));
            Ok(counted(-1))
        }
        Statement::Select {
            columns,
            table,
            keys,
        } => {
            let found = select(known(store, table)?, keys, args)?;
            let picked = found.iter().map(|row| pick(row, columns));
            Ok(rows(columns, &picked.collect::<Vec<_>>()))
        }
        _ => {
            let prepared = prepare(store, statement, args)?;
            let returning = match statement {
                Statement::Insert { returning, .. } | Statement::Update { returning, .. } => {
                    returning.as_slice()
                }
                _ => &[],
            };
            match execute(store, statement, &prepared) {
                Ok(Outcome::Rows(found)) if !returning.is_empty() => Ok(rows(
                    returning,
                    &found
                        .iter()
                        .map(|row| pick(row, returning))
                        .collect::<Vec<_>>(),
                )),
                Ok(Outcome::Rows(found)) => {
                    Ok(counted(i64::try_from(found.len()).unwrap_or_default()))
                }
                Ok(Outcome::Count(count)) => Ok(counted(count)),
                // Alone, what is not there counts 0.
                Err(CrateError(_, 40_411, _)) => Ok(counted(0)),
                Err(error) => Err(error),
            }
        }
    }
}

fn counted(rows: i64) -> String {
    format!("{{\"cols\":[],\"rowcount\":{rows},\"duration\":0.512345}}")
}

fn rows(names: &[String], rows: &[Vec<String>]) -> String {
    let count = rows.len();
    let names: Vec<String> = names
        .iter()
        .map(|n| Value::String(n.clone()).to_string())
        .collect();
    let rows: Vec<String> = rows
        .iter()
        .map(|row| format!("[{}]", row.join(",")))
        .collect();
    format!(
        "{{\"cols\":[{}],\"rows\":[{}],\"rowcount\":{count},\"duration\":0.512345}}",
        names.join(","),
        rows.join(",")
    )
}

fn pick(row: &Row, columns: &[String]) -> Vec<String> {
    let json = |name: &String| row.get(name).map_or_else(|| "null".to_owned(), Cell::json);
    columns.iter().map(json).collect()
}

fn bulk(store: &mut Tables, statement: &Statement, rows: &[Value]) -> Reply {
    let none = Vec::new();
    let mut prepared = Vec::new();
    for row in rows {
        match prepare(store, statement, row.as_array().unwrap_or(&none)) {
            Ok(row) => prepared.push(row),
            Err(error) if store.repeats => return results(&vec![failure(error); rows.len()]),
            Err(error) => return failed(&error),
        }
    }
    let mut seen: HashMap<u64, usize> = HashMap::new();
    let entries: Vec<String> = prepared
        .iter()
        .map(|row| {
            let before = seen.entry(shard(&row.key, store.shards)).or_default();
            let speaks = *before < TEXTS;
            *before += 1;
            match execute(store, statement, row) {
                Ok(Outcome::Count(count)) => format!("{{\"rowcount\":{count}}}"),
                Ok(Outcome::Rows(found)) => format!("{{\"rowcount\":{}}}", found.len()),
                Err(_) if !speaks => "{\"rowcount\":-2}".to_owned(),
                Err(error) => failure(error),
            }
        })
        .collect();
    results(&entries)
}

/// Returns the entry of a row that failed in a bulk.
fn failure(CrateError(_, code, message): CrateError) -> String {
    let message = Value::String(message);
    format!("{{\"rowcount\":-2,\"error\":{{\"code\":{code},\"message\":{message}}}}}")
}

fn results(entries: &[String]) -> Reply {
    let entries = entries.join(",");
    Reply::json(
        200,
        format!("{{\"cols\":[],\"duration\":8.781176,\"results\":[{entries}]}}"),
    )
}
