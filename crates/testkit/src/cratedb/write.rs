//! The effects of statements on tables.

use serde_json::Value;

use super::cell::Cell;
use super::sql::{Conflict, Statement};
use super::store::{Row, Table, Tables};

const DUPLICATE: &str =
    "DuplicateKeyException[A document with the same primary key exists already]";

/// An error: HTTP status, code, message.
pub(super) struct CrateError(pub(super) u16, pub(super) i64, pub(super) String);

/// The result of one row.
pub(super) enum Outcome {
    Count(i64),
    Rows(Vec<Row>),
}

type Ran = Result<Outcome, CrateError>;

pub(super) fn parse_error(what: impl AsRef<str>) -> CrateError {
    CrateError(400, 4000, format!("SQLParseException[{}]", what.as_ref()))
}

fn no_column(name: &str) -> CrateError {
    let message = format!("ColumnUnknownException[Column {name} unknown]");
    CrateError(404, 4043, message)
}

/// A row whose values have been read.
pub(super) struct Prepared {
    values: Vec<(String, Cell)>,
    /// Values that identify the row.
    pub(super) key: Vec<(String, Cell)>,
}

pub(super) fn known<'s>(store: &'s mut Tables, table: &str) -> Result<&'s mut Table, CrateError> {
    let unknown = || {
        CrateError(
            404,
            4041,
            format!("RelationUnknown[Relation '{table}' unknown]"),
        )
    };
    store.tables.get_mut(table).ok_or_else(unknown)
}

/// Reads the values of a row: what fails here fails before anything is stored.
pub(super) fn prepare(
    store: &mut Tables,
    statement: &Statement,
    args: &[Value],
) -> Result<Prepared, CrateError> {
    let (table, columns, key) = match statement {
        Statement::Insert { table, columns, .. } => (table, columns.as_slice(), &[][..]),
        Statement::Update {
            table,
            columns,
            key,
            ..
        } => (table, columns.as_slice(), key.as_slice()),
        Statement::Delete { table, key } => (table, &[][..], key.as_slice()),
        _ => {
            return Err(parse_error(
                "Bulk operations for statements that return result sets is not supported",
            ));
        }
    };
    let table = known(store, table)?;
    let mut cells = Vec::new();
    for (place, name) in columns.iter().chain(key).enumerate() {
        let value = args.get(place).unwrap_or(&Value::Null);
        let data_type = match table.data_type(name) {
            Some(data_type) => data_type.to_owned(),
            None if table.dynamic && place < columns.len() => Cell::type_of(value).to_owned(),
            None => {
                return Err(no_column(name));
            }
        };
        cells.push((
            name.clone(),
            Cell::cast(value, &data_type).map_err(parse_error)?,
        ));
    }
    let mut found = cells.split_off(columns.len());
    if let Statement::Insert { .. } = statement {
        let row: Row = cells.iter().cloned().collect();
        found = table.key_of(&row);
        if found.iter().any(|(_, cell)| *cell == Cell::Null) {
            return Err(parse_error("A primary key value must not be NULL"));
        }
    } else if columns.iter().any(|name| table.key.contains(name)) {
        let message = "ColumnValidationException[Validation failed for id: Updating a primary key is not supported]";
        return Err(CrateError(400, 4003, message.to_owned()));
    }
    Ok(Prepared {
        values: cells,
        key: found,
    })
}

pub(super) fn execute(store: &mut Tables, statement: &Statement, row: &Prepared) -> Ran {
    match statement {
        Statement::Insert {
            table, conflict, ..
        } => insert(known(store, table)?, conflict, row),
        Statement::Update { table, .. } => {
            let table = known(store, table)?;
            let place = table.find(&row.key).ok_or_else(|| missing(&row.key))?;
            Ok(Outcome::Rows(change(table, place, &row.values)))
        }
        Statement::Delete { table, .. } => {
            let table = known(store, table)?;
            let place = table.find(&row.key).ok_or_else(|| missing(&row.key))?;
            table.rows.remove(place);
            Ok(Outcome::Count(1))
        }
        _ => Err(parse_error("not a write")),
    }
}

fn missing(key: &[(String, Cell)]) -> CrateError {
    let id: Vec<String> = key.iter().map(|(_, cell)| cell.json()).collect();
    let message = format!(
        "DocumentMissingException[[{}]: document missing]",
        id.join(",")
    );
    CrateError(404, 40_411, message)
}

fn insert(table: &mut Table, conflict: &Conflict, row: &Prepared) -> Ran {
    let there = (!row.key.is_empty())
        .then(|| table.find(&row.key))
        .flatten();
    match (there, conflict) {
        (None, _) => {
            for (name, cell) in &row.values {
                if table.data_type(name).is_none() {
                    let value: Value = serde_json::from_str(&cell.json()).unwrap_or_default();
                    table
                        .columns
                        .push((name.clone(), Cell::type_of(&value).to_owned()));
                }
            }
            let stored: Row = row.values.iter().cloned().collect();
            table.rows.push(stored.clone());
            Ok(Outcome::Rows(vec![stored]))
        }
        (Some(_), Conflict::Fail) => Err(CrateError(409, 4091, DUPLICATE.to_owned())),
        (Some(_), Conflict::Nothing) => Ok(Outcome::Count(0)),
        (Some(place), Conflict::Update(names)) => {
            let named = row.values.iter().filter(|(name, _)| names.contains(name));
            let values: Vec<(String, Cell)> = named.cloned().collect();
            Ok(Outcome::Rows(change(table, place, &values)))
        }
    }
}

fn change(table: &mut Table, place: usize, values: &[(String, Cell)]) -> Vec<Row> {
    let row = table.rows.get_mut(place);
    row.map(|row| {
        row.extend(values.iter().cloned());
        row.clone()
    })
    .into_iter()
    .collect()
}

pub(super) fn select(
    table: &Table,
    keys: &[Vec<String>],
    args: &[Value],
) -> Result<Vec<Row>, CrateError> {
    let mut args = args.iter();
    let mut found: Vec<Row> = Vec::new();
    if keys.is_empty() {
        return Ok(table.rows.clone());
    }
    for key in keys {
        let mut wanted = Vec::new();
        for name in key {
            let data_type = table.data_type(name).ok_or_else(|| no_column(name))?;
            let value = args.next().unwrap_or(&Value::Null);
            wanted.push((
                name.clone(),
                Cell::cast(value, data_type).map_err(parse_error)?,
            ));
        }
        let same = |row: &&Row| {
            wanted
                .iter()
                .all(|(name, cell)| row.get(name) == Some(cell))
        };
        for row in table.rows.iter().filter(same) {
            if !found.contains(row) {
                found.push(row.clone());
            }
        }
    }
    Ok(found)
}
