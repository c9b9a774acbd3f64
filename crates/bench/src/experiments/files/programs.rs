//! The programs that load a CSV file into a database.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use windrow_testkit::postgres::psql_program;

use super::input::Input;
use crate::servers::{Kind, Table};

/// Returns the program that comes with the database, and loads a CSV file.
pub(in crate::experiments) fn own(table: &Table, input: &Input) -> Result<Command> {
    match table.kind {
        Kind::Sqlite => Ok(sqlite3(table.file()?, input)),
        Kind::Postgres => Ok(copy(&table.url, input)),
        Kind::MariaDb => load_data(&table.url, input),
        Kind::CrateDb => bail!("files are not loaded into CrateDB here"),
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

fn sqlite3(file: &str, input: &Input) -> Command {
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
