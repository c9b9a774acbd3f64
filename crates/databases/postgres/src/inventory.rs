//! Lists tables and their rows.

use std::time::Duration;

use async_trait::async_trait;
use windrow_core::Row;
use windrow_core::inventory::parents_first;
use windrow_core::{
    Fault, Inventory, KeyRange, KeyedTable, Name, RowPage, RowSum, RowSums, TableName,
};
use windrow_database::page::{PageSql, PageStyle};
use windrow_database::quote::{push_ident, push_idents, push_table};
use windrow_database::shape_faults::no_column;
use windrow_pgwire::wire::{DataRow, Wire};

use super::catalog::column::{Column, Kind};
use super::catalog::schema;
use super::catalog::table::Facts;
use super::server::Server;
use super::statement::of_shape::push_results;
use super::talk::{Ask, talk, text};
use super::values::{decode, text as spelling};

/// Selects ordinary tables that hold rows of their own: no partitions, because the partitioned
/// table stands for them.
const TABLES: &str = "\
SELECT CASE WHEN pg_table_is_visible(c.oid) THEN '' ELSE n.nspname END, c.relname
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence <> 't'
  AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%'
ORDER BY n.nspname, c.relname";

const REFERENCES: &str = "\
SELECT CASE WHEN pg_table_is_visible(c.oid) THEN '' ELSE n.nspname END, c.relname,
  CASE WHEN pg_table_is_visible(p.oid) THEN '' ELSE m.nspname END, p.relname
FROM pg_constraint f
JOIN pg_class c ON c.oid = f.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_class p ON p.oid = f.confrelid JOIN pg_namespace m ON m.oid = p.relnamespace
WHERE f.contype = 'f'";

const NAME: &str = "\
SELECT CASE WHEN pg_table_is_visible(c.oid) THEN '' ELSE n.nspname END, c.relname
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = to_regclass($1) AND c.relkind IN ('r', 'p')";

/// Selects the transactions that write to tables of this database, or wait until they may. A
/// transaction that waits for a table has no number yet, so snapshots do not include it. Vacuum
/// locks a table's indexes in this way for as long as it takes, so locks on indexes do not count.
const WRITING: &str = "\
SELECT DISTINCT l.virtualtransaction FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
WHERE l.locktype = 'relation' AND l.mode = 'RowExclusiveLock' AND c.relkind IN ('r', 'p')
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())";

/// The settings by which values are written as text, so that equal rows have equal sums.
const SPELLING: &str = "SELECT set_config('TimeZone', 'UTC', false), set_config('DateStyle', 'ISO', false), \
     set_config('IntervalStyle', 'postgres', false), set_config('extra_float_digits', '1', false), \
     set_config('bytea_output', 'hex', false)";

const STYLE: PageStyle = PageStyle {
    push_ident,
    is_numbered: true,
    compares_rows: true,
};

/// The interval between two checks for ended transactions.
const LOOK: Duration = Duration::from_millis(20);

#[async_trait]
impl Inventory for Server {
    fn has_schemas(&self) -> bool {
        true
    }

    async fn tables(&self) -> Result<Vec<TableName>, Fault> {
        let mut wire = self.wire().await?.0;
        let (mut tables, mut references) = (Vec::new(), Vec::new());
        let asks = [Ask::of(TABLES), Ask::of(REFERENCES)];
        let told = talk(&mut wire, &asks, false, &mut |at, row| match at {
            0 => tables.push(name(&row, 0)),
            _ => references.push((name(&row, 0), name(&row, 2))),
        })
        .await;
        wire.terminate().await;
        told?;
        Ok(parents_first(tables, &references))
    }

    async fn table(&self, table: &TableName) -> Result<Option<KeyedTable>, Fault> {
        let mut wire = self.wire().await?.0;
        let found = read(&mut wire, self, table).await;
        wire.terminate().await;
        Ok(found?.map(|(own, facts)| keyed(own, &facts)))
    }

    async fn rows(&self, page: &RowPage<'_>) -> Result<Vec<Row>, Fault> {
        let mut wire = self.wire().await?.0;
        let rows = rows(&mut wire, self, page).await;
        wire.terminate().await;
        rows
    }

    fn sums(&self) -> Option<&dyn RowSums> {
        Some(self)
    }

    async fn settled(&self) -> Result<(), Fault> {
        let mut wire = self.wire().await?.0;
        let mut left = writing(&mut wire).await?;
        while !left.is_empty() {
            tokio::time::sleep(LOOK).await;
            let now = writing(&mut wire).await?;
            left.retain(|transaction| now.contains(transaction));
        }
        wire.terminate().await;
        Ok(())
    }
}

/// Returns the table's canonical name and its facts.
async fn read(
    wire: &mut Wire,
    server: &Server,
    table: &TableName,
) -> Result<Option<(TableName, Facts)>, Fault> {
    let mut quoted = String::new();
    push_table(&mut quoted, table);
    let mut own = None;
    talk(
        wire,
        &[Ask::of(NAME).text(&quoted)],
        false,
        &mut |_, row| {
            own = Some(name(&row, 0));
        },
    )
    .await?;
    let read = schema::read_unproven(wire, table, server.dialect()).await;
    let facts = read.map_err(|broken| broken.unavailable())??;
    Ok(own.zip(facts))
}

fn keyed(name: TableName, facts: &Facts) -> KeyedTable {
    let key: Vec<&Column> = key_columns(facts);
    let generated = facts.columns.iter();
    let generated = generated.filter(|column| column.always_generated && !column.identity);
    KeyedTable {
        name,
        keeps_key: !facts.has_hooks && key.iter().all(|column| keeps(column)),
        key: key.iter().map(|column| column.name.clone()).collect(),
        columns: facts.columns.iter().map(|c| c.name.clone()).collect(),
        generated: generated.map(|column| column.name.clone()).collect(),
    }
}

fn key_columns(facts: &Facts) -> Vec<&Column> {
    let places = facts.primary().unwrap_or_default().iter();
    places.filter_map(|p| facts.columns.get(*p)).collect()
}

/// Returns true if the column stores each given value unchanged, or refuses it.
pub(crate) fn keeps(column: &Column) -> bool {
    match column.kind {
        Kind::Bool | Kind::Int2 | Kind::Int4 | Kind::Int8 => true,
        Kind::Text | Kind::Char | Kind::Bytea | Kind::Uuid | Kind::Date | Kind::Enum(_) => true,
        Kind::Numeric | Kind::Timestamp | Kind::Timestamptz => column.narrowed == -1,
        _ => false,
    }
}

/// A query on the rows of a range.
struct Ranged {
    facts: Facts,
    /// The key's columns, as SQL.
    names: String,
    /// ` FROM t WHERE ..`.
    from: String,
    values: Vec<String>,
}

impl Ranged {
    async fn of(
        wire: &mut Wire,
        server: &Server,
        table: &KeyedTable,
        range: KeyRange<'_>,
    ) -> Result<Option<Self>, Fault> {
        let Some((_, facts)) = read(wire, server, &table.name).await? else {
            return Ok(None);
        };
        let columns = key_columns(&facts);
        let mut names = String::new();
        push_idents(&mut names, columns.iter().map(|column| &*column.name));
        let mut from = String::from(" FROM ");
        push_table(&mut from, &table.name);
        let (mut values, mut word) = (Vec::new(), "WHERE");
        for (sign, key) in [(">", range.after), ("<=", range.to)] {
            let Some(key) = key else { continue };
            let first = values.len();
            for (column, value) in columns.iter().zip(key) {
                let mut text = Vec::new();
                let written = spelling::push(&column.kind, value, &mut text);
                written.map_err(|unwritable| Fault::invalid(unwritable.0))?;
                values.push(String::from_utf8_lossy(&text).into_owned());
            }
            let places: Vec<_> = (first + 1..=values.len())
                .map(|n| format!("${n}"))
                .collect();
            let places = places.join(", ");
            from.push_str(&format!(" {word} ({names}) {sign} ({places})"));
            word = "AND";
        }
        Ok(Some(Self {
            facts,
            names,
            from,
            values,
        }))
    }

    /// Returns the key of the last of this many rows.
    async fn key_at(self, wire: &mut Wire, rows: usize) -> Result<Option<Row>, Fault> {
        let columns: Vec<Name> = key_columns(&self.facts)
            .iter()
            .map(|c| c.name.clone())
            .collect();
        let mut sql = "SELECT ".to_owned();
        push_results(&mut sql, None, &columns, &self.facts);
        let before = rows.saturating_sub(1);
        let (from, names) = (&self.from, &self.names);
        sql.push_str(&format!("{from} ORDER BY {names} OFFSET {before} LIMIT 1"));
        let mut rows = fetch(wire, self.ask(sql), &self.facts, &columns, usize::MAX).await?;
        Ok(rows.pop())
    }

    fn ask(&self, sql: String) -> Ask {
        let values = self.values.iter().cloned();
        values.fold(Ask::of(sql), Ask::untyped)
    }
}

async fn rows(wire: &mut Wire, server: &Server, page: &RowPage<'_>) -> Result<Vec<Row>, Fault> {
    let Some((_, facts)) = read(wire, server, page.table).await? else {
        return Ok(Vec::new());
    };
    let mut sql = "SELECT ".to_owned();
    push_results(&mut sql, None, page.columns, &facts);
    sql.push_str(" FROM ");
    push_table(&mut sql, page.table);
    let rest = PageSql::of(page, STYLE);
    sql.push_str(&rest.text);
    if let Some(time) = page.time {
        let limit = Ask::of("SELECT set_config('statement_timeout', $1, false)");
        let limit = limit.text(&time.as_millis().to_string());
        talk(wire, &[limit], false, &mut |_, _| {}).await?;
    }
    let mut ask = Ask::of(sql);
    for (name, value) in rest.values {
        let column = facts.place_of(name).and_then(|at| facts.columns.get(at));
        let column = column.ok_or_else(|| no_column(page.table, name))?;
        let mut text = Vec::new();
        let written = match page.is_spelled {
            true => spelling::push_spelled(&column.kind, value, &mut text),
            false => spelling::push(&column.kind, value, &mut text),
        };
        written.map_err(|unwritable| Fault::invalid(unwritable.0))?;
        ask = ask.untyped(String::from_utf8_lossy(&text).into_owned());
    }
    fetch(wire, ask, &facts, page.columns, page.bytes).await
}

/// Reads rows of these columns until their texts have this many bytes.
async fn fetch(
    wire: &mut Wire,
    ask: Ask,
    facts: &Facts,
    columns: &[Name],
    bytes: usize,
) -> Result<Vec<Row>, Fault> {
    let kind = |name: &Name| {
        let column = facts.place_of(name).and_then(|at| facts.columns.get(at));
        column.map_or(Kind::Other, |column| column.kind.clone())
    };
    let kinds: Vec<Kind> = columns.iter().map(kind).collect();
    let (mut rows, mut read) = (Vec::new(), 0_usize);
    talk(wire, &[ask], false, &mut |_, row| {
        if read > bytes {
            return;
        }
        let value = |(place, kind): (usize, &Kind)| {
            let text = row.get(place);
            read += text.map_or(0, <[u8]>::len);
            decode::value(kind, text)
        };
        rows.push(kinds.iter().enumerate().map(value).collect());
    })
    .await?;
    Ok(rows)
}

async fn sum(
    wire: &mut Wire,
    server: &Server,
    table: &KeyedTable,
    columns: &[Name],
    range: KeyRange<'_>,
) -> Result<RowSum, Fault> {
    let ranged = Ranged::of(wire, server, table, range).await?;
    let ranged = ranged.ok_or_else(|| Fault::invalid("the table is not there any more"))?;
    let (mut names, from) = (String::new(), &ranged.from);
    push_idents(&mut names, columns.iter().map(|name| &**name));
    let ask = ranged.ask(format!(
        "SELECT count(*), coalesce(sum(hashtextextended(row_text, 0)), 0) \
         FROM (SELECT ROW({names})::text AS row_text{from}) rows_of_range"
    ));
    let mut found = None;
    talk(wire, &[Ask::of(SPELLING), ask], false, &mut |at, row| {
        if at == 1 {
            let rows = text(&row, 0).and_then(|rows| rows.parse().ok());
            found = rows.zip(text(&row, 1)).map(|(rows, sum)| RowSum {
                rows,
                sum: sum.into(),
            });
        }
    })
    .await?;
    found.ok_or_else(|| Fault::internal("the server gives no sum"))
}

#[async_trait]
impl RowSums for Server {
    fn form(&self) -> &'static str {
        "hashtextextended"
    }

    async fn end_of(
        &self,
        table: &KeyedTable,
        range: KeyRange<'_>,
        rows: usize,
    ) -> Result<Option<Row>, Fault> {
        let mut wire = self.wire().await?.0;
        let key = match Ranged::of(&mut wire, self, table, range).await {
            Ok(Some(ranged)) => ranged.key_at(&mut wire, rows).await,
            Ok(None) => Ok(None),
            Err(fault) => Err(fault),
        };
        wire.terminate().await;
        key
    }

    async fn sum(
        &self,
        table: &KeyedTable,
        columns: &[Name],
        range: KeyRange<'_>,
    ) -> Result<RowSum, Fault> {
        let mut wire = self.wire().await?.0;
        let sum = sum(&mut wire, self, table, columns, range).await;
        wire.terminate().await;
        sum
    }
}

fn name(row: &DataRow<'_>, place: usize) -> TableName {
    let word = |place| text(row, place).unwrap_or_default();
    TableName {
        schema: Some(word(place)).filter(|s| !s.is_empty()).map(Into::into),
        table: word(place + 1).into(),
    }
}

async fn writing(wire: &mut Wire) -> Result<Vec<String>, Fault> {
    let mut writing = Vec::new();
    talk(wire, &[Ask::of(WRITING)], false, &mut |_, row| {
        writing.extend(text(&row, 0));
    })
    .await?;
    Ok(writing)
}
