//! The command line: all commands, with the options of each where the command is.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::cli_error::refuse;
use crate::command::check_config::CheckConfig;
use crate::command::health::Health;
use crate::help;
use crate::output::print;
use crate::serve_options::Serve;

/// Gathers the single-row writes of many clients into multi-row statements; every client keeps its
/// own answer.
#[derive(Parser)]
#[command(name = "windrow", version, propagate_version = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// A subcommand.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run the gateway. Without any option: HTTP on loopback, rows go into ./windrow.db
    Serve(Box<Serve>),
    /// Load files into a table
    Load(Box<crate::command::load::Load>),
    /// Move rows of a table that serves as a queue into their final tables, one for each tenant if
    /// asked
    Move(Box<crate::command::moves::Move>),
    /// Look into a spool
    Spool(Box<crate::command::spool::SpoolArgs>),
    /// Look after replicas: databases that get what the primary gets
    Replica(Box<crate::command::replica::ReplicaArgs>),
    /// Look after the dead letters: rows and writes that the database refused after they had been
    /// acknowledged or taken from a queue
    #[command(alias = "rejects")]
    DeadLetters(Box<crate::command::dead_letters::DeadLetters>),
    /// Say which writes of a database would be joined, which not and why
    Doctor(crate::command::doctor::Doctor),
    /// Check that a gateway is running
    Health(Health),
    /// Say all that is wrong with a configuration file
    CheckConfig(CheckConfig),
    /// Print a configuration file that explains every knob and holds its default
    ExampleConfig {
        /// Print the list of the page docs/configuration.md instead
        #[arg(long)]
        markdown: bool,
    },
    /// List the databases that rows can go to, and what each of them cannot promise
    #[command(alias = "sinks")]
    Databases {
        /// As a part of the page docs/databases.md
        #[arg(long)]
        markdown: bool,
    },
    /// Write manual pages into a directory, one for each command
    #[command(hide = true)]
    ManPages {
        /// Where they go
        directory: PathBuf,
    },
    /// Print the completions of a shell, to be sourced by it
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
}

/// Reads the command line. Ends the program where it makes no sense or asks for help.
pub(crate) fn parse() -> Cli {
    let matches = command().try_get_matches();
    let read = matches.and_then(|matches| Cli::from_arg_matches(&matches));
    read.unwrap_or_else(|error| refuse(error))
}

/// Returns the command line as it is read.
pub(crate) fn command() -> clap::Command {
    help::on_one_screen(Cli::command())
}

/// Writes the manual pages.
pub(crate) fn man_pages(directory: &Path) -> anyhow::Result<()> {
    let written = clap_mangen::generate_to(command(), directory);
    written.with_context(|| format!("{} takes no pages", directory.display()))
}

/// Prints what a shell needs to complete `windrow`.
pub(crate) fn completions(shell: clap_complete::Shell) -> anyhow::Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command(), "windrow", &mut text);
    print(&String::from_utf8_lossy(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        command().debug_assert();
    }
}
