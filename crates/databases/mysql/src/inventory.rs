//! Which tables there are, and what names their rows, for replicas.

use std::time::Duration;

use async_trait::async_trait;
use mysql_async::{Opts, Row as Cells};
use windrow_core::inventory::parents_first;
use windrow_core::write::Row;
use windrow_core::{Fault, Inventory, KeyedTable, TableName, Value};
use windrow_database::Options;
use windrow_database::quote::backtick::{push_ident, push_table};

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

/// The transactions that are under way. Who may not see all of them (the right PROCESS) sees the
/// statements of its own user.
const TRANSACTIONS: &str = "SELECT CAST(trx_id AS CHAR) FROM information_schema.INNODB_TRX";
const STATEMENTS: &str = "\
SELECT CAST(ID AS CHAR) FROM information_schema.PROCESSLIST \
WHERE COMMAND <> 'Sleep' AND ID <> CONNECTION_ID() AND USER <> 'system user' AND COMMAND <> 'Daemon'";

/// How often is looked whether transactions have ended.
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

    async fn keys(
        &self,
        table: &KeyedTable,
        after: Option<&[Value]>,
        most: usize,
    ) -> Result<Vec<Row>, Fault> {
        let mut session = self.session().await?;
        let keys = keys(&mut session, table, after, most).await;
        session.close().await;
        keys
    }

    async fn settled(&self) -> Result<(), Fault> {
        let mut session = self.session().await?;
        let (mut sql, mut seen) = (TRANSACTIONS, session.rows(TRANSACTIONS).await);
        if matches!(&seen, Err(Trouble::Refused(_))) {
            sql = STATEMENTS;
            seen = session.rows(sql).await;
        }
        let ids = |rows: &[Cells]| -> Vec<String> { rows.iter().map(|row| text(row, 0)).collect() };
        let mut left = ids(&seen.map_err(Trouble::into_fault)?);
        while !left.is_empty() {
            tokio::time::sleep(LOOK).await;
            let now = ids(&session.rows(sql).await.map_err(Trouble::into_fault)?);
            left.retain(|id| now.contains(id));
        }
        session.close().await;
        Ok(())
    }
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

/// Whether what is given is stored as it is, or refused.
fn keeps(column: &Column) -> bool {
    use Kind::{Binary, Bool, Char, Date, Enum, Int, Text};
    matches!(column.kind, Int | Bool | Char | Text | Enum | Date | Binary)
}

async fn keys(
    session: &mut Session,
    table: &KeyedTable,
    after: Option<&[Value]>,
    most: usize,
) -> Result<Vec<Row>, Fault> {
    let facts = schema::read(session, &table.name).await;
    let Some(facts) = facts.map_err(Trouble::into_fault)? else {
        return Ok(Vec::new());
    };
    let columns = key_columns(&facts);
    let names: Vec<String> = columns.iter().map(|column| quoted(column)).collect();
    let list = names.join(", ");
    let mut sql = format!("SELECT {list} FROM ");
    push_table(&mut sql, &table.name);
    let mut cells = Vec::new();
    if let Some(after) = after {
        sql.push_str(" WHERE ");
        // Written out: the server does not look rows up by a comparison of several columns at once.
        for last in (0..names.len()).rev() {
            sql.push_str(if last + 1 < names.len() { " OR (" } else { "(" });
            for (place, name) in names.iter().enumerate().take(last + 1) {
                let sign = if place < last { "=" } else { ">" };
                sql.push_str(if place > 0 { " AND " } else { "" });
                sql.push_str(&format!("{name} {sign} ?"));
                if let (Some(column), Some(value)) = (columns.get(place), after.get(place)) {
                    cells.push(encode::stored(&table.name, column, value)?);
                }
            }
            sql.push(')');
        }
    }
    sql.push_str(&format!(" ORDER BY {list} LIMIT {most}"));
    let fetched = session.fetch(&sql, cells, usize::MAX).await;
    let fetched = fetched.map_err(Trouble::into_fault)?;
    let row = |cells: Vec<mysql_async::Value>| {
        let cells = cells.into_iter().zip(fetched.columns.iter()).zip(&columns);
        cells
            .map(|((cell, shown), column)| decode::value(shown, Some(column.kind), cell))
            .collect()
    };
    Ok(fetched.rows.into_iter().map(row).collect())
}

fn quoted(column: &Column) -> String {
    let mut name = String::new();
    push_ident(&mut name, &column.name);
    name
}
