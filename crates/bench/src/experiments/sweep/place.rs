//! Where the rows go, and a connection that writes them in batches.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts};
use rusqlite::Connection;
use rusqlite::types::Value;
use tokio_postgres::NoTls;

use super::rows::Rows;
use crate::experiments::files::LINEITEM;
use crate::servers::{Kind, Store, Table};

/// The longest wait of a connection to SQLite for another one's transaction.
const LOCK_TIMEOUT: Duration = Duration::from_secs(60);

/// A database with a table `lineitem`.
#[derive(Clone, Debug)]
pub(super) enum Place {
    Postgres(String),
    MySql(String),
    Sqlite(PathBuf),
}

impl Place {
    /// A database of its own on a private server.
    pub(super) fn private(store: &Store) -> Result<Self> {
        let place = match store.table()? {
            Table::Postgres(url) => Self::Postgres(url),
            Table::MariaDb(url) => Self::MySql(url),
            Table::Sqlite(file) => Self::Sqlite(file),
            Table::CrateDb(_) => {
                bail!("this experiment writes SQL texts, which CrateDB takes elsewhere")
            }
        };
        place.execute(LINEITEM)?;
        Ok(place)
    }

    /// A database that runs already. The table is made there; one that is there is left alone, by
    /// an error.
    pub(super) fn at(url: &str) -> Result<Self> {
        let place = match url.split_once("://") {
            Some(("postgres" | "postgresql", _)) => Self::Postgres(url.to_owned()),
            Some(("mysql" | "mariadb", rest)) => Self::MySql(format!("mysql://{rest}")),
            _ => bail!(
                "--url names a database as postgres://.. (CockroachDB too) or mysql://.., not as {url}"
            ),
        };
        place
            .execute(LINEITEM)
            .context("making the table lineitem")?;
        Ok(place)
    }

    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Postgres(_) => Kind::Postgres,
            Self::MySql(_) => Kind::MariaDb,
            Self::Sqlite(_) => Kind::Sqlite,
        }
    }

    /// As Windrow names it.
    pub(super) fn url(&self) -> String {
        match self {
            Self::Postgres(url) | Self::MySql(url) => url.clone(),
            Self::Sqlite(file) => format!("sqlite:{}", file.display()),
        }
    }

    pub(super) fn empty(&self) -> Result<()> {
        match self {
            Self::Sqlite(_) => self.execute("delete from lineitem"),
            _ => self.execute("truncate table lineitem"),
        }
    }

    pub(super) fn remove(&self) -> Result<()> {
        self.execute("drop table lineitem")
    }

    pub(super) fn execute(&self, sql: &str) -> Result<()> {
        Writer::connect(self)?.execute(sql)
    }

    pub(super) fn count(&self) -> Result<u64> {
        const SQL: &str = "select count(*) from lineitem";
        let mut writer = Writer::connect(self)?;
        let runtime = writer.runtime;
        let count: i64 = match &mut writer.connected {
            Connected::Postgres(client) => {
                runtime.block_on(client.query_one(SQL, &[]))?.try_get(0)?
            }
            Connected::MySql(conn) => runtime
                .block_on(conn.query_first(SQL))?
                .context("a count")?,
            Connected::Sqlite(db) => db.query_row(SQL, [], |row| row.get(0))?,
        };
        Ok(u64::try_from(count)?)
    }

    /// Returns the server's own name and version.
    pub(super) fn version(&self) -> Result<String> {
        const SQL: &str = "select version()";
        let mut writer = Writer::connect(self)?;
        let runtime = writer.runtime;
        Ok(match &mut writer.connected {
            Connected::Postgres(client) => {
                runtime.block_on(client.query_one(SQL, &[]))?.try_get(0)?
            }
            Connected::MySql(conn) => runtime
                .block_on(conn.query_first(SQL))?
                .context("a version")?,
            Connected::Sqlite(_) => rusqlite::version().to_owned(),
        })
    }
}

/// One connection, used by one thread.
pub(super) struct Writer {
    runtime: tokio::runtime::Runtime,
    connected: Connected,
}

enum Connected {
    Postgres(tokio_postgres::Client),
    MySql(Conn),
    Sqlite(Connection),
}

impl Writer {
    pub(super) fn connect(place: &Place) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let connected = match place {
            Place::Postgres(url) => runtime.block_on(async {
                let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
                tokio::spawn(connection);
                anyhow::Ok(Connected::Postgres(client))
            })?,
            Place::MySql(url) => {
                Connected::MySql(runtime.block_on(Conn::new(Opts::from_url(url)?))?)
            }
            Place::Sqlite(file) => {
                let db = Connection::open(file)?;
                db.busy_timeout(LOCK_TIMEOUT)?;
                db.pragma_update(None, "synchronous", "full")?;
                Connected::Sqlite(db)
            }
        };
        Ok(Self { runtime, connected })
    }

    fn execute(&mut self, sql: &str) -> Result<()> {
        let Self { runtime, connected } = self;
        match connected {
            Connected::Postgres(client) => runtime.block_on(client.batch_execute(sql))?,
            Connected::MySql(conn) => runtime.block_on(conn.query_drop(sql))?,
            Connected::Sqlite(db) => db.execute_batch(sql)?,
        }
        Ok(())
    }

    /// Writes and commits rows: one multi-row INSERT, as a text; into SQLite, which gains nothing
    /// by that, one transaction of a prepared statement.
    pub(super) fn batch(&mut self, rows: &Rows, numbers: Range<u64>) -> Result<()> {
        match &self.connected {
            Connected::Sqlite(db) => prepared(db, rows, numbers),
            _ => self.execute(&rows.insert(numbers)?),
        }
    }
}

fn prepared(db: &Connection, rows: &Rows, numbers: Range<u64>) -> Result<()> {
    const INSERT: &str =
        "insert into lineitem values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    db.execute_batch("begin immediate")?;
    let mut insert = db.prepare_cached(INSERT)?;
    for number in numbers {
        let (order, texts) = rows.texts(number)?;
        let texts = texts.iter().map(|value| Value::Text(value.clone()));
        insert.execute(rusqlite::params_from_iter(
            std::iter::once(Value::Integer(order)).chain(texts),
        ))?;
    }
    db.execute_batch("commit")?;
    Ok(())
}
