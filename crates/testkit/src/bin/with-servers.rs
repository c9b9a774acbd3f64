//! Runs a command with one private PostgreSQL server for it and all it starts, and stops the server afterwards.
//!
//! `with-servers COMMAND [ARGUMENT ..]` sets `WINDROW_TEST_POSTGRES` to the server's URL, unless that is set already.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use windrow_testkit::postgres::{Postgres, SHARED_SERVER};

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
    // The server lives until the command has ended.
    let _server = start(&mut command)?;
    let status = command
        .status()
        .with_context(|| format!("cannot run {}", program.display()))?;
    // A command that a signal has ended has no code.
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

fn start(command: &mut Command) -> Result<Option<Postgres>> {
    if std::env::var_os(SHARED_SERVER).is_some_and(|url| !url.is_empty()) {
        return Ok(None);
    }
    let server = Postgres::start()?;
    command.env(SHARED_SERVER, server.url());
    Ok(Some(server))
}
