//! TLS. The cryptography is named here: there is no process-wide provider that another library
//! could have set.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use windrow_core::Fault;

/// Whose certificates are believed, and the configuration made from them when the first connection
/// is opened.
#[derive(Debug)]
pub(super) struct Secure {
    /// A PEM file; without one the system's authorities.
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

    /// # Errors
    /// The certificates cannot be read.
    pub(super) async fn connector(&self) -> Result<TlsConnector, Fault> {
        let make = || async {
            let roots = self.roots.clone();
            // Certificates are read from files.
            tokio::task::spawn_blocking(move || config(roots.as_deref()))
                .await
                .map_err(|error| Fault::internal(error.to_string()))?
        };
        let config = self.config.get_or_try_init(make).await?;
        Ok(TlsConnector::from(config.clone()))
    }
}

fn config(roots: Option<&Path>) -> Result<Arc<ClientConfig>, Fault> {
    let trusted = match roots {
        Some(path) => from_file(path)?,
        None => from_system()?,
    };
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(trusted);
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Fault::internal(format!("TLS: {error}")))?
        .with_root_certificates(store)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

fn from_file(path: &Path) -> Result<Vec<CertificateDer<'static>>, Fault> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let why = match read {
        Ok(certificates) if !certificates.is_empty() => return Ok(certificates),
        Ok(_) => "no certificate is in it".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(Fault::invalid(format!(
        "the PEM file {} of the URL's sslrootcert cannot be used: {why}",
        path.display()
    )))
}

fn from_system() -> Result<Vec<CertificateDer<'static>>, Fault> {
    let found = rustls_native_certs::load_native_certs();
    if !found.certs.is_empty() {
        return Ok(found.certs);
    }
    let why = found
        .errors
        .first()
        .map_or_else(|| "the system has none".to_owned(), ToString::to_string);
    Err(Fault::invalid(format!(
        "no trusted certificates for TLS: {why}; name a PEM file with the URL's parameter sslrootcert"
    )))
}
