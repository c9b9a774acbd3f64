//! The command line of `check-config`.

use std::path::PathBuf;

use clap::Args;

/// Options of `check-config`.
#[derive(Args)]
#[command(after_help = "The environment counts as it does for `windrow serve`.
Exit status: 0 nothing is wrong; 1 something is; 2 the command line is wrong.
See docs/configuration.md.")]
pub(crate) struct CheckConfig {
    /// The configuration file
    #[arg(value_name = "FILE", env = "WINDROW_CONFIG")]
    pub(super) file: PathBuf,

    /// Try the databases that it names, too
    #[arg(long)]
    pub(super) connect: bool,
}
