//! Reads the configuration again while the server runs.

use parking_lot::Mutex;
use windrow::settings::Settings;
use windrow::settings::check::changed;
use windrow_core::Secret;

use crate::serve_options::Serve;
use crate::telemetry::{self, LogFilter};

/// Reads the configuration of a command line again.
pub(crate) struct ConfigReader {
    args: Serve,
    log: LogFilter,
    /// The file at the start. Settings that differ from it but need a restart are logged by name.
    started_with: Mutex<Option<Secret>>,
}

impl ConfigReader {
    /// Makes a reader for the command line with which the server was started.
    pub(crate) fn new(args: Serve, log: LogFilter) -> Self {
        Self {
            started_with: Mutex::new(args.text()),
            args,
            log,
        }
    }

    /// Returns the current settings. The log's filter takes effect at once.
    ///
    /// # Errors
    /// The errors in the configuration; nothing was changed.
    pub(crate) fn run(&self) -> anyhow::Result<Settings> {
        let file = self.args.clone().into_file()?;
        let settings = Settings::new(&file)?;
        self.log.set(&file.log)?;
        self.tell_what_waits();
        Ok(settings)
    }

    fn tell_what_waits(&self) {
        let started = self.started_with.lock();
        let now = self.args.text();
        let (Some(before), Some(now)) = (started.as_ref(), now.as_ref()) else {
            return;
        };
        let waiting = changed(before.reveal(), now.reveal());
        if !waiting.is_empty() {
            telemetry::say(&format!(
                "what was changed here takes effect at the next start: {}",
                waiting.join(", ")
            ));
        }
    }
}
