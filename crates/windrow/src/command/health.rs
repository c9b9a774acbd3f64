//! `windrow health`: checks that a gateway is running, or ready, for a watcher without an HTTP
//! client, such as a container without a shell.

use std::process::ExitCode;

use clap::Args;

use crate::command::gateway::{Admission, Gateway};
use crate::telemetry;

/// The options of the command.
#[derive(Debug, Args)]
pub(crate) struct Health {
    /// Where its HTTP listens
    #[arg(
        long,
        value_name = "ADDR",
        env = "WINDROW_HTTP",
        default_value = "127.0.0.1:8420"
    )]
    http: String,
    /// Ask whether it takes writes, not only whether it runs
    #[arg(long)]
    ready: bool,
    #[command(flatten)]
    admission: Admission,
}

/// Runs the command.
pub(crate) fn run(options: &Health) -> ExitCode {
    let path = if options.ready { "/readyz" } else { "/healthz" };
    match Gateway::new(&options.http, options.admission.token.as_ref()).get(path) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            telemetry::say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
