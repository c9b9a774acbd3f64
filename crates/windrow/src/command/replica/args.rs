//! The options of `windrow replica`.

use clap::{Args, Subcommand};
use windrow_core::Secret;

use crate::command::gateway::Admission;

/// Look after replicas
#[derive(Debug, Args)]
pub(crate) struct ReplicaArgs {
    #[command(subcommand)]
    pub(crate) what: ReplicaCommand,
}

/// A subcommand of `replica`.
#[derive(Debug, Subcommand)]
pub(crate) enum ReplicaCommand {
    /// See whether a database can be a replica, and print what the configuration needs for it
    Add(Add),
    /// Ask a running gateway how its replicas are: how far behind, away since when, what refused
    Status(ReplicaStatusArgs),
    /// Compare a replica with the primary, row by row, and mend it if asked
    Check(Check),
}

/// Which databases.
#[derive(Debug, Args)]
pub(crate) struct Ends {
    /// The primary
    #[arg(long, value_name = "URL", env = "WINDROW_TO", hide_env_values = true)]
    pub(crate) to: Secret,

    /// The replica (better: WINDROW_REPLICA)
    #[arg(
        long,
        value_name = "URL",
        env = "WINDROW_REPLICA",
        hide_env_values = true
    )]
    pub(crate) replica: Secret,

    /// A table that has another name at the replica; may be given several times
    #[arg(long, value_name = "TABLE=NAME")]
    pub(crate) table: Vec<String>,

    /// A column that the replica does not get; may be given several times
    #[arg(long, value_name = "TABLE.COLUMN")]
    pub(crate) leave_out: Vec<String>,
}

/// Options of `add`.
#[derive(Debug, Args)]
pub(crate) struct Add {
    /// ReplicaCommand the replica is to be called
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) ends: Ends,
}

/// Options of `check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) ends: Ends,

    /// Bring the replica what differs, and delete what it alone has
    #[arg(long)]
    pub(crate) repair: bool,
}

/// Options of `status`.
#[derive(Debug, Args)]
pub(crate) struct ReplicaStatusArgs {
    /// Where the gateway's HTTP listens
    #[arg(
        long,
        value_name = "ADDR",
        env = "WINDROW_HTTP",
        default_value = "127.0.0.1:8420"
    )]
    pub(crate) http: String,

    #[command(flatten)]
    pub(crate) admission: Admission,

    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}
