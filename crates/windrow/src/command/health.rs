//! `windrow health`: checks that a gateway is running, for a watcher without an HTTP client, such
//! as a container without a shell.

use std::process::ExitCode;

use crate::command::gateway::Gateway;
use crate::telemetry;

/// Runs the command. `http`: where HTTP listens.
pub(crate) fn run(http: &str) -> ExitCode {
    match Gateway::new(http, None).get("/healthz") {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            telemetry::say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
