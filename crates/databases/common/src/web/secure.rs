//! TLS, configured when the first connection is opened.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::ClientConfig;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use windrow_core::Fault;
use windrow_sockets::{URL_SETTING, trusting};

/// The trusted authorities, and the TLS configuration, which is made when the first connection is
/// opened.
#[derive(Debug)]
pub(super) struct Secure {
    /// A PEM file; without one, the system's authorities are trusted.
    roots: Option<PathBuf>,
    config: OnceCell<Arc<ClientConfig>>,
}

impl Secure {
    pub(super) fn new(roots: Option<PathBuf>) -> Self {
        Self {
            roots,
            config: OnceCell::new(),
        }
    }

    /// Returns the TLS configuration.
    ///
    /// # Errors
    /// The certificates cannot be read.
    pub(super) async fn connector(&self) -> Result<TlsConnector, Fault> {
        let make = || async {
            let roots = self.roots.clone();
            // Certificates are read from files.
            tokio::task::spawn_blocking(move || trusting(roots.as_deref(), URL_SETTING))
                .await
                .map_err(|error| Fault::internal(error.to_string()))?
                .map_err(Fault::invalid)
        };
        let config = self.config.get_or_try_init(make).await?;
        Ok(TlsConnector::from(config.clone()))
    }
}
