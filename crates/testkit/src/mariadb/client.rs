//! SQL by the `mariadb` program.

use std::process::Command;

use anyhow::{Context, Result};

use super::programs::MariaDbPrograms;
use crate::left_out;
use crate::own_server::feed;

/// Where a server is, and as whom to speak to it.
#[derive(Debug, PartialEq, Eq)]
struct Address<'a> {
    user: &'a str,
    password: Option<&'a str>,
    host: &'a str,
    port: &'a str,
    database: &'a str,
}

/// Runs SQL; rows come back one a line, columns separated by `|`, NULL as `NULL`. Blocks until it
/// is done. MariaDB's tables of numbers, such as `seq_1_to_100`, are there on MySQL too.
///
/// # Errors
/// The server cannot be reached, or a statement fails (those after it are not run).
pub fn sql(url: &str, text: &str) -> Result<String> {
    if text.contains(NUMBERS) && is_mysql(url)? {
        return run(url, &with_numbers(text)?);
    }
    run(url, text)
}

/// Returns true if the server is MySQL.
///
/// # Errors
/// As [`sql`].
pub fn is_mysql(url: &str) -> Result<bool> {
    Ok(!run(url, "select version()")?.contains("MariaDB"))
}

/// Returns true if the server has a type of columns. Notes those that are left out, which are
/// MariaDB's own.
///
/// # Errors
/// As [`sql`].
pub fn has_type(url: &str, of: &str) -> Result<bool> {
    let is_there = !["uuid", "inet4", "inet6"].contains(&of) || !is_mysql(url)?;
    if !is_there {
        left_out::note(&format!("columns of the type {of}: MySQL has none"));
    }
    Ok(is_there)
}

/// The beginning of a table of numbers.
const NUMBERS: &str = "from seq_";

/// Writes tables of numbers as queries.
fn with_numbers(sql: &str) -> Result<String> {
    let mut texts = sql.split(NUMBERS);
    let mut out = "set cte_max_recursion_depth = 1000000; ".to_owned();
    out.push_str(texts.next().unwrap_or_default());
    for text in texts {
        let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let (range, rest) = text.split_at(end.unwrap_or(text.len()));
        let (first, last) = range.split_once("_to_").context("write seq_1_to_9")?;
        out.push_str(&format!(
            "from (with recursive s (seq) as (select {first} union all select seq + 1 from s where seq < {last}) \
             select seq from s) numbers{rest}"
        ));
    }
    Ok(out)
}

fn run(url: &str, sql: &str) -> Result<String> {
    let address = read(url).context("write mysql://USER@HOST:PORT/DATABASE")?;
    let programs = MariaDbPrograms::find()?;
    let mut command = Command::new(&programs.client);
    command
        .args(["--no-defaults", "--protocol=tcp", "-N", "-B", "--raw"])
        .args(programs.client_options())
        .args(["--default-character-set=utf8mb4", "-h", address.host])
        .args(["-P", address.port, "-u", address.user]);
    if let Some(password) = address.password {
        command.env("MYSQL_PWD", password);
    }
    command.arg(address.database);
    let rows = feed(&mut command, sql, "cannot run mariadb")?;
    Ok(rows.replace('\t', "|"))
}

/// Reads `mysql://user:password@host:port/database`; nothing in it is decoded.
fn read(url: &str) -> Option<Address<'_>> {
    let (_, rest) = url.split_once("://")?;
    let rest = rest.split('?').next()?;
    let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
    let (who, place) = authority.rsplit_once('@').unwrap_or(("root", authority));
    let (user, password) = match who.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (who, None),
    };
    let (host, port) = place.rsplit_once(':').unwrap_or((place, "3306"));
    Some(Address {
        user,
        password,
        host,
        port,
        database,
    })
}

/// Returns the statement that makes a database for a test.
pub(crate) fn creation(name: &str) -> String {
    format!("create database {name} character set utf8mb4 collate utf8mb4_general_ci")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_parts_of_a_url() {
        let address = read("mysql://u:p@127.0.0.1:3307/d?require_ssl=false").unwrap();
        assert_eq!(
            (address.user, address.password, address.host),
            ("u", Some("p"), "127.0.0.1")
        );
        assert_eq!((address.port, address.database), ("3307", "d"));
        let address = read("mariadb://h").unwrap();
        assert_eq!(
            (address.user, address.password, address.host),
            ("root", None, "h")
        );
        assert_eq!((address.port, address.database), ("3306", ""));
    }
}
