//! The end: the first signal finishes what was accepted, the second ends at once.

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use windrow::serve::{Finished, Server};

use crate::telemetry;

/// SIGTERM and SIGINT, caught from the start.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Starts to catch them.
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Runs a server to its end.
    pub(crate) async fn run(&mut self, server: Server) -> anyhow::Result<()> {
        let stop = CancellationToken::new();
        let mut server = std::pin::pin!(server.run(stop.clone()));
        tokio::select! {
            finished = &mut server => return outcome(finished),
            () = self.next() => {}
        }
        telemetry::say("stopping: finishing what was accepted; a second signal ends at once");
        stop.cancel();
        tokio::select! {
            finished = &mut server => outcome(finished),
            () = self.next() => anyhow::bail!("ended at once by a second signal; writes under way were not waited for"),
        }
    }

    /// Waits for one of them.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

fn outcome(finished: Option<Finished>) -> anyhow::Result<()> {
    let finished = finished.context(
        "ended after the time that limits.stop_wait allows; what was under way then was not answered, and it cannot be known whether it was written"
    )?;
    let left = match finished.left {
        None | Some(0) => "",
        Some(left) => &format!("; {}", left_behind(left)),
    };
    telemetry::say(&format!("stopped; all that was accepted is answered{left}"));
    Ok(())
}

/// What is said of entries that the database has not got.
pub(crate) fn left_behind(entries: u64) -> String {
    let (what, verb) = match entries {
        1 => ("entry", "is"),
        _ => ("entries", "are"),
    };
    format!(
        "{entries} {what} of the spool {verb} not in the database yet and will be applied after the next start"
    )
}
