//! A pending table and its final ones, and the usual ways from one to the others: ten rows at a
//! time, on one connection, with prepared statements.

use std::collections::{BTreeMap, HashMap};

use anyhow::{Context, Result};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Params, Value};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Statement};

/// Rows that are read at once.
const TEN: usize = 10;

const COLUMNS: &str = "id, tenant, device, level, note";

/// The number of tenants.
const TENANTS: u64 = 7;

/// The way in which ten rows are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
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

fn is_postgres(url: &str) -> bool {
    url.starts_with("postgres")
}

fn sql(url: &str, sql: &str) -> Result<String> {
    match is_postgres(url) {
        true => windrow_testkit::postgres::psql(url, sql),
        false => windrow_testkit::mariadb::sql(url, sql),
    }
}

/// Makes all tables and fills the first.
///
/// # Errors
/// The database refuses: they are there already, for example.
pub fn prepare(url: &str, layout: Layout, rows: u64) -> Result<()> {
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
    let number = if is_postgres(url) { "i" } else { "seq" };
    let values = format!(
        "{number}, concat('t', {number} % {TENANTS}), concat('device ', {number} % 1000), {number} / 8.0, repeat('x', 60)"
    );
    text.push_str(&match is_postgres(url) {
        true => format!(
            "insert into pending select {values} from generate_series(1, {rows}) i; analyze pending; checkpoint"
        ),
        false => format!("insert into pending select {values} from seq_1_to_{rows}"),
    });
    sql(url, &text).map(drop)
}

/// Removes all tables, those of `windrow move` too.
///
/// # Errors
/// The database refuses.
pub fn clean_up(url: &str, layout: Layout) -> Result<()> {
    let tables = layout.tables().join(", ");
    let text = format!("drop table if exists pending, windrow_rejected, {tables}");
    sql(url, &text).map(drop)
}

/// Rows of the first table, and of the others together.
///
/// # Errors
/// The database refuses.
pub fn count(url: &str, layout: Layout) -> Result<(u64, u64)> {
    let of = |table: &str| format!("(select count(*) from {table})");
    let last: Vec<String> = layout.tables().iter().map(|table| of(table)).collect();
    let text = format!(
        "select concat({}, ' ', {})",
        of("pending"),
        last.join(" + ")
    );
    let text = sql(url, &text)?;
    let (pending, last) = text.trim().split_once(' ').context("two numbers")?;
    Ok((pending.parse()?, last.parse()?))
}

/// Moves all rows.
///
/// # Errors
/// The database refuses.
pub fn run(url: &str, layout: Layout, way: Way) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        match is_postgres(url) {
            true => all(Postgres::connect(url).await?, layout, way).await,
            false => all(MariaDb::connect(url).await?, layout, way).await,
        }
    })
}

/// The operations of both databases.
trait Session {
    type Row;

    /// The next ten rows, in the order of the key.
    async fn ten(&mut self) -> Result<Vec<Self::Row>>;
    /// A row's tenant.
    fn tenant(row: &Self::Row) -> Result<String>;
    async fn insert(&mut self, table: &str, rows: &[&Self::Row]) -> Result<()>;
    async fn delete(&mut self, rows: &[&Self::Row]) -> Result<()>;
    async fn tell(&mut self, sql: &str) -> Result<()>;
}

async fn all<S: Session>(mut session: S, layout: Layout, way: Way) -> Result<()> {
    loop {
        let rows = session.ten().await?;
        if rows.is_empty() {
            return Ok(());
        }
        if way == Way::Single {
            each(&mut session, layout, &rows).await?;
            continue;
        }
        session.tell("begin").await?;
        match way {
            Way::Joined => together(&mut session, layout, &rows).await?,
            Way::Single | Way::Grouped => each(&mut session, layout, &rows).await?,
        }
        session.tell("commit").await?;
    }
}

async fn each<S: Session>(session: &mut S, layout: Layout, rows: &[S::Row]) -> Result<()> {
    for row in rows {
        let table = layout.table(&S::tenant(row)?);
        session.insert(&table, &[row]).await?;
        session.delete(&[row]).await?;
    }
    Ok(())
}

async fn together<S: Session>(session: &mut S, layout: Layout, rows: &[S::Row]) -> Result<()> {
    let mut tables: BTreeMap<String, Vec<&S::Row>> = BTreeMap::new();
    for row in rows {
        let table = layout.table(&S::tenant(row)?);
        tables.entry(table).or_default().push(row);
    }
    for (table, rows) in tables {
        session.insert(&table, &rows).await?;
    }
    let all: Vec<&S::Row> = rows.iter().collect();
    session.delete(&all).await
}

fn select() -> String {
    format!("select {COLUMNS} from pending order by id limit {TEN}")
}

/// An INSERT of so many rows; `mark` writes the parameter of a number from 1.
fn insert(table: &str, rows: usize, mark: fn(usize) -> String) -> String {
    let row = |n| {
        let marks: Vec<String> = (1..=5).map(|place| mark(n * 5 + place)).collect();
        format!("({})", marks.join(", "))
    };
    let rows: Vec<String> = (0..rows).map(row).collect();
    format!("insert into {table} ({COLUMNS}) values {}", rows.join(", "))
}

fn delete(rows: usize, mark: fn(usize) -> String) -> String {
    let marks: Vec<String> = (1..=rows).map(mark).collect();
    format!("delete from pending where id in ({})", marks.join(", "))
}

struct Postgres {
    client: Client,
    statements: HashMap<String, Statement>,
}

impl Postgres {
    async fn connect(url: &str) -> Result<Self> {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        tokio::spawn(connection);
        let statements = HashMap::new();
        Ok(Self { client, statements })
    }

    async fn prepared(&mut self, text: String) -> Result<Statement> {
        if let Some(statement) = self.statements.get(&text) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(&text).await?;
        self.statements.insert(text, statement.clone());
        Ok(statement)
    }
}

/// A row, as it is to be bound.
type Bound = (
    i64,
    Option<String>,
    Option<String>,
    Option<f64>,
    Option<String>,
);

impl Session for Postgres {
    type Row = Bound;

    async fn ten(&mut self) -> Result<Vec<Bound>> {
        let select = self.prepared(select()).await?;
        let rows = self.client.query(&select, &[]).await?;
        let bound = rows
            .iter()
            .map(|row| (row.get(0), row.get(1), row.get(2), row.get(3), row.get(4)));
        Ok(bound.collect())
    }

    fn tenant(row: &Bound) -> Result<String> {
        row.1.clone().context("a tenant")
    }

    async fn insert(&mut self, table: &str, rows: &[&Bound]) -> Result<()> {
        let text = insert(table, rows.len(), |n| format!("${n}"));
        let statement = self.prepared(text).await?;
        let mut values: Vec<&(dyn ToSql + Sync)> = Vec::new();
        for row in rows {
            values.extend([
                &row.0 as &(dyn ToSql + Sync),
                &row.1,
                &row.2,
                &row.3,
                &row.4,
            ]);
        }
        self.client.execute(&statement, &values).await?;
        Ok(())
    }

    async fn delete(&mut self, rows: &[&Bound]) -> Result<()> {
        let text = delete(rows.len(), |n| format!("${n}"));
        let statement = self.prepared(text).await?;
        let keys: Vec<&(dyn ToSql + Sync)> = rows.iter().map(|row| &row.0 as _).collect();
        self.client.execute(&statement, &keys).await?;
        Ok(())
    }

    async fn tell(&mut self, sql: &str) -> Result<()> {
        Ok(self.client.batch_execute(sql).await?)
    }
}

/// The driver keeps the statements of a connection by their text.
struct MariaDb(Conn);

impl MariaDb {
    async fn connect(url: &str) -> Result<Self> {
        Ok(Self(Conn::from_url(url).await?))
    }
}

impl Session for MariaDb {
    type Row = Vec<Value>;

    async fn ten(&mut self) -> Result<Vec<Self::Row>> {
        let rows: Vec<mysql_async::Row> = self.0.exec(select(), ()).await?;
        Ok(rows.into_iter().map(mysql_async::Row::unwrap).collect())
    }

    fn tenant(row: &Self::Row) -> Result<String> {
        let tenant = row.get(1).cloned().context("a tenant")?;
        mysql_async::from_value_opt(tenant).context("a tenant")
    }

    async fn insert(&mut self, table: &str, rows: &[&Self::Row]) -> Result<()> {
        let text = insert(table, rows.len(), |_| "?".to_owned());
        let values = rows.iter().flat_map(|row| row.iter().cloned()).collect();
        Ok(self.0.exec_drop(text, Params::Positional(values)).await?)
    }

    async fn delete(&mut self, rows: &[&Self::Row]) -> Result<()> {
        let text = delete(rows.len(), |_| "?".to_owned());
        let keys = rows.iter().filter_map(|row| row.first().cloned()).collect();
        Ok(self.0.exec_drop(text, Params::Positional(keys)).await?)
    }

    async fn tell(&mut self, sql: &str) -> Result<()> {
        Ok(self.0.query_drop(sql).await?)
    }
}
