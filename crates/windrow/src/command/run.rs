//! The runtime and the exit status of commands that come to an end.

use std::process::ExitCode;

use windrow::settings::Log;

use crate::telemetry;

/// The exit status of an interrupted command, as shells count it: 128 and the number of SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;

/// Runs a command, and prints its error in one line. `log`: the filter of the log, else warnings.
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
    // What may still hang on standard input, or after a second signal on a database that does not
    // answer, is not waited for.
    runtime.shutdown_background();
    outcome
}
