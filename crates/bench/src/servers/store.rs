//! A database of any kind that is measured.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use rusqlite::Connection;
use tempfile::TempDir;
use windrow_testkit::mariadb::{self, MariaDb};
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

/// Where tables are made.
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

/// A database with an empty table `readings`, one for each measurement.
#[derive(Clone, Debug)]
pub enum Table {
    /// A file.
    Sqlite(PathBuf),
    /// A database's URL.
    Postgres(String),
    /// A database's URL.
    MariaDb(String),
    /// A schema of a cluster.
    CrateDb(Schema),
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
            Kind::MariaDb => Self::MariaDb(
                MariaDb::builder()
                    .fsync(true)
                    // The server's own defaults; the testkit's are smaller.
                    .set("innodb-buffer-pool-size", "128M")
                    .set("innodb-log-file-size", "96M")
                    .start()?,
            ),
            Kind::CrateDb => anyhow::bail!(
                "this experiment cannot start CrateDB; `load --to cratedb --url cratedb://HOST:PORT` measures one that runs"
            ),
        })
    }

    /// An empty table in a database of its own.
    ///
    /// # Errors
    /// The database refuses.
    pub fn table(&self) -> Result<Table> {
        match self {
            Self::Sqlite(dir) => {
                let file = dir
                    .path()
                    .join(format!("{:016x}.db", rand::random::<u64>()));
                let db = Connection::open(&file)?;
                // Kept in the file, so that every later connection has it too.
                db.pragma_update(None, "journal_mode", "wal")?;
                db.execute_batch(SQLITE_TABLE)?;
                Ok(Table::Sqlite(file))
            }
            Self::Postgres(server) => {
                let url = server.create_database()?;
                psql(&url, POSTGRES_TABLE)?;
                // What the last measurement left to be written is written before this one.
                server.exec("checkpoint")?;
                Ok(Table::Postgres(url))
            }
            Self::MariaDb(server) => {
                let url = server.create_database()?;
                mariadb::sql(&url, MARIADB_TABLE)?;
                Ok(Table::MariaDb(url))
            }
            Self::CrateDb(cluster) => Ok(Table::CrateDb(cluster.schema()?)),
        }
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

    /// The server, where there is one.
    ///
    /// # Errors
    /// There is none.
    pub fn server(&self) -> Result<&Postgres> {
        match self {
            Self::Postgres(server) => Ok(server),
            _ => anyhow::bail!("this experiment needs a PostgreSQL server: --to postgres"),
        }
    }

    /// Tells the report which version it is.
    ///
    /// # Errors
    /// The server is down.
    pub fn tell_version(&self, run: &mut Run) -> Result<()> {
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
    /// Returns Windrow's URL of the database.
    pub fn url(&self) -> String {
        match self {
            Self::Sqlite(file) => format!("sqlite:{}", file.display()),
            Self::Postgres(url) | Self::MariaDb(url) => url.clone(),
            Self::CrateDb(schema) => schema.url(),
        }
    }

    /// Runs a statement that gives nothing back.
    ///
    /// # Errors
    /// It fails.
    pub fn execute(&self, sql: &str) -> Result<()> {
        match self {
            Self::Sqlite(file) => Connection::open(file)?.execute_batch(sql)?,
            Self::Postgres(url) => drop(psql(url, sql)?),
            Self::MariaDb(url) => drop(mariadb::sql(url, sql)?),
            Self::CrateDb(schema) => schema.execute(sql)?,
        }
        Ok(())
    }

    /// Gives back what the server would keep of a table that has been measured.
    ///
    /// # Errors
    /// The database is down.
    pub fn clear(&self) -> Result<()> {
        match self {
            Self::CrateDb(schema) => schema.drop_table(),
            _ => Ok(()),
        }
    }

    /// Returns the number of readings.
    ///
    /// # Errors
    /// The database is down.
    pub fn count(&self) -> Result<u64> {
        self.count_of("readings")
    }

    /// Returns the number of rows of another table that was made beside it.
    ///
    /// # Errors
    /// The database is down, or the table is not there.
    pub fn count_of(&self, table: &str) -> Result<u64> {
        let sql = format!("select count(*) from {table}");
        match self {
            Self::Sqlite(file) => {
                let count =
                    Connection::open(file)?.query_row(&sql, [], |row| row.get::<_, i64>(0))?;
                Ok(u64::try_from(count)?)
            }
            Self::Postgres(url) => psql(url, &sql)?.parse().context("a count"),
            Self::MariaDb(url) => mariadb::sql(url, &sql)?.parse().context("a count"),
            Self::CrateDb(schema) if table == "readings" => schema.count(),
            Self::CrateDb(_) => anyhow::bail!("CrateDB has no table {table} here"),
        }
    }

    /// All primary keys.
    ///
    /// # Errors
    /// The database is down.
    pub fn ids(&self) -> Result<HashSet<u64>> {
        const SQL: &str = "select id from readings";
        match self {
            Self::Sqlite(file) => {
                let db = Connection::open(file)?;
                let mut statement = db.prepare(SQL)?;
                let ids = statement.query_map([], |row| row.get::<_, i64>(0))?;
                ids.map(|id| Ok(u64::try_from(id?)?)).collect()
            }
            Self::Postgres(url) => ids_in(&psql(url, SQL)?),
            Self::MariaDb(url) => ids_in(&mariadb::sql(url, SQL)?),
            Self::CrateDb(_) => anyhow::bail!("the keys of a CrateDB table are not read here"),
        }
    }
}

/// One a line.
fn ids_in(text: &str) -> Result<HashSet<u64>> {
    text.lines().map(|line| Ok(line.parse()?)).collect()
}
