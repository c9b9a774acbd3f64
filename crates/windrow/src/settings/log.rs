//! Checks the section `[log]`.

use tracing_subscriber::EnvFilter;

use super::file::Log;

impl Log {
    /// Returns the filter of what is logged.
    ///
    /// # Errors
    /// The text is neither a level nor a filter.
    pub fn filter(&self) -> anyhow::Result<EnvFilter> {
        let written = self.filter.as_deref().unwrap_or("info");
        EnvFilter::try_new(written).map_err(|_| {
            anyhow::anyhow!(
                "log.filter: {written:?} is not a level or a filter; write error, warn, info, debug or trace, or parts such as windrow=debug with commas between them"
            )
        })
    }
}
