//! The runtime and the exit status of commands that end by themselves.

use std::process::ExitCode;

use windrow::settings::Log;

use crate::telemetry;

/// The exit status of an interrupted command, as shells count it: 128 and the number of SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;

/// Runs a command, and prints its error in one line. `log` is the filter of the log; without one,
/// only warnings are logged.
pub(crate) fn run(
    log: Option<&str>,
    work: impl Future<Output = anyhow::Result<ExitCode>>,
) -> ExitCode {
    let log = Log {
        filter: Some(log.unwrap_or("warn").into()),
        json: false,
    };
    run_logged(&log, work)
}

/// Runs a command with a log of its own.
pub(crate) fn run_logged(
    log: &Log,
    work: impl Future<Output = anyhow::Result<ExitCode>>,
) -> ExitCode {
    to_the_end(log, work).unwrap_or_else(|error| {
        telemetry::say(&format!("error: {error:#}"));
        ExitCode::FAILURE
    })
}

fn to_the_end(
    log: &Log,
    work: impl Future<Output = anyhow::Result<ExitCode>>,
) -> anyhow::Result<ExitCode> {
    telemetry::init(log)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("windrow")
        .build()?;
    let outcome = runtime.block_on(work);
    // Tasks may still wait for standard input, or after a second signal for a database that does
    // not answer. The end does not wait for them.
    runtime.shutdown_background();
    outcome
}
