//! Describes tables and counts the rows of a move.

use rusqlite::{Connection, OptionalExtension as _};
use windrow_core::moves::{Referrer, TableFacts, Takes};
use windrow_core::{Fault, FaultClass, MovePlan, Name, TableName};
use windrow_database::moved::push_filter;

use super::effects;
use super::text::{push_route, push_table};
use crate::catalog::cache::unique_indexes;
use crate::fault::Failure;
use crate::values::column::ColumnType;

/// Names of a row's number, unless columns have them (<https://sqlite.org/rowidtable.html>).
const ROW_NUMBERS: [&str; 3] = ["rowid", "oid", "_rowid_"];

/// A table.
#[derive(Debug)]
pub(super) struct Facts {
    /// The name as it was created.
    pub(super) name: Name,
    /// The text by which it was created.
    pub(super) sql: String,
    pub(super) columns: Vec<MovedColumn>,
    pub(super) primary: Vec<Name>,
    uniques: Vec<Vec<Name>>,
    effects: Vec<Box<str>>,
    referrers: Vec<Referrer>,
    without_row_number: bool,
}

#[derive(Debug)]
pub(super) struct MovedColumn {
    pub(super) name: Name,
    pub(super) column_type: ColumnType,
    not_null: bool,
    generated: bool,
    has_default: bool,
    /// True if it is declared as `INTEGER`: if such a column is the only one of the primary key of
    /// an ordinary table, it is another name of the row's number.
    integer: bool,
}

/// Reads a table; `None` if there is none of that name.
///
/// # Errors
/// [`FaultClass::Unsupported`] for views and virtual tables; SQLite's own errors.
pub(super) fn read(connection: &Connection, name: &TableName) -> Result<Option<Facts>, Failure> {
    if let Some(schema) = &name.schema
        && !schema.eq_ignore_ascii_case("main")
    {
        return Ok(None);
    }
    let found = connection
        .query_row(
            "SELECT s.name, coalesce(s.sql, ''), l.type, l.wr, l.strict
             FROM main.sqlite_schema s JOIN pragma_table_list l ON l.schema = 'main' AND l.name = s.name
             WHERE s.type IN ('table', 'view') AND s.name = ?1 COLLATE NOCASE",
            [&*name.table],
            |row| {
                Ok((
                    row.get::<_, String>(0)?,
                    row.get::<_, String>(1)?,
                    row.get::<_, String>(2)?,
                    row.get::<_, bool>(3)?,
                    row.get::<_, bool>(4)?,
                ))
            },
        )
        .optional()?;
    let Some((own, sql, kind, without_row_number, strict)) = found else {
        return Ok(None);
    };
    if kind != "table" {
        let message = format!("{name} is no ordinary table: {kind}");
        let fault = Fault::new(FaultClass::Unsupported, "0A000", message);
        return Err(Failure::of_write(fault));
    }
    let (columns, primary) = columns(connection, &own, strict)?;
    let mut facts = Facts {
        name: own.into(),
        sql,
        columns,
        primary,
        uniques: Vec::new(),
        effects: Vec::new(),
        referrers: Vec::new(),
        without_row_number,
    };
    facts.uniques = facts.uniques(connection)?;
    facts.effects = effects::read(connection, &facts.name)?;
    facts.referrers = effects::referrers(connection, &facts.name)?;
    Ok(Some(facts))
}

fn columns(
    connection: &Connection,
    table: &str,
    strict: bool,
) -> rusqlite::Result<(Vec<MovedColumn>, Vec<Name>)> {
    // Hidden: 2 and 3 are generated columns.
    let mut ask = connection.prepare(
        r#"SELECT name, coalesce(type, ''), "notnull", pk, hidden, coalesce(dflt_value, 'NULL') FROM pragma_table_xinfo(?1, 'main')
           WHERE hidden <> 1 ORDER BY cid"#,
    )?;
    let mut rows = ask.query([table])?;
    let (mut columns, mut primary) = (Vec::new(), Vec::new());
    while let Some(row) = rows.next()? {
        let name: Name = row.get::<_, String>(0)?.into();
        let place: i64 = row.get(3)?;
        let declared: String = row.get(1)?;
        let default: String = row.get(5)?;
        if place > 0 {
            primary.push((place, name.clone()));
        }
        columns.push(MovedColumn {
            column_type: ColumnType::declared(&declared, strict),
            not_null: row.get(2)?,
            integer: declared.eq_ignore_ascii_case("INTEGER"),
            has_default: !default.eq_ignore_ascii_case("NULL"),
            generated: row.get::<_, i64>(4)? > 1,
            name,
        });
    }
    primary.sort_unstable();
    let primary = primary.into_iter().map(|(_, name)| name).collect();
    Ok((columns, primary))
}

impl Facts {
    pub(super) fn column(&self, name: &str) -> Option<&MovedColumn> {
        let mut columns = self.columns.iter();
        columns.find(|column| column.name.eq_ignore_ascii_case(name))
    }

    /// Returns the unique keys. A primary key may hold NULL, and a row with it is refused.
    fn uniques(&self, connection: &Connection) -> rusqlite::Result<Vec<Vec<Name>>> {
        let mut uniques = Vec::new();
        if !self.primary.is_empty() {
            uniques.push(self.primary.clone());
        }
        let plain = |name: &String| {
            let column = self.column(name)?;
            column.not_null.then(|| column.name.clone())
        };
        for names in unique_indexes(connection, &self.name)? {
            uniques.extend(names.iter().map(plain).collect::<Option<Vec<Name>>>());
        }
        Ok(uniques)
    }

    /// Returns the columns of the primary key that may be NULL
    /// (<https://sqlite.org/lang_createtable.html#the_primary_key>).
    fn nullable(&self) -> Vec<Name> {
        let sure = |column: &MovedColumn| {
            column.not_null || self.without_row_number || self.counts(column)
        };
        let columns = self.primary.iter().filter_map(|name| self.column(name));
        let nullable = columns.filter(|column| !sure(column));
        nullable.map(|column| column.name.clone()).collect()
    }

    fn takes(&self) -> Vec<(Name, Takes)> {
        let takes = |column: &MovedColumn| match column.column_type {
            ColumnType::Blob => Some(Takes::BytesOrTexts),
            ColumnType::Real => Some(Takes::Double),
            _ => None,
        };
        let columns = self.columns.iter();
        let named = columns.filter_map(|column| Some((column.name.clone(), takes(column)?)));
        named.collect()
    }

    /// Returns true if a column is another name of the row's number.
    fn counts(&self, column: &MovedColumn) -> bool {
        column.integer && !self.without_row_number && self.primary == [column.name.clone()]
    }

    /// Returns the columns that identify the table's rows within a transaction.
    ///
    /// # Errors
    /// [`FaultClass::Unsupported`] if columns use up all names of the row's number.
    pub(super) fn locator(&self) -> Result<Vec<Name>, Fault> {
        if self.without_row_number {
            return Ok(self.primary.clone());
        }
        let free = |name: &&&str| self.column(name).is_none();
        match ROW_NUMBERS.iter().find(free) {
            Some(name) => Ok(vec![Name::from(*name)]),
            None => Err(Fault::new(
                FaultClass::Unsupported,
                "0A000",
                format!(
                    "columns of {} are called rowid, oid and _rowid_, so its row numbers have no name",
                    self.name
                ),
            )),
        }
    }

    /// Returns the description as a move uses it. `place` is the file's.
    pub(super) fn outside(&self, place: &str) -> TableFacts {
        let generated = self.columns.iter().filter(|column| column.generated);
        let required = |column: &&MovedColumn| {
            column.not_null && !column.has_default && !column.generated && !self.counts(column)
        };
        TableFacts {
            identity: format!("{place} {:?}", self.name.to_lowercase()),
            columns: self.columns.iter().map(|c| c.name.clone()).collect(),
            generated: generated.map(|column| column.name.clone()).collect(),
            key: self.primary.clone(),
            uniques: self.uniques.clone(),
            nullable: self.nullable(),
            takes: self.takes(),
            spelled: Some(self.name.clone()),
            effects: self.effects.clone(),
            referrers: self.referrers.clone(),
            required: self
                .columns
                .iter()
                .filter(required)
                .map(|column| column.name.clone())
                .collect(),
        }
    }
}

/// Values of a route, and the number of rows of each.
type Counts = Vec<(Option<Box<str>>, u64)>;

/// Counts rows by route. Routes are compared by their bytes.
pub(super) fn count(
    connection: &Connection,
    plan: &MovePlan,
    most: usize,
) -> Result<Counts, Failure> {
    let mut sql = "SELECT ".to_owned();
    match &plan.route {
        Some(route) => push_route(&mut sql, "", route),
        None => sql.push_str("NULL"),
    }
    sql.push_str(" AS windrow_route, count(*) FROM ");
    push_table(&mut sql, &plan.source.table);
    push_filter(&mut sql, plan.filter.as_deref());
    if plan.route.is_some() {
        sql.push_str(&format!(
            " GROUP BY windrow_route COLLATE BINARY ORDER BY windrow_route COLLATE BINARY LIMIT {most}"
        ));
    }
    let mut ask = connection.prepare(&sql)?;
    let rows = ask.query_map([], |row| {
        let route = row.get_ref(0)?.as_bytes_or_null()?;
        // Like NULL, a route that is not text names no table.
        let route = route
            .and_then(|text| str::from_utf8(text).ok())
            .map(Box::from);
        Ok((route, row.get::<_, i64>(1)?.unsigned_abs()))
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
