//! Lists tables and their rows.

use std::time::Duration;

use async_trait::async_trait;
use mysql_async::Row as Cells;
use windrow_core::Row;
use windrow_core::inventory::parents_first;
use windrow_core::{Fault, Inventory, KeyedTable, Name, RowPage, TableName, Value};
use windrow_database::page::{PageSql, PageStyle};
use windrow_database::quote::backtick::{push_ident, push_idents, push_table};
use windrow_database::shape_faults::no_column;

use super::catalog::information::about;
use super::catalog::schema;
use super::catalog::table::Facts;
use super::fault::Trouble;
use super::server::MysqlServer;
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

/// The server uses no index for a comparison of row values.
const STYLE: PageStyle = PageStyle {
    push_ident,
    is_numbered: false,
    compares_rows: false,
};

/// The interval between two checks that statements have ended.
const LOOK: Duration = Duration::from_millis(20);

#[async_trait]
impl Inventory for MysqlServer {
    fn has_schemas(&self) -> bool {
        true
    }

    async fn tables(&self) -> Result<Vec<TableName>, Fault> {
        let mut session = self.connect().await?;
        let told = tables(&mut session).await;
        session.close().await;
        Ok(told?)
    }

    async fn table(&self, name: &TableName) -> Result<Option<KeyedTable>, Fault> {
        let mut session = self.connect().await?;
        let described = describe(&mut session, name).await;
        session.close().await;
        Ok(described?)
    }

    async fn rows(&self, page: &RowPage<'_>) -> Result<Vec<Row>, Fault> {
        let mut session = self.connect().await?;
        let rows = rows(&mut session, page).await;
        session.close().await;
        rows
    }

    async fn settled(&self) -> Result<(), Fault> {
        let mut session = self.connect().await?;
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
    let rows = session.rows(STATEMENTS).await?;
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

async fn rows(session: &mut Session, page: &RowPage<'_>) -> Result<Vec<Row>, Fault> {
    let Some(facts) = schema::read(session, page.table).await? else {
        return Ok(Vec::new());
    };
    let column = |name: &Name| facts.columns.iter().find(|column| column.name == *name);
    let mut sql = "SELECT ".to_owned();
    push_idents(&mut sql, page.columns);
    sql.push_str(" FROM ");
    push_table(&mut sql, page.table);
    let rest = PageSql::of(page, STYLE);
    sql.push_str(&rest.text);
    let cell = |(name, value): &(&Name, &Value)| {
        let column = column(name).ok_or_else(|| no_column(page.table, name))?;
        encode::stored(page.table, column, value)
    };
    let cells = rest.values.iter().map(cell);
    let cells = cells.collect::<Result<Vec<_>, Fault>>()?;
    if let Some(time) = page.time {
        let limit = match session.server.mariadb {
            true => format!("SET SESSION max_statement_time = {}", time.as_secs()),
            false => format!("SET SESSION max_execution_time = {}", time.as_millis()),
        };
        session.say(&limit).await?;
    }
    let fetched = session.fetch(&sql, cells, page.bytes).await?;
    let kinds: Vec<Option<Kind>> = page
        .columns
        .iter()
        .map(|name| column(name).map(|column| column.kind))
        .collect();
    let row = |cells: Vec<mysql_async::Value>| {
        let cells = cells.into_iter().zip(fetched.columns.iter()).zip(&kinds);
        cells
            .map(|((cell, shown), kind)| decode::value(shown, *kind, cell))
            .collect()
    };
    Ok(fetched.rows.into_iter().map(row).collect())
}
