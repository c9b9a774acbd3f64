//! SQL by the `psql` program.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::programs::PostgresPrograms;

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
    let mut child = Command::new(program())
        .args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-d", url, "-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context(
            "cannot run psql; install it, for example with: apt-get install postgresql-client",
        )?;
    if let Some(mut stdin) = child.stdin.take() {
        // A psql that could not connect has closed its end; its own words, below, say more than a
        // broken pipe.
        stdin.write_all(sql.as_bytes()).ok();
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!(
            "psql: {}",
            String::from_utf8_lossy(&output.stderr).trim_end()
        );
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.trim_end_matches('\n').to_owned())
}
