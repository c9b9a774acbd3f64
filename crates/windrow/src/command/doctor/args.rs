//! The command line of `doctor`.

use clap::Args;
use windrow_core::Secret;

/// Options of `doctor`.
#[derive(Args)]
#[command(
    after_help = "Nothing is written, but for --measure, which makes a table windrow_doctor_NUMBER and drops it.
Exit status: 0 it has looked; 1 it could not; 2 the command line is wrong."
)]
pub(crate) struct Doctor {
    /// The database (see `windrow databases`)
    // The value may hold a password, so help does not show it.
    #[arg(long, value_name = "URL", env = "WINDROW_TO", hide_env_values = true)]
    pub(super) to: Secret,

    /// Most tables to look at
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(super) tables: usize,

    /// PostgreSQL: measure what a row costs by itself and in a statement of many, for two seconds
    #[arg(long)]
    pub(super) measure: bool,
}
