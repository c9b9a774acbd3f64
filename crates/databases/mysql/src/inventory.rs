//! Lists tables and the keys of their rows, for replicas.

use std::time::Duration;

use async_trait::async_trait;
use mysql_async::{Opts, Row as Cells};
use windrow_core::Row;
use windrow_core::inventory::parents_first;
use windrow_core::{Fault, Inventory, KeyRange, KeyedTable, Name, TableName};
use windrow_database::Options;
use windrow_database::quote::backtick::{push_ident, push_idents, push_table};

use super::catalog::information::about;
use super::catalog::schema;
use super::catalog::table::Facts;
use super::fault::Trouble;
use super::session::Session;
use super::values::cell::{get, text};
use super::values::column::{Column, Kind};
use super::values::decode;
use super::values::encode;

const TABLES: &str = "\
SELECT TABLE_NAME FROM information_schema.TABLES \
WHERE TABLE_SCHEMA = DATABASE() AND TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED') ORDER BY TABLE_NAME";

const REFERENCES: &str = "\
SELECT DISTINCT TABLE_NAME, REFERENCED_TABLE_NAME FROM information_schema.KEY_COLUMN_USAGE \
WHERE TABLE_SCHEMA = DATABASE() AND REFERENCED_TABLE_SCHEMA = DATABASE()";

/// The query of the same user's connections that execute a statement. A connection between two
/// statements of a transaction does not count: without its client it can only be rolled back.
///
/// `INNODB_TRX` is not reliable: the server does not update it while it is read more often than
/// every 100 ms, and gives all transactions that have not written yet the number 0.
const STATEMENTS: &str = "\
SELECT CAST(ID AS CHAR) FROM information_schema.PROCESSLIST \
WHERE COMMAND IN ('Query', 'Execute', 'Killed') AND ID <> CONNECTION_ID() \
AND USER = SUBSTRING_INDEX(USER(), '@', 1)";

/// The interval between two checks that statements have ended.
const LOOK: Duration = Duration::from_millis(20);

/// The tables of a MySQL or MariaDB database.
pub(super) struct MysqlInventory {
    opts: Opts,
    options: Options,
}

impl MysqlInventory {
    pub(super) fn new(opts: &Opts, options: &Options) -> Self {
        Self {
            opts: opts.clone(),
            options: options.clone(),
        }
    }

    async fn session(&self) -> Result<Session, Fault> {
        Session::connect(&self.opts, None, &self.options).await
    }
}

#[async_trait]
impl Inventory for MysqlInventory {
    fn has_schemas(&self) -> bool {
        true
    }

    async fn tables(&self) -> Result<Vec<TableName>, Fault> {
        let mut session = self.session().await?;
        let told = tables(&mut session).await;
        session.close().await;
        told.map_err(Trouble::into_fault)
    }

    async fn table(&self, name: &TableName) -> Result<Option<KeyedTable>, Fault> {
        let mut session = self.session().await?;
        let described = describe(&mut session, name).await;
        session.close().await;
        described.map_err(Trouble::into_fault)
    }

    async fn rows(
        &self,
        table: &KeyedTable,
        columns: &[Name],
        range: KeyRange<'_>,
        most: usize,
    ) -> Result<Vec<Row>, Fault> {
        let mut session = self.session().await?;
        let rows = rows(&mut session, table, columns, range, most).await;
        session.close().await;
        rows
    }

    async fn settled(&self) -> Result<(), Fault> {
        let mut session = self.session().await?;
        let mut left = executing(&mut session).await?;
        while !left.is_empty() {
            tokio::time::sleep(LOOK).await;
            let now = executing(&mut session).await?;
            left.retain(|id| now.contains(id));
        }
        session.close().await;
        Ok(())
    }
}

async fn executing(session: &mut Session) -> Result<Vec<String>, Fault> {
    let rows = session.rows(STATEMENTS).await;
    let rows = rows.map_err(Trouble::into_fault)?;
    Ok(rows.iter().map(|row| text(row, 0)).collect())
}

async fn tables(session: &mut Session) -> Result<Vec<TableName>, Trouble> {
    let name = |row: &Cells, place| TableName::bare(text(row, place));
    let tables = session.rows(TABLES).await?;
    let tables = tables.iter().map(|row| name(row, 0)).collect();
    let references = session.rows(REFERENCES).await?;
    let references = references.iter().map(|row| (name(row, 0), name(row, 1)));
    Ok(parents_first(tables, &references.collect::<Vec<_>>()))
}

async fn describe(session: &mut Session, name: &TableName) -> Result<Option<KeyedTable>, Trouble> {
    let Some(facts) = schema::read(session, name).await? else {
        return Ok(None);
    };
    let what = "TABLE_NAME, TABLE_SCHEMA = DATABASE(), TABLE_SCHEMA";
    let rows = session
        .rows(&about("TABLES", what, "TABLE", name, ""))
        .await?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let is_here = get::<u8>(row, 1) == Some(1);
    let before = " AND ACTION_TIMING = 'BEFORE'";
    let triggers = about("TRIGGERS", "COUNT(*)", "EVENT_OBJECT", name, before);
    let triggers = session.rows(&triggers).await?;
    let hooked = triggers.first().and_then(|row| get::<u64>(row, 0)) > Some(0);
    let key = key_columns(&facts);
    let generated = facts.columns.iter().filter(|column| column.generated);
    Ok(Some(KeyedTable {
        name: TableName {
            schema: (!is_here).then(|| text(row, 2).into()),
            table: text(row, 0).into(),
        },
        keeps_key: !hooked && key.iter().all(|column| keeps(column)),
        key: key.iter().map(|column| column.name.clone()).collect(),
        columns: facts.columns.iter().map(|c| c.name.clone()).collect(),
        generated: generated.map(|column| column.name.clone()).collect(),
    }))
}

fn key_columns(facts: &Facts) -> Vec<&Column> {
    let primary = facts.uniques.iter().find(|unique| unique.primary);
    let places = primary.map(|unique| &*unique.columns).unwrap_or_default();
    places
        .iter()
        .filter_map(|p| facts.columns.get(*p))
        .collect()
}

/// Returns true if the table stores given values unchanged, or refuses them.
fn keeps(column: &Column) -> bool {
    use Kind::{Binary, Bool, Char, Date, Enum, Int, Text};
    matches!(column.kind, Int | Bool | Char | Text | Enum | Date | Binary)
}

async fn rows(
    session: &mut Session,
    table: &KeyedTable,
    columns: &[Name],
    range: KeyRange<'_>,
    most: usize,
) -> Result<Vec<Row>, Fault> {
    let facts = schema::read(session, &table.name).await;
    let Some(facts) = facts.map_err(Trouble::into_fault)? else {
        return Ok(Vec::new());
    };
    let mut sql = "SELECT ".to_owned();
    push_idents(&mut sql, columns);
    sql.push_str(" FROM ");
    push_table(&mut sql, &table.name);
    let key = key_columns(&facts);
    let (mut cells, mut word) = (Vec::new(), "WHERE");
    for (sign, values) in [(">", range.after), ("<", range.to)] {
        let Some(values) = values else { continue };
        sql.push_str(&format!(" {word} "));
        push_bound(&mut sql, &key, sign);
        for last in (0..key.len()).rev() {
            for (column, value) in key.iter().zip(values).take(last + 1) {
                cells.push(encode::stored(&table.name, column, value)?);
            }
        }
        word = "AND";
    }
    sql.push_str(" ORDER BY ");
    push_idents(&mut sql, key.iter().map(|column| &column.name));
    sql.push_str(&format!(" LIMIT {most}"));
    let fetched = session.fetch(&sql, cells, usize::MAX).await;
    let fetched = fetched.map_err(Trouble::into_fault)?;
    let kind = |name: &Name| {
        facts
            .columns
            .iter()
            .find(|c| c.name == *name)
            .map(|c| c.kind)
    };
    let kinds: Vec<Option<Kind>> = columns.iter().map(kind).collect();
    let row = |cells: Vec<mysql_async::Value>| {
        let cells = cells.into_iter().zip(fetched.columns.iter()).zip(&kinds);
        cells
            .map(|((cell, shown), kind)| decode::value(shown, *kind, cell))
            .collect()
    };
    Ok(fetched.rows.into_iter().map(row).collect())
}

/// Writes the condition of the rows after a key (`>`), or up to and including it (`<`). The columns
/// are compared one by one: the server uses no index for a comparison of row values.
fn push_bound(sql: &mut String, key: &[&Column], sign: &str) {
    sql.push('(');
    for last in (0..key.len()).rev() {
        sql.push_str(if last + 1 < key.len() { " OR (" } else { "(" });
        for (place, column) in key.iter().enumerate().take(last + 1) {
            sql.push_str(if place > 0 { " AND " } else { "" });
            push_ident(sql, &column.name);
            sql.push_str(match (place < last, sign) {
                (true, _) => " = ?",
                (false, "<") if last + 1 == key.len() => " <= ?",
                (false, "<") => " < ?",
                (false, _) => " > ?",
            });
        }
        sql.push(')');
    }
    sql.push(')');
}
