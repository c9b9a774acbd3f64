//! Reads the descriptions of tables, once for each version of the schema.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension as _, Result};
use windrow_core::{Name, TableName};

use super::definition::is_marked;
use super::sharing::{SchemaTexts, Sharing};
use super::standings::Standings;
use super::table::{Column, MomentKey, Table};
use crate::values::column::ColumnType;

/// The largest number of tables that are kept, found or not. After that all are dropped.
const TABLES: usize = 1024;

/// The tables read since the last change of the schema.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    version: Option<i64>,
    tables: HashMap<TableName, Option<Arc<Table>>>,
    texts: Option<SchemaTexts>,
    sharings: HashMap<TableName, Arc<Sharing>>,
    standings: Arc<Standings>,
    /// The column of new tables for the moment of each row.
    pub(crate) received_at: Option<Name>,
}

impl Catalog {
    /// Returns a catalog that reports to operators which tables share transactions. `received_at`
    /// is that of [`crate::Options::received_at`].
    pub(crate) fn telling(standings: Arc<Standings>, received_at: Option<Name>) -> Self {
        Self {
            standings,
            received_at,
            ..Self::default()
        }
    }

    /// Drops everything and returns true if this or another process has changed the schema. Called
    /// within the transaction that uses the descriptions.
    pub(crate) fn refresh(&mut self, connection: &Connection) -> Result<bool> {
        let mut ask = connection.prepare_cached("PRAGMA schema_version")?;
        let version = ask.query_row([], |row| row.get::<_, i64>(0))?;
        let changed = self.version != Some(version);
        if changed {
            self.forget();
            self.version = Some(version);
        }
        Ok(changed)
    }

    /// Drops everything.
    pub(crate) fn forget(&mut self) {
        self.tables.clear();
        self.version = None;
        self.texts = None;
        self.sharings.clear();
        self.standings.clear();
    }

    /// Returns the isolation of writes to a table.
    pub(crate) fn sharing(
        &mut self,
        connection: &Connection,
        name: &TableName,
    ) -> Result<Arc<Sharing>> {
        if let Some(known) = self.sharings.get(name) {
            return Ok(known.clone());
        }
        let texts = match self.texts.take() {
            Some(texts) => texts,
            None => SchemaTexts::read(connection)?,
        };
        let sharing = Arc::new(self.texts.insert(texts).sharing(name));
        if self.sharings.len() >= TABLES {
            self.sharings.clear();
            self.standings.clear();
        }
        if self.table(connection, name)?.is_some() {
            self.standings.put(name, sharing.clone());
        }
        self.sharings.insert(name.clone(), sharing.clone());
        Ok(sharing)
    }

    /// Returns the table of that name, if it exists.
    pub(crate) fn table(
        &mut self,
        connection: &Connection,
        name: &TableName,
    ) -> Result<Option<Arc<Table>>> {
        if let Some(known) = self.tables.get(name) {
            return Ok(known.clone());
        }
        let table = load(connection, name)?.map(Arc::new);
        if self.tables.len() >= TABLES {
            self.tables.clear();
        }
        self.tables.insert(name.clone(), table.clone());
        Ok(table)
    }
}

/// Reads a table. Windrow's connection has no schema but `main`. Tables that exist in no schema,
/// such as the table-valued functions of PRAGMAs, are left out.
fn load(connection: &Connection, name: &TableName) -> Result<Option<Table>> {
    if let Some(schema) = &name.schema
        && !schema.eq_ignore_ascii_case("main")
    {
        return Ok(None);
    }
    let found = connection
        .prepare_cached(
            "SELECT name, coalesce(sql, '') FROM main.sqlite_schema
             WHERE type IN ('table', 'view') AND name = ?1 COLLATE NOCASE",
        )?
        .query_row([&*name.table], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
        })
        .optional()?;
    let Some((name, sql)) = found else {
        return Ok(None);
    };
    let (plain, view, strict) = connection
        .prepare_cached(
            "SELECT type = 'table', type = 'view', strict FROM pragma_table_list(?1) WHERE schema = 'main'",
        )?
        .query_row([&name], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?
        .unwrap_or_default();
    let (mut columns, primary) = columns(connection, &name, strict)?;
    let made = plain && is_marked(&name, &sql);
    for column in columns.iter_mut().filter(|_| made) {
        column.column_type = column.column_type.of_made();
    }
    let place = |unique: &String| columns.iter().position(|column| *column.name == **unique);
    let uniques = unique_indexes(connection, &name)?;
    let uniques = uniques
        .iter()
        .filter_map(|unique| unique.iter().map(place).collect());
    Ok(Some(Table {
        uniques: uniques.collect(),
        moment_keys: moment_keys(connection, &name)?,
        made,
        name: name.into(),
        columns,
        primary,
        strict,
        plain,
        view,
    }))
}

/// Reads the columns of each unique index that is neither the primary key, nor partial, nor over
/// expressions.
pub(crate) fn unique_indexes(connection: &Connection, table: &str) -> Result<Vec<Vec<String>>> {
    let mut ask = connection.prepare_cached(
        r#"SELECT name FROM pragma_index_list(?1, 'main') WHERE "unique" AND NOT partial AND origin <> 'pk'"#,
    )?;
    let indexes = ask.query_map([table], |row| row.get::<_, String>(0))?;
    let mut uniques = Vec::new();
    for index in indexes {
        let mut ask = connection
            .prepare_cached("SELECT name FROM pragma_index_info(?1, 'main') ORDER BY seqno")?;
        let names = ask.query_map([index?], |row| row.get::<_, Option<String>>(0))?;
        // Columns that are expressions have no names.
        uniques.extend(names.collect::<Result<Option<Vec<String>>>>()?);
    }
    Ok(uniques)
}

/// Reads the unique keys with a column whose default is the current time in milliseconds. A default
/// in seconds makes rows collide without Windrow too.
fn moment_keys(connection: &Connection, table: &str) -> Result<Vec<MomentKey>> {
    let mut ask = connection.prepare_cached(
        "SELECT i.name, c.name, t.dflt_value LIKE '%subsec%'
             OR t.dflt_value LIKE '%|%f%' ESCAPE '|' OR t.dflt_value LIKE '%julianday%'
         FROM pragma_index_list(?1, 'main') i, pragma_index_info(i.name, 'main') c
         JOIN pragma_table_xinfo(?1, 'main') t ON t.name = c.name
         WHERE i.\"unique\" ORDER BY i.seq",
    )?;
    let mut rows = ask.query([table])?;
    let mut keys: Vec<(String, MomentKey)> = Vec::new();
    while let Some(row) = rows.next()? {
        let index: String = row.get(0)?;
        if keys.last().is_none_or(|(last, _)| *last != index) {
            keys.push((index, MomentKey::default()));
        }
        let Some((_, key)) = keys.last_mut() else {
            continue;
        };
        let columns = match row.get::<_, Option<bool>>(2)? {
            Some(true) => &mut key.moments,
            _ => &mut key.others,
        };
        columns.push(row.get::<_, String>(1)?.into());
    }
    let keys = keys.into_iter().map(|(_, key)| key);
    Ok(keys.filter(|key| !key.moments.is_empty()).collect())
}

/// Returns the columns, and the places of those of the primary key.
fn columns(
    connection: &Connection,
    table: &str,
    strict: bool,
) -> Result<(Vec<Column>, Vec<usize>)> {
    // Hidden: 1 is a hidden column of a virtual table, 2 and 3 are generated ones.
    let mut ask = connection.prepare_cached(
        r#"SELECT name, type, pk FROM pragma_table_xinfo(?1, 'main') WHERE hidden <> 1 ORDER BY cid"#,
    )?;
    let mut rows = ask.query([table])?;
    let (mut columns, mut primary) = (Vec::new(), Vec::new());
    while let Some(row) = rows.next()? {
        let declared: Option<String> = row.get(1)?;
        let in_key: i64 = row.get(2)?;
        if in_key > 0 {
            primary.push((in_key, columns.len()));
        }
        columns.push(Column {
            name: row.get::<_, String>(0)?.into(),
            column_type: ColumnType::declared(declared.as_deref().unwrap_or_default(), strict),
        });
    }
    primary.sort_unstable();
    Ok((columns, primary.into_iter().map(|(_, at)| at).collect()))
}
