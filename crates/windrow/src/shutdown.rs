//! Signals. The first one that ends the program lets it finish what was accepted; the second one
//! ends it at once. SIGHUP makes it read the configuration again.

use std::io::IsTerminal;

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use windrow::serve::{Finished, Reload, Server};

use crate::{notify, telemetry};

/// SIGTERM, SIGINT and SIGHUP, caught from the start.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    /// True if the program was started at a terminal.
    at_terminal: bool,
}

impl Signals {
    /// Starts to catch the signals.
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            at_terminal: std::io::stdin().is_terminal(),
        })
    }

    /// Runs a server to its end.
    pub(crate) async fn run(&mut self, server: Server) -> anyhow::Result<()> {
        let stop = CancellationToken::new();
        let reload = server.reload();
        let mut server = std::pin::pin!(server.run(stop.clone()));
        notify::ready();
        loop {
            tokio::select! {
                finished = &mut server => return outcome(finished),
                _ = self.hangup.recv() => match self.is_left_alone() {
                    true => break,
                    false => read_again(&reload).await,
                },
                () = ended(&mut self.terminate, &mut self.interrupt) => break,
            }
        }
        notify::stopping();
        telemetry::say("stopping: finishing what was accepted; a second signal ends at once");
        stop.cancel();
        tokio::select! {
            finished = &mut server => outcome(finished),
            () = self.next() => anyhow::bail!("ended at once by a second signal; writes under way were not waited for"),
        }
    }

    /// Returns true if the terminal at which the program was started was closed: then SIGHUP means
    /// just that.
    fn is_left_alone(&self) -> bool {
        self.at_terminal && !std::io::stdin().is_terminal()
    }

    /// Waits for a signal that ends a command. Closing the terminal ends it too.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            () = ended(&mut self.terminate, &mut self.interrupt) => {}
            _ = self.hangup.recv() => {}
        }
    }
}

async fn ended(terminate: &mut Signal, interrupt: &mut Signal) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

/// Reads the configuration again. If it has errors, nothing changes.
async fn read_again(reload: &Reload) {
    notify::reloading();
    let reload = reload.clone();
    let read = tokio::task::spawn_blocking(move || reload.run()).await;
    match read.map_err(anyhow::Error::from).flatten() {
        Ok(()) => telemetry::say("the configuration was read again"),
        Err(error) => telemetry::say(&format!(
            "error: the configuration cannot be read again, and the one before stays in force; correct the file and send SIGHUP again: {error:#}"
        )),
    }
    notify::ready();
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

/// Logs that entries are not in the database yet.
pub(crate) fn left_behind(entries: u64) -> String {
    let (what, verb) = match entries {
        1 => ("entry", "is"),
        _ => ("entries", "are"),
    };
    format!(
        "{entries} {what} of the spool {verb} not in the database yet and will be applied after the next start"
    )
}
