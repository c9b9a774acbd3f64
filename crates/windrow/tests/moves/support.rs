//! The program, and databases for it.

use std::process::Command;

use windrow_testkit::command::{self, CommandOutput, Running};
pub use windrow_testkit::command::{number, until};
use windrow_testkit::postgres::{self, PostgresDatabase};
pub use windrow_testkit::process::TEST_TIMEOUT;

/// An empty database of PostgreSQL.
pub fn postgres() -> PostgresDatabase {
    postgres::shared().unwrap()
}

fn command(from: &str, source: &str, destination: &str, more: &[&str]) -> Command {
    let mut command = command::command(env!("CARGO_BIN_EXE_windrow"));
    command
        .args(["move", "--from", from, "--source", source])
        .args(["--destination", destination, "--progress", "none"])
        .args(more);
    command
}

/// Runs `windrow move` to its end.
pub fn move_rows(from: &str, source: &str, destination: &str, more: &[&str]) -> CommandOutput {
    command::run(&mut command(from, source, destination, more))
}

/// Runs a command of the program to its end.
pub fn windrow(arguments: &[&str]) -> CommandOutput {
    command::run(command::command(env!("CARGO_BIN_EXE_windrow")).args(arguments))
}

/// A `windrow move` that runs. Killed when it is dropped.
pub fn start(from: &str, source: &str, destination: &str, more: &[&str]) -> Running {
    Running::start(&mut command(from, source, destination, more))
}

/// Runs SQL; rows come back one a line.
#[track_caller]
pub fn sql(database: &PostgresDatabase, text: &str) -> String {
    database.exec(text).unwrap().trim_end().to_owned()
}
