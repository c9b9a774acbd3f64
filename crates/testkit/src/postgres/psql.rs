//! SQL by the `psql` program.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::programs::PostgresPrograms;
use crate::own_server::feed;

/// `psql` of the server's own version where there is one: it starts faster than the wrapper that
/// Debian puts on the PATH. Or else what the PATH has.
pub fn program() -> PathBuf {
    PostgresPrograms::find().map_or_else(|_| PathBuf::from("psql"), |found| found.program("psql"))
}

/// Runs SQL, one transaction a statement; rows come back one a line, columns separated by `|`, NULL
/// as nothing. Blocks until it is done.
///
/// # Errors
/// The server cannot be reached, or a statement fails (those after it are not run).
pub fn psql(url: &str, sql: &str) -> Result<String> {
    let advice = "cannot run psql; install it, for example with: apt-get install postgresql-client";
    let mut command = Command::new(program());
    command.args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-d", url, "-f", "-"]);
    feed(&mut command, sql, advice)
}
