//! Logs, and the few lines that are said to a person on standard error.

use std::io::{IsTerminal, Write};

use anyhow::Context;
use tracing_subscriber::EnvFilter;
use windrow::settings::Log;

/// Starts logging to standard error.
pub(crate) fn init(log: &Log) -> anyhow::Result<()> {
    let filter = log.filter.as_deref().unwrap_or("info");
    let filter = EnvFilter::try_new(filter)
        .with_context(|| format!("log.filter: {filter:?} is not a level or a filter"))?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    let installed = if log.json {
        builder.json().try_init()
    } else {
        builder.try_init()
    };
    installed.map_err(|error| anyhow::anyhow!("logging cannot be started: {error}"))
}

/// One line to the person who started the program. A closed standard error is no reason to fail.
pub(crate) fn say(text: &str) {
    drop(writeln!(std::io::stderr(), "windrow: {text}"));
}
