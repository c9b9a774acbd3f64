//! The command line of `spool`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use windrow::settings::is_topic;
use windrow_core::Secret;

/// Options of `spool`.
#[derive(Args)]
#[command(
    after_help = "Nothing is changed, and a gateway may work on the spool meanwhile.\n\
Exit status: 0 the spool is whole; 1 it cannot be looked into; 2 the command line is wrong; 3 it is damaged.\n\
See docs/spool.md."
)]
pub(crate) struct SpoolArgs {
    #[command(subcommand)]
    pub(super) what: SpoolCommand,
}

/// A subcommand of `spool`.
#[derive(Subcommand)]
pub(super) enum SpoolCommand {
    /// Say what is in it, and with --to how much of that the database has
    Status(SpoolStatusArgs),
    /// Read all of it and say whether it is as it was written
    Verify(Verify),
    /// Print its entries as JSON, one a line: position, time, and the writes with table, op and
    /// values
    Dump(Dump),
}

/// Options of `spool status`.
#[derive(Args)]
pub(super) struct SpoolStatusArgs {
    #[command(flatten)]
    pub(super) place: SpoolLocation,

    /// The database that the spool is applied to
    // The value may hold a password, so help does not show it. No environment: a status of the
    // files alone must not ask a database that happens to be named there.
    #[arg(long, value_name = "URL")]
    pub(super) to: Option<Secret>,

    /// As one JSON object
    #[arg(long)]
    pub(super) json: bool,
}

/// Options of `spool verify`.
#[derive(Args)]
pub(super) struct Verify {
    #[command(flatten)]
    pub(super) place: SpoolLocation,

    /// As one JSON object
    #[arg(long)]
    pub(super) json: bool,
}

/// Options of `spool dump`.
#[derive(Args)]
pub(super) struct Dump {
    #[command(flatten)]
    pub(super) place: SpoolLocation,

    /// Which of its partitions
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) partition: u32,

    /// The first position [default: the first that is there]
    #[arg(
        long,
        value_name = "POSITION",
        default_value_t = 0,
        hide_default_value = true
    )]
    pub(super) from: u64,

    /// Most entries to print [default: all]
    #[arg(long, value_name = "N")]
    pub(super) limit: Option<u64>,
}

/// Where the spool is.
#[derive(Args)]
pub(super) struct SpoolLocation {
    /// The spool's directory, or the URL of its topic
    // The URL may hold a password, so help does not show it.
    #[arg(
        long,
        value_name = "DIR",
        env = "WINDROW_SPOOL",
        hide_env_values = true
    )]
    pub(super) directory: PathBuf,
}

impl SpoolLocation {
    /// Returns the URL, if it is a topic.
    pub(super) fn topic(&self) -> Option<&str> {
        self.directory.to_str().filter(|place| is_topic(place))
    }
}
