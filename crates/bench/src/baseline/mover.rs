//! A pending table and a final one, and the usual ways from one to the other: ten rows at a time,
//! on one connection.

use anyhow::{Context, Result};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Params, TxOpts, Value};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Row, Statement};

/// Rows that are read at once.
const TEN: usize = 10;

const COLUMNS: &str = "id, tenant, device, level, note";

/// How ten rows are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Each statement by itself, and committed by itself.
    Single,
    /// The same statements, in one transaction.
    Grouped,
    /// One INSERT, one DELETE, one transaction.
    Joined,
}

fn is_postgres(url: &str) -> bool {
    url.starts_with("postgres")
}

/// Makes both tables and fills the first.
///
/// # Errors
/// The database refuses.
pub fn fill(url: &str, rows: u64) -> Result<()> {
    let table = |name: &str| {
        format!(
            "create table {name} (id bigint primary key, tenant varchar(20), device varchar(20), level double precision, note varchar(200));"
        )
    };
    let (pending, last) = (table("pending"), table("final"));
    let number = if is_postgres(url) { "i" } else { "seq" };
    let values = format!(
        "{number}, concat('tenant ', {number} % 7), concat('device ', {number} % 1000), {number} / 8.0, repeat('x', 60)"
    );
    let insert = match is_postgres(url) {
        true => format!(
            "insert into pending select {values} from generate_series(1, {rows}) i; analyze pending; checkpoint"
        ),
        false => format!("insert into pending select {values} from seq_1_to_{rows}"),
    };
    let sql = format!("{pending} {last} {insert}");
    match is_postgres(url) {
        true => windrow_testkit::postgres::psql(url, &sql)?,
        false => windrow_testkit::mariadb::sql(url, &sql)?,
    };
    Ok(())
}

/// Rows of the first table, and of the second.
///
/// # Errors
/// The database refuses.
pub fn count(url: &str) -> Result<(u64, u64)> {
    let sql = "select concat((select count(*) from pending), ' ', (select count(*) from final))";
    let text = match is_postgres(url) {
        true => windrow_testkit::postgres::psql(url, sql)?,
        false => windrow_testkit::mariadb::sql(url, sql)?,
    };
    let (pending, last) = text.trim().split_once(' ').context("two numbers")?;
    Ok((pending.parse()?, last.parse()?))
}

/// Moves all rows.
///
/// # Errors
/// The database refuses.
pub fn run(url: &str, way: Way) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        match is_postgres(url) {
            true => postgres(url, way).await,
            false => mariadb(url, way).await,
        }
    })
}

/// The statements, with `$1` or `?` for a parameter.
fn insert(rows: usize, numbered: bool) -> String {
    let mut number = 0;
    let mut mark = || {
        number += 1;
        if numbered {
            format!("${number}")
        } else {
            "?".into()
        }
    };
    let row = |mark: &mut dyn FnMut() -> String| {
        let marks: Vec<String> = (0..5).map(|_| mark()).collect();
        format!("({})", marks.join(", "))
    };
    let rows: Vec<String> = (0..rows).map(|_| row(&mut mark)).collect();
    format!("insert into final ({COLUMNS}) values {}", rows.join(", "))
}

fn delete(rows: usize, numbered: bool) -> String {
    let mark = |place: usize| {
        if numbered {
            format!("${place}")
        } else {
            "?".into()
        }
    };
    let marks: Vec<String> = (1..=rows).map(mark).collect();
    format!("delete from pending where id in ({})", marks.join(", "))
}

async fn postgres(url: &str, way: Way) -> Result<()> {
    let (mut client, connection) = tokio_postgres::connect(url, NoTls).await?;
    let connection = tokio::spawn(connection);
    let select = format!("select {COLUMNS} from pending order by id limit {TEN}");
    let select = client.prepare(&select).await?;
    let singles = (
        client.prepare(&insert(1, true)).await?,
        client.prepare(&delete(1, true)).await?,
    );
    let tens = (
        client.prepare(&insert(TEN, true)).await?,
        client.prepare(&delete(TEN, true)).await?,
    );
    loop {
        let rows = client.query(&select, &[]).await?;
        match (way, rows.len()) {
            (_, 0) => break,
            (Way::Single, _) => one_by_one(&client, &singles, &rows).await?,
            (Way::Joined, TEN) => {
                let transaction = client.transaction().await?;
                together(transaction.client(), &tens, &rows).await?;
                transaction.commit().await?;
            }
            (Way::Grouped | Way::Joined, _) => {
                let transaction = client.transaction().await?;
                one_by_one(transaction.client(), &singles, &rows).await?;
                transaction.commit().await?;
            }
        }
    }
    drop(client);
    connection.await??;
    Ok(())
}

/// The values of a row, as they are to be bound.
type Bound = (
    i64,
    Option<String>,
    Option<String>,
    Option<f64>,
    Option<String>,
);

fn bound(row: &Row) -> Bound {
    (row.get(0), row.get(1), row.get(2), row.get(3), row.get(4))
}

async fn one_by_one(
    client: &Client,
    (insert, delete): &(Statement, Statement),
    rows: &[Row],
) -> Result<()> {
    for row in rows {
        let row = bound(row);
        let values: [&(dyn ToSql + Sync); 5] = [&row.0, &row.1, &row.2, &row.3, &row.4];
        client.execute(insert, &values).await?;
        client.execute(delete, &[&row.0]).await?;
    }
    Ok(())
}

async fn together(
    client: &Client,
    (insert, delete): &(Statement, Statement),
    rows: &[Row],
) -> Result<()> {
    let rows: Vec<Bound> = rows.iter().map(bound).collect();
    let mut values: Vec<&(dyn ToSql + Sync)> = Vec::new();
    for row in &rows {
        values.extend([
            &row.0 as &(dyn ToSql + Sync),
            &row.1,
            &row.2,
            &row.3,
            &row.4,
        ]);
    }
    client.execute(insert, &values).await?;
    let keys: Vec<&(dyn ToSql + Sync)> = rows.iter().map(|row| &row.0 as _).collect();
    client.execute(delete, &keys).await?;
    Ok(())
}

async fn mariadb(url: &str, way: Way) -> Result<()> {
    let mut conn = Conn::from_url(url).await?;
    let select = format!("select {COLUMNS} from pending order by id limit {TEN}");
    let select = conn.prep(select).await?;
    let singles = (
        conn.prep(insert(1, false)).await?,
        conn.prep(delete(1, false)).await?,
    );
    let tens = (
        conn.prep(insert(TEN, false)).await?,
        conn.prep(delete(TEN, false)).await?,
    );
    loop {
        let rows: Vec<mysql_async::Row> = conn.exec(&select, ()).await?;
        let rows: Vec<Vec<Value>> = rows.into_iter().map(mysql_async::Row::unwrap).collect();
        match (way, rows.len()) {
            (_, 0) => break,
            (Way::Single, _) => each(&mut conn, &singles, rows).await?,
            (Way::Joined, TEN) => {
                let mut transaction = conn.start_transaction(TxOpts::default()).await?;
                let keys = keys(&rows);
                let all: Vec<Value> = rows.into_iter().flatten().collect();
                transaction
                    .exec_drop(&tens.0, Params::Positional(all))
                    .await?;
                transaction
                    .exec_drop(&tens.1, Params::Positional(keys))
                    .await?;
                transaction.commit().await?;
            }
            (Way::Grouped | Way::Joined, _) => {
                let mut transaction = conn.start_transaction(TxOpts::default()).await?;
                each(&mut transaction, &singles, rows).await?;
                transaction.commit().await?;
            }
        }
    }
    conn.disconnect().await?;
    Ok(())
}

fn keys(rows: &[Vec<Value>]) -> Vec<Value> {
    rows.iter().filter_map(|row| row.first().cloned()).collect()
}

async fn each(
    conn: &mut (impl Queryable + Sized),
    (insert, delete): &(mysql_async::Statement, mysql_async::Statement),
    rows: Vec<Vec<Value>>,
) -> Result<()> {
    for row in rows {
        let key: Vec<Value> = row.first().cloned().into_iter().collect();
        conn.exec_drop(insert, Params::Positional(row)).await?;
        conn.exec_drop(delete, Params::Positional(key)).await?;
    }
    Ok(())
}
