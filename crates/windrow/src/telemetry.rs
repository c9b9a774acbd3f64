//! Logs, and the few lines for a person on standard error.

use std::io::{IsTerminal, Write};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::reload::Handle;
use windrow::settings::Log;

/// Changes what is logged while the program runs.
pub(crate) struct LogFilter(Box<dyn Fn(EnvFilter) -> anyhow::Result<()> + Send + Sync>);

impl LogFilter {
    /// Logs according to `log` from now on.
    ///
    /// # Errors
    /// The filter is invalid; nothing was changed.
    pub(crate) fn set(&self, log: &Log) -> anyhow::Result<()> {
        (self.0)(filter(log)?)
    }

    fn of<S: 'static>(handle: Handle<EnvFilter, S>) -> Self {
        Self(Box::new(move |filter| Ok(handle.reload(filter)?)))
    }
}

/// The target of lines for the person who started the program, if the log is JSON. They are shown
/// whatever the filter is, and nothing else has this target.
const NOTICES: &str = "windrow::notice";

fn filter(log: &Log) -> anyhow::Result<EnvFilter> {
    let read = log.filter()?;
    let level = if log.json { "info" } else { "off" };
    Ok(read.add_directive(format!("{NOTICES}={level}").parse()?))
}

/// Starts logging to standard error.
pub(crate) fn init(log: &Log) -> anyhow::Result<LogFilter> {
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter(log)?)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    let (installed, handle) = if log.json {
        let builder = builder.json().with_filter_reloading();
        let handle = LogFilter::of(builder.reload_handle());
        (builder.try_init(), handle)
    } else {
        let builder = builder.with_filter_reloading();
        let handle = LogFilter::of(builder.reload_handle());
        (builder.try_init(), handle)
    };
    installed.map_err(|error| anyhow::anyhow!("logging cannot be started: {error}"))?;
    Ok(handle)
}

/// Prints a line for the person who started the program, as a record of the log if that is JSON.
/// Ignores a closed standard error.
pub(crate) fn say(text: &str) {
    if tracing::enabled!(target: NOTICES, tracing::Level::INFO) {
        match text.split_once(": ") {
            Some(("error", text)) => tracing::error!(target: NOTICES, "{text}"),
            Some(("warning", text)) => tracing::warn!(target: NOTICES, "{text}"),
            _ => tracing::info!(target: NOTICES, "{text}"),
        }
        return;
    }
    drop(writeln!(std::io::stderr(), "windrow: {text}"));
}
