//! A database of any kind that is measured.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rusqlite::Connection;
use rusqlite::fallible_iterator::FallibleIterator as _;
use rusqlite::types::ValueRef;
use tempfile::TempDir;
use windrow_testkit::mariadb::{self, MariaDb, MariaDbBuilder};
use windrow_testkit::postgres::{Postgres, psql};

use super::cluster::{Cluster, Schema};
use crate::figures::Run;
use crate::reading::{MARIADB_TABLE, POSTGRES_TABLE, SQLITE_TABLE};

/// Which database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// A file, by default `synchronous=FULL`.
    Sqlite,
    /// A private PostgreSQL server with its default settings (fsync on).
    Postgres,
    /// A private MariaDB server with its default settings (`innodb_flush_log_at_trx_commit=1`).
    #[value(name = "mariadb", alias = "mysql")]
    MariaDb,
    /// A CrateDB cluster that runs already: there is no package to start one from.
    #[value(name = "cratedb")]
    CrateDb,
}

impl Kind {
    /// Returns the name in file names.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
            Self::MariaDb => "mariadb",
            Self::CrateDb => "cratedb",
        }
    }
}

/// A server, or a folder, in which databases are made.
#[derive(Debug)]
pub enum Store {
    /// A folder for SQLite files.
    Sqlite(TempDir),
    /// A server.
    Postgres(Postgres),
    /// A server.
    MariaDb(MariaDb),
    /// A cluster.
    CrateDb(Cluster),
}

/// A database of a measurement's own, with an empty table.
#[derive(Clone, Debug)]
pub struct Table {
    /// The kind of the database.
    pub kind: Kind,
    /// Windrow's URL of the database.
    pub url: String,
    schema: Option<Schema>,
}

/// Prepares a MariaDB server with real durability.
pub(super) fn mariadb() -> MariaDbBuilder {
    // The server's own defaults; the testkit's are smaller.
    MariaDb::builder()
        .fsync(true)
        .set("innodb-buffer-pool-size", "128M")
        .set("innodb-log-file-size", "96M")
}

impl Store {
    /// Makes the folder, or starts the server.
    ///
    /// # Errors
    /// The database is not installed, or is one that cannot be started from here.
    pub fn start(kind: Kind) -> Result<Self> {
        Ok(match kind {
            Kind::Sqlite => Self::Sqlite(tempfile::tempdir()?),
            Kind::Postgres => Self::Postgres(Postgres::builder().fsync(true).start()?),
            Kind::MariaDb => Self::MariaDb(mariadb().start()?),
            Kind::CrateDb => bail!(
                "this experiment cannot start CrateDB; `load --to cratedb --url cratedb://HOST:PORT` measures one that runs"
            ),
        })
    }

    /// Makes a database with an empty table `readings`.
    ///
    /// # Errors
    /// The database refuses.
    pub fn table(&self) -> Result<Table> {
        self.database(match self {
            Self::Sqlite(_) => SQLITE_TABLE,
            Self::Postgres(_) => POSTGRES_TABLE,
            Self::MariaDb(_) => MARIADB_TABLE,
            Self::CrateDb(cluster) => return Ok(Table::of(cluster.schema()?)),
        })
    }

    /// Makes a database with a table of its own.
    ///
    /// # Errors
    /// The database refuses.
    pub fn database(&self, create: &str) -> Result<Table> {
        let (kind, url) = match self {
            Self::Sqlite(folder) => {
                let name = format!("{:016x}.db", rand::random::<u64>());
                let file = folder.path().join(name);
                // Kept in the file, so that every later connection has it too.
                Connection::open(&file)?.pragma_update(None, "journal_mode", "wal")?;
                (Kind::Sqlite, format!("sqlite:{}", file.display()))
            }
            Self::Postgres(server) => (Kind::Postgres, server.create_database()?),
            Self::MariaDb(server) => (Kind::MariaDb, server.create_database()?),
            Self::CrateDb(_) => bail!("this experiment is not made for CrateDB"),
        };
        let table = Table::at(kind, url);
        table.query(create)?;
        self.settle()?;
        Ok(table)
    }

    /// Lets the server write what the last measurement left to be written.
    ///
    /// # Errors
    /// The server is down.
    pub fn settle(&self) -> Result<()> {
        if let Self::Postgres(server) = self {
            server.exec("checkpoint")?;
        }
        Ok(())
    }

    /// CPU time of the server's processes; nothing for a library, and for processes that nobody
    /// named.
    pub fn cpu_time(&self) -> Option<Duration> {
        match self {
            Self::Sqlite(_) => None,
            Self::Postgres(server) => Some(server.cpu_time()),
            Self::MariaDb(server) => Some(server.cpu_time()),
            Self::CrateDb(cluster) => cluster.cpu_time(),
        }
    }

    /// Returns the server, if it is PostgreSQL.
    ///
    /// # Errors
    /// It is another database.
    pub fn server(&self) -> Result<&Postgres> {
        match self {
            Self::Postgres(server) => Ok(server),
            _ => bail!("this experiment needs a PostgreSQL server: --to postgres"),
        }
    }

    /// Adds the version to a report.
    ///
    /// # Errors
    /// The server is down.
    pub fn report_version(&self, run: &mut Run) -> Result<()> {
        match self {
            Self::Sqlite(_) => run.version("SQLite", rusqlite::version()),
            Self::Postgres(server) => {
                run.version("PostgreSQL", server.exec("show server_version")?);
            }
            Self::MariaDb(server) => {
                let version = mariadb::sql(&server.url(), "select version()")?;
                run.version("MariaDB", version);
            }
            Self::CrateDb(cluster) => run.version("CrateDB", cluster.version()?),
        }
        Ok(())
    }
}

impl Table {
    /// Names a database that is there already.
    pub fn at(kind: Kind, url: String) -> Self {
        let schema = None;
        Self { kind, url, schema }
    }

    fn of(schema: Schema) -> Self {
        Self {
            kind: Kind::CrateDb,
            url: schema.url(),
            schema: Some(schema),
        }
    }

    /// Returns the schema of a CrateDB cluster.
    ///
    /// # Errors
    /// It is another database.
    pub fn schema(&self) -> Result<&Schema> {
        self.schema.as_ref().context("a table of another database")
    }

    /// Opens the file of SQLite.
    ///
    /// # Errors
    /// It is another database, or the file cannot be opened.
    pub fn sqlite(&self) -> Result<Connection> {
        Ok(Connection::open(self.file()?)?)
    }

    /// Returns the path of SQLite's file.
    ///
    /// # Errors
    /// It is another database.
    pub fn file(&self) -> Result<&str> {
        let path = self.url.strip_prefix("sqlite:");
        path.context("a database that is no file")
    }

    /// Runs SQL; rows come back one a line, columns separated by `|`.
    ///
    /// # Errors
    /// It fails.
    pub fn query(&self, sql: &str) -> Result<String> {
        match self.kind {
            Kind::Sqlite => in_sqlite(&self.sqlite()?, sql),
            Kind::Postgres => psql(&self.url, sql),
            Kind::MariaDb => mariadb::sql(&self.url, sql),
            Kind::CrateDb => {
                self.schema()?.execute(sql)?;
                Ok(String::new())
            }
        }
    }

    /// Removes all rows of a table.
    ///
    /// # Errors
    /// It fails.
    pub fn empty(&self, table: &str) -> Result<()> {
        self.query(&match self.kind {
            Kind::Sqlite => format!("delete from {table}"),
            _ => format!("truncate table {table}"),
        })?;
        Ok(())
    }

    /// Gives back what the server would keep of a table that has been measured. The figures are
    /// known by then, so a failure is of no matter.
    pub fn remove(&self, table: &str) {
        match self.kind {
            Kind::Sqlite => {
                for end in ["", "-wal", "-shm"] {
                    let file = self.file().unwrap_or_default();
                    std::fs::remove_file(format!("{file}{end}")).ok();
                }
            }
            Kind::CrateDb => drop(self.schema().map(Schema::drop_table)),
            _ => drop(self.query(&format!("drop table {table}"))),
        }
    }

    /// Returns the number of readings.
    ///
    /// # Errors
    /// The database is down.
    pub fn count(&self) -> Result<u64> {
        self.count_of("readings")
    }

    /// Returns the number of rows of a table.
    ///
    /// # Errors
    /// The database is down, or the table is not there.
    pub fn count_of(&self, table: &str) -> Result<u64> {
        if let Some(schema) = &self.schema {
            return schema.count();
        }
        let count = self.query(&format!("select count(*) from {table}"))?;
        count.parse().context("a count")
    }

    /// Returns the primary keys of all readings.
    ///
    /// # Errors
    /// The database is down.
    pub fn ids(&self) -> Result<HashSet<u64>> {
        let ids = self.query("select id from readings")?;
        ids.lines().map(|line| Ok(line.parse()?)).collect()
    }
}

/// Runs statements of which the last one may return rows.
fn in_sqlite(db: &Connection, sql: &str) -> Result<String> {
    let mut lines = Vec::new();
    let mut batch = rusqlite::Batch::new(db, sql);
    while let Some(mut statement) = batch.next()? {
        let columns = statement.column_count();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let cells: Vec<String> = (0..columns)
                .map(|at| row.get_ref(at).map(text))
                .collect::<Result<_, _>>()?;
            lines.push(cells.join("|"));
        }
    }
    Ok(lines.join("\n"))
}

fn text(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => String::new(),
        ValueRef::Integer(n) => n.to_string(),
        ValueRef::Real(x) => x.to_string(),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            String::from_utf8_lossy(bytes).into_owned()
        }
    }
}
