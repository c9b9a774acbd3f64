//! Runs a command with one private PostgreSQL server and one private MariaDB server for it and all
//! it starts, and stops them afterwards.
//!
//! `with-servers COMMAND [ARGUMENT ..]` sets `WINDROW_TEST_POSTGRES` and `WINDROW_TEST_MARIADB` to
//! the servers' URLs, unless they are set already. MariaDB is left out where it is not installed.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use windrow_testkit::mariadb::{self, MariaDb};
use windrow_testkit::postgres::{self, Postgres};

#[expect(
    clippy::print_stderr,
    reason = "the program's only way to say why it failed"
)]
fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("with-servers: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let program = arguments
        .next()
        .context("usage: with-servers COMMAND [ARGUMENT ..]")?;
    let mut command = Command::new(&program);
    command.args(arguments);
    // The servers live until the command has ended.
    let _servers = (start_postgres(&mut command)?, start_mariadb(&mut command)?);
    let status = command
        .status()
        .with_context(|| format!("cannot run {}", program.display()))?;
    // A command that a signal has ended has no code.
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

fn start_postgres(command: &mut Command) -> Result<Option<Postgres>> {
    if is_named(postgres::SHARED_SERVER) {
        return Ok(None);
    }
    let server = Postgres::start()?;
    command.env(postgres::SHARED_SERVER, server.url());
    Ok(Some(server))
}

fn start_mariadb(command: &mut Command) -> Result<Option<MariaDb>> {
    if is_named(mariadb::SHARED_SERVER) || !mariadb::is_installed() {
        return Ok(None);
    }
    let server = MariaDb::start()?;
    command.env(mariadb::SHARED_SERVER, server.url());
    Ok(Some(server))
}

fn is_named(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|url| !url.is_empty())
}
