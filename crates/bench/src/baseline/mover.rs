//! A pending table and its final ones, and the usual ways from one to the others: ten rows at a
//! time, on one connection, with prepared statements.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};

use crate::servers::{Driver, Kind, Param, Table};

/// Rows that are read at once.
const TEN: usize = 10;

const COLUMNS: &str = "id, tenant, device, level, note";

/// The number of tenants.
const TENANTS: u64 = 7;

/// The way in which ten rows are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// Each statement by itself, and committed by itself.
    Single,
    /// The same statements, in one transaction.
    Grouped,
    /// One INSERT for each table, one DELETE, one transaction.
    Joined,
}

/// Where rows go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Layout {
    /// All into one table.
    One,
    /// Into a table for each of seven tenants.
    Tenants,
}

impl Layout {
    /// The final table, as `windrow move` gets it.
    pub fn destination(self) -> &'static str {
        match self {
            Self::One => "final",
            Self::Tenants => "final_{tenant}",
        }
    }

    fn tables(self) -> Vec<String> {
        match self {
            Self::One => vec!["final".to_owned()],
            Self::Tenants => (0..TENANTS).map(|n| format!("final_t{n}")).collect(),
        }
    }

    fn table(self, tenant: &str) -> String {
        self.destination().replace("{tenant}", tenant)
    }
}

/// Makes all tables and fills the first.
///
/// # Errors
/// The database refuses: they are there already, for example.
pub fn prepare(table: &Table, layout: Layout, rows: u64) -> Result<()> {
    let is_postgres = table.kind == Kind::Postgres;
    let mut text = String::new();
    for name in layout
        .tables()
        .iter()
        .map(String::as_str)
        .chain(["pending"])
    {
        text.push_str(&format!(
            "create table {name} (id bigint primary key, tenant varchar(20), device varchar(20), level double precision, note varchar(200));"
        ));
    }
    let number = if is_postgres { "i" } else { "seq" };
    let values = format!(
        "{number}, concat('t', {number} % {TENANTS}), concat('device ', {number} % 1000), {number} / 8.0, repeat('x', 60)"
    );
    text.push_str(&match is_postgres {
        true => format!(
            "insert into pending select {values} from generate_series(1, {rows}) i; analyze pending; checkpoint"
        ),
        false => format!("insert into pending select {values} from seq_1_to_{rows}"),
    });
    table.query(&text).map(drop)
}

/// Removes all tables, those of `windrow move` too.
///
/// # Errors
/// The database refuses.
pub fn clean_up(table: &Table, layout: Layout) -> Result<()> {
    let tables = layout.tables().join(", ");
    let text = format!("drop table if exists pending, windrow_rejected, {tables}");
    table.query(&text).map(drop)
}

/// Rows of the first table, and of the others together.
///
/// # Errors
/// The database refuses.
pub fn count(table: &Table, layout: Layout) -> Result<(u64, u64)> {
    let of = |table: &str| format!("(select count(*) from {table})");
    let last: Vec<String> = layout.tables().iter().map(|table| of(table)).collect();
    let text = format!(
        "select concat({}, ' ', {})",
        of("pending"),
        last.join(" + ")
    );
    let text = table.query(&text)?;
    let (pending, last) = text.trim().split_once(' ').context("two numbers")?;
    Ok((pending.parse()?, last.parse()?))
}

/// Moves all rows.
///
/// # Errors
/// The database refuses.
pub fn run(table: &Table, layout: Layout, grouping: Grouping) -> Result<()> {
    let mut mover = Mover {
        driver: Driver::connect(table)?,
        layout,
    };
    loop {
        let rows = mover.driver.query(&format!(
            "select {COLUMNS} from pending order by id limit {TEN}"
        ))?;
        if rows.is_empty() {
            return Ok(());
        }
        if grouping == Grouping::Single {
            mover.each(&rows)?;
            continue;
        }
        mover.driver.run("begin")?;
        match grouping {
            Grouping::Joined => mover.together(&rows)?,
            Grouping::Single | Grouping::Grouped => mover.each(&rows)?,
        }
        mover.driver.run("commit")?;
    }
}

struct Mover {
    driver: Driver,
    layout: Layout,
}

impl Mover {
    fn each(&mut self, rows: &[Vec<Param>]) -> Result<()> {
        for row in rows {
            self.insert(&self.destination(row)?, &[row])?;
            self.delete(std::slice::from_ref(row))?;
        }
        Ok(())
    }

    fn together(&mut self, rows: &[Vec<Param>]) -> Result<()> {
        let mut tables: BTreeMap<String, Vec<&Vec<Param>>> = BTreeMap::new();
        for row in rows {
            tables.entry(self.destination(row)?).or_default().push(row);
        }
        for (table, rows) in tables {
            self.insert(&table, &rows)?;
        }
        self.delete(rows)
    }

    fn destination(&self, row: &[Param]) -> Result<String> {
        match row.get(1) {
            Some(Param::Text(tenant)) => Ok(self.layout.table(tenant)),
            other => bail!("a tenant of {other:?}"),
        }
    }

    fn insert(&mut self, table: &str, rows: &[&Vec<Param>]) -> Result<()> {
        let lists = self.driver.lists(rows.len(), 5);
        let values: Vec<Param> = rows.iter().copied().flatten().cloned().collect();
        let text = format!("insert into {table} ({COLUMNS}) values {lists}");
        self.driver.execute(&text, &values)
    }

    fn delete(&mut self, rows: &[Vec<Param>]) -> Result<()> {
        let keys: Vec<Param> = rows.iter().filter_map(|row| row.first().cloned()).collect();
        let list = self.driver.lists(1, keys.len());
        let text = format!("delete from pending where id in {list}");
        self.driver.execute(&text, &keys)
    }
}
