//! One connection to a database of any kind, by its driver for Rust.

use std::collections::HashMap;
use std::error::Error;
use std::time::{Duration, SystemTime};

use anyhow::{Result, bail};
use bytes::BytesMut;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, Params, Row};
use rusqlite::types::{ToSqlOutput, ValueRef};
use tokio::runtime::Runtime;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, NoTls, Statement};

use super::store::{Kind, Table};
use crate::reading::{AT, MYSQL_AT, Reading};
use crate::runtime::runtime;

/// The longest wait of a connection to SQLite for another one's transaction.
const LOCK_TIMEOUT: Duration = Duration::from_secs(60);

/// Statements that a connection to SQLite keeps prepared.
const SQLITE_STATEMENTS: usize = 100;

/// The same time as [`AT`], in seconds since 1970.
const SECONDS: Duration = Duration::from_secs(1_767_225_600);

/// A value that is written or was read.
#[derive(Clone, Debug, PartialEq)]
pub enum Param {
    /// NULL.
    Null,
    /// A whole number.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// A text.
    Text(String),
    /// The time of every reading.
    Time,
}

/// A connection, used by one thread.
pub enum Driver {
    /// PostgreSQL.
    Postgres(PgDriver),
    /// MySQL and MariaDB.
    MySql(MySqlDriver),
    /// SQLite, as durable as Windrow writes by default.
    Sqlite(rusqlite::Connection),
}

/// A connection to PostgreSQL, with its event loop.
pub struct PgDriver {
    /// The event loop.
    pub runtime: Runtime,
    /// The driver's client.
    pub client: Client,
    statements: HashMap<String, Statement>,
}

/// A connection to MySQL, with its event loop. The driver keeps statements by their text.
pub struct MySqlDriver {
    /// The event loop.
    pub runtime: Runtime,
    /// The driver's connection.
    pub conn: Conn,
}

impl Driver {
    /// Connects.
    ///
    /// # Errors
    /// The database is down.
    pub fn connect(table: &Table) -> Result<Self> {
        Ok(match table.kind {
            Kind::Postgres => Self::Postgres(PgDriver::connect(&table.url)?),
            Kind::MariaDb => {
                let (runtime, opts) = (runtime()?, Opts::from_url(&table.url)?);
                let conn = runtime.block_on(Conn::new(opts))?;
                Self::MySql(MySqlDriver { runtime, conn })
            }
            Kind::Sqlite => {
                let db = table.sqlite()?;
                db.busy_timeout(LOCK_TIMEOUT)?;
                db.pragma_update(None, "synchronous", "full")?;
                db.set_prepared_statement_cache_capacity(SQLITE_STATEMENTS);
                Self::Sqlite(db)
            }
            Kind::CrateDb => bail!("CrateDB is written to over HTTP only"),
        })
    }

    /// Runs a text.
    ///
    /// # Errors
    /// A statement of it fails.
    pub fn run(&mut self, sql: &str) -> Result<()> {
        match self {
            Self::Postgres(pg) => pg.runtime.block_on(pg.client.batch_execute(sql))?,
            Self::MySql(my) => my.runtime.block_on(my.conn.query_drop(sql))?,
            Self::Sqlite(db) => db.execute_batch(sql)?,
        }
        Ok(())
    }

    /// Executes a statement, which is prepared the first time.
    ///
    /// # Errors
    /// The statement fails.
    pub fn execute(&mut self, sql: &str, params: &[Param]) -> Result<()> {
        match self {
            Self::Postgres(pg) => {
                let statement = pg.prepared(sql)?;
                let params: Vec<_> = params.iter().map(|p| p as &(dyn ToSql + Sync)).collect();
                pg.runtime
                    .block_on(pg.client.execute(&statement, &params))?;
            }
            Self::MySql(my) => {
                let params = Params::Positional(params.iter().map(Param::mysql).collect());
                my.runtime.block_on(my.conn.exec_drop(sql, params))?;
            }
            Self::Sqlite(db) => {
                let params = rusqlite::params_from_iter(params);
                db.prepare_cached(sql)?.execute(params)?;
            }
        }
        Ok(())
    }

    /// Reads all rows of a prepared query.
    ///
    /// # Errors
    /// The query fails.
    pub fn query(&mut self, sql: &str) -> Result<Vec<Vec<Param>>> {
        match self {
            Self::Postgres(pg) => {
                let statement = pg.prepared(sql)?;
                let rows = pg.runtime.block_on(pg.client.query(&statement, &[]))?;
                let row =
                    |row: &tokio_postgres::Row| (0..row.len()).map(|at| row.get(at)).collect();
                Ok(rows.iter().map(row).collect())
            }
            Self::MySql(my) => {
                let rows: Vec<Row> = my.runtime.block_on(my.conn.exec(sql, ()))?;
                let row = |row: Row| row.unwrap().into_iter().map(Param::of_mysql).collect();
                Ok(rows.into_iter().map(row).collect())
            }
            Self::Sqlite(_) => bail!("rows are read from SQLite as text only"),
        }
    }

    /// Returns the values of so many rows with placeholders, such as `(?, ?), (?, ?)`.
    pub fn lists(&self, rows: usize, columns: usize) -> String {
        let list = |row: usize| {
            let marks: Vec<_> = (1..=columns)
                .map(|at| self.mark(row * columns + at))
                .collect();
            format!("({})", marks.join(", "))
        };
        (0..rows).map(list).collect::<Vec<_>>().join(", ")
    }

    /// Returns the placeholder of a parameter, numbered from 1.
    pub fn mark(&self, number: usize) -> String {
        match self {
            Self::Postgres(_) => format!("${number}"),
            Self::MySql(_) | Self::Sqlite(_) => "?".to_owned(),
        }
    }

    /// Returns the number of parameters that a statement can have.
    pub fn max_params(&self) -> usize {
        match self {
            Self::Postgres(_) | Self::MySql(_) => 65_535,
            // SQLITE_MAX_VARIABLE_NUMBER
            Self::Sqlite(_) => 32_766,
        }
    }
}

impl PgDriver {
    /// Connects.
    ///
    /// # Errors
    /// The server is down.
    pub fn connect(url: &str) -> Result<Self> {
        let runtime = runtime()?;
        let client = runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
            tokio::spawn(connection);
            anyhow::Ok(client)
        })?;
        Ok(Self {
            runtime,
            client,
            statements: HashMap::new(),
        })
    }

    /// Returns a prepared statement.
    ///
    /// # Errors
    /// The server refuses it.
    pub fn prepared(&mut self, sql: &str) -> Result<Statement> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.runtime.block_on(self.client.prepare(sql))?;
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }
}

impl Param {
    /// Returns the columns of a reading.
    ///
    /// # Errors
    /// The id is beyond the largest key.
    pub fn of(reading: &Reading<'_>) -> Result<[Self; 5]> {
        Ok([
            Self::Int(i64::try_from(reading.id)?),
            Self::Int(i64::try_from(reading.device)?),
            Self::Time,
            Self::Float(reading.temperature),
            Self::Text(reading.note.to_owned()),
        ])
    }

    fn mysql(&self) -> mysql_async::Value {
        match self {
            Self::Null => mysql_async::Value::NULL,
            Self::Int(n) => (*n).into(),
            Self::Float(x) => (*x).into(),
            Self::Text(text) => text.as_str().into(),
            Self::Time => MYSQL_AT.into(),
        }
    }

    fn of_mysql(value: mysql_async::Value) -> Self {
        match value {
            mysql_async::Value::NULL => Self::Null,
            mysql_async::Value::Int(n) => Self::Int(n),
            mysql_async::Value::Double(x) => Self::Float(x),
            mysql_async::Value::Bytes(text) => {
                Self::Text(String::from_utf8_lossy(&text).into_owned())
            }
            other => Self::Text(other.as_sql(true)),
        }
    }
}

type Failure = Box<dyn Error + Sync + Send>;

impl ToSql for Param {
    fn to_sql(&self, of: &Type, out: &mut BytesMut) -> Result<IsNull, Failure> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Int(n) if *of == Type::INT4 => i32::try_from(*n)?.to_sql(of, out),
            Self::Int(n) => n.to_sql(of, out),
            Self::Float(x) => x.to_sql(of, out),
            Self::Text(text) => text.to_sql(of, out),
            Self::Time => (SystemTime::UNIX_EPOCH + SECONDS).to_sql(of, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Param {
    fn from_sql(of: &Type, raw: &'a [u8]) -> Result<Self, Failure> {
        Ok(match *of {
            Type::INT8 => Self::Int(i64::from_sql(of, raw)?),
            Type::INT4 => Self::Int(i32::from_sql(of, raw)?.into()),
            Type::FLOAT8 => Self::Float(f64::from_sql(of, raw)?),
            _ => Self::Text(String::from_sql(of, raw)?),
        })
    }

    fn from_sql_null(_: &Type) -> Result<Self, Failure> {
        Ok(Self::Null)
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

impl rusqlite::ToSql for Param {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Int(n) => ValueRef::Integer(*n),
            Self::Float(x) => ValueRef::Real(*x),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Time => ValueRef::Text(AT.as_bytes()),
        }))
    }
}
