//! The command line of `dead-letters`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};
use windrow_core::Secret;

/// Options of `dead-letters`.
#[derive(Args)]
#[command(
    after_help = "The dead letters are in the table windrow_rejected of the database: writes that a spool had acknowledged and the database refused, \
and rows that a move could not bring into their table.\n\
Exit status: 0 all that was asked for was done; 1 an error ended it; 2 the command line is wrong; \
3 some dead letters were refused again, or were not there.\nSee docs/spool.md."
)]
pub(crate) struct DeadLetters {
    #[command(subcommand)]
    pub(super) what: DeadLettersCommand,
}

/// A subcommand of `dead-letters`.
#[derive(Subcommand)]
pub(super) enum DeadLettersCommand {
    /// List them, a line each
    List(List),
    /// Show all that is kept of one
    Show(Show),
    /// Write what they hold once more; each is taken away in the transaction that writes it, so
    /// nothing is written twice. A dead letter that is refused again stays
    Retry(Retry),
    /// Take them away without writing what they hold
    Drop(Chosen),
}

/// Options of `dead-letters list`.
#[derive(Args)]
pub(super) struct List {
    #[command(flatten)]
    pub(super) database: LetterPlace,

    /// Most letters to list [default: all]
    #[arg(long, value_name = "N")]
    pub(super) limit: Option<u64>,

    /// As JSON, a line each, with all that is kept
    #[arg(long)]
    pub(super) json: bool,
}

/// Options of `dead-letters show`.
#[derive(Args)]
pub(super) struct Show {
    /// The letter's number
    #[arg(value_name = "ID")]
    pub(super) id: u64,

    #[command(flatten)]
    pub(super) database: LetterPlace,

    /// As one JSON object
    #[arg(long)]
    pub(super) json: bool,
}

/// Options of `dead-letters retry`.
#[derive(Args)]
pub(super) struct Retry {
    #[command(flatten)]
    pub(super) chosen: Chosen,

    /// The file of the letter's entry, if the table did not take that: the letter's message
    /// names it. For one letter
    #[arg(long, value_name = "FILE", conflicts_with = "all")]
    pub(super) entry: Option<PathBuf>,
}

/// Which letters `dead-letters retry` and `dead-letters drop` are about.
#[derive(Args)]
#[command(group(ArgGroup::new("which").required(true).args(["ids", "all"])))]
pub(super) struct Chosen {
    /// The letters' numbers
    #[arg(value_name = "ID")]
    pub(super) ids: Vec<u64>,

    /// All that are there when it begins
    #[arg(long)]
    pub(super) all: bool,

    #[command(flatten)]
    pub(super) database: LetterPlace,
}

/// Where the letters are.
#[derive(Args)]
pub(super) struct LetterPlace {
    /// The database that holds them: that of the spool, or the one that a move has taken rows from
    // The value may hold a password, so help does not show it.
    #[arg(long, value_name = "URL", env = "WINDROW_TO", hide_env_values = true)]
    pub(super) to: Secret,

    /// The spool's directory, which holds them where the database has no transactions (CrateDB,
    /// ArangoDB)
    #[arg(
        long,
        value_name = "DIR",
        env = "WINDROW_SPOOL",
        hide_env_values = true
    )]
    pub(super) spool: Option<PathBuf>,
}
