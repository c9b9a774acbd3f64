//! The databases that files go to.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use rusqlite::Connection;
use windrow_testkit::mariadb;
use windrow_testkit::postgres::{psql, psql_program};

use super::input::Input;
use crate::servers::Store;

/// A database with an empty table.
#[derive(Clone, Debug)]
pub(super) enum Place {
    Sqlite(PathBuf),
    Postgres(String),
    MariaDb(String),
}

impl Place {
    /// Makes a database of its own with the input's table.
    pub(super) fn new(store: &Store, input: &Input) -> Result<Self> {
        Ok(match store {
            Store::Sqlite(folder) => {
                let name = format!("{:016x}.db", rand::random::<u64>());
                let file = folder.path().join(name);
                let db = Connection::open(&file)?;
                db.pragma_update(None, "journal_mode", "wal")?;
                db.execute_batch(input.create)?;
                Self::Sqlite(file)
            }
            Store::Postgres(server) => {
                let url = server.create_database()?;
                psql(&url, input.create)?;
                // What the last measurement left to be written is written before this one.
                server.exec("checkpoint")?;
                Self::Postgres(url)
            }
            Store::MariaDb(server) => {
                let url = server.create_database()?;
                mariadb::sql(&url, input.create)?;
                Self::MariaDb(url)
            }
            Store::CrateDb(_) => anyhow::bail!("files are not loaded into CrateDB here"),
        })
    }

    pub(super) fn url(&self) -> String {
        match self {
            Self::Sqlite(file) => format!("sqlite:{}", file.display()),
            Self::Postgres(url) | Self::MariaDb(url) => url.clone(),
        }
    }

    pub(super) fn count(&self, table: &str) -> Result<u64> {
        let sql = format!("select count(*) from {table}");
        match self {
            Self::Sqlite(file) => {
                let db = Connection::open(file)?;
                let count: i64 = db.query_row(&sql, [], |row| row.get(0))?;
                Ok(u64::try_from(count)?)
            }
            Self::Postgres(url) => psql(url, &sql)?.parse().context("a count"),
            Self::MariaDb(url) => mariadb::sql(url, &sql)?.trim().parse().context("a count"),
        }
    }

    /// Gives the disk back. What was measured is known by then, so a failure is of no matter.
    pub(super) fn remove(&self, table: &str) {
        let sql = format!("drop table {table}");
        match self {
            Self::Sqlite(file) => {
                for end in ["", "-wal", "-shm"] {
                    std::fs::remove_file(format!("{}{end}", file.display())).ok();
                }
            }
            Self::Postgres(url) => drop(psql(url, &sql)),
            Self::MariaDb(url) => drop(mariadb::sql(url, &sql)),
        }
    }

    /// The program that comes with the database, and loads a CSV file.
    pub(super) fn own(&self, input: &Input) -> Result<Command> {
        match self {
            Self::Sqlite(file) => Ok(sqlite3(file, input)),
            Self::Postgres(url) => Ok(copy(url, input)),
            Self::MariaDb(url) => load_data(url, input),
        }
    }
}

/// The options of COPY for a file.
pub(super) fn copy_options(input: &Input, header: bool) -> String {
    let header = if header { ", header" } else { "" };
    let null = input.null.unwrap_or_default();
    format!("with (format csv{header}, null '{null}')")
}

fn copy(url: &str, input: &Input) -> Command {
    let mut command = Command::new(psql_program());
    command
        .args(["-Xq", "-v", "ON_ERROR_STOP=1", "-d", url, "-c"])
        .arg(format!(
            r"\copy {} from '{}' {}",
            input.table,
            input.csv.display(),
            copy_options(input, true)
        ));
    command
}

/// Where a word stands for no value, each field goes through a variable: LOAD DATA knows no other
/// way.
fn load_data(url: &str, input: &Input) -> Result<Command> {
    let address = url.strip_prefix("mysql://root@127.0.0.1:");
    let (port, database) = address
        .and_then(|address| address.split_once('/'))
        .context("the URL of a server of another kind")?;
    let fields = match input.null {
        None => String::new(),
        Some(null) => {
            let all = |f: &dyn Fn(&String) -> String| {
                let list: Vec<String> = input.columns.iter().map(f).collect();
                list.join(", ")
            };
            let variables = all(&|name| format!("@{name}"));
            let values = all(&|name| format!("{name} = nullif(@{name}, '{null}')"));
            format!(" ({variables}) set {values}")
        }
    };
    let mut command = Command::new("mariadb");
    command
        .args(["--no-defaults", "--local-infile=1", "-h127.0.0.1", "-uroot"])
        .arg(format!("-P{port}"))
        .args([database, "-e"])
        .arg(format!(
            "load data local infile '{}' into table {} fields terminated by ',' optionally enclosed by '\"' \
             escaped by '' lines terminated by '\\n' ignore 1 lines{fields}",
            input.csv.display(),
            input.table
        ));
    Ok(command)
}

fn sqlite3(file: &Path, input: &Input) -> Command {
    let mut command = Command::new("sqlite3");
    command.arg("-bail").arg(file).arg(format!(
        ".import --csv --skip 1 {} {}",
        input.csv.display(),
        input.table
    ));
    command
}

/// `pgloader`, for what it does by itself.
pub(super) fn pgloader(url: &str, input: &Input, folder: &Path) -> Result<Command> {
    let null = input
        .null
        .map_or(String::new(), |null| format!(", null if '{null}'"));
    // It takes a relative path for one beside its script.
    let csv = std::path::absolute(&input.csv)?;
    let script = format!(
        "load csv from '{}' ({}) into {url}?tablename={} ({})\n\
         with skip header = 1, fields optionally enclosed by '\"', fields terminated by ','{null};\n",
        csv.display(),
        input.columns.join(", "),
        input.table,
        input.columns.join(", ")
    );
    let file = folder.join(format!("{}.load", input.table));
    std::fs::write(&file, script)?;
    let mut command = Command::new("pgloader");
    command.arg("--quiet").arg(file).current_dir(folder);
    Ok(command)
}

/// True if a program can be started.
pub(super) fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

/// Microseconds for each of so many rows.
pub(super) fn micros(time: Duration, rows: u64) -> f64 {
    time.as_secs_f64() * 1e6 / crate::number::as_f64(rows)
}
