//! `windrow serve --drain-only`: applies a spool to its database, and ends.

use std::process::ExitCode;

use tokio_util::sync::CancellationToken;
use windrow::serve::{DrainOnly, Drained};
use windrow::settings::Settings;

use crate::command::run::{INTERRUPTED, run_logged};
use crate::output::counted;
use crate::serve_options::Serve;
use crate::shutdown::{Signals, left_behind};
use crate::telemetry;

/// Runs the command. The exit status tells if the database has everything that was in the spool.
pub(crate) fn run(args: Serve) -> ExitCode {
    let file = match args.into_file() {
        Ok(file) => file,
        Err(error) => {
            telemetry::say(&format!("error: {error:#}"));
            return ExitCode::FAILURE;
        }
    };
    run_logged(&file.log, async {
        let settings = Settings::to_drain(&file)?;
        let mut signals = Signals::listen()?;
        let draining = tokio::select! {
            started = DrainOnly::start(&settings) => started?,
            () = signals.next() => return Ok(ExitCode::from(INTERRUPTED)),
        };
        telemetry::say(&format!("spool: {}", draining.found().await));
        to_the_end(draining, &settings, signals).await
    })
}

async fn to_the_end(
    draining: DrainOnly,
    settings: &Settings,
    mut signals: Signals,
) -> anyhow::Result<ExitCode> {
    let stop = CancellationToken::new();
    let mut running = std::pin::pin!(draining.run(stop.clone()));
    let drained = tokio::select! {
        drained = &mut running => drained?,
        () = signals.next() => {
            telemetry::say("stopping: finishing the transaction under way; a second signal ends at once");
            stop.cancel();
            tokio::select! {
                drained = &mut running => drained?,
                () = signals.next() => anyhow::bail!("ended at once by a second signal"),
                () = tokio::time::sleep(settings.stop_wait) => anyhow::bail!(
                    "ended after the time that limits.stop_wait allows; what was under way is found out at the next start"
                ),
            }
        }
    };
    telemetry::say(&sentence(drained));
    Ok(match drained.left {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(INTERRUPTED),
    })
}

/// Returns a sentence about what was applied.
fn sentence(drained: Drained) -> String {
    let mut text = format!("{} applied", counted(drained.applied, "entry", "entries"));
    if drained.refused > 0 {
        text.push_str(&format!(
            ", {} of them as dead letters in the table windrow_rejected",
            drained.refused
        ));
    }
    match drained.left {
        0 => text.push_str("; the database has all that was in the spool"),
        left => text.push_str(&format!("; {}", left_behind(left))),
    }
    text
}
