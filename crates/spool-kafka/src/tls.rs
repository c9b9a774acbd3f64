//! TLS connections to brokers.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

/// Returns a connector that trusts the certificates of a PEM file, or else those of the system.
pub(crate) fn connector(ca: Option<&Path>) -> Result<TlsConnector, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(trusted(ca)?);
    if roots.is_empty() {
        let where_from = match ca {
            Some(path) => format!("the file {} holds", path.display()),
            None => "the system has".to_owned(),
        };
        return Err(format!(
            "{where_from} no certificates that could be trusted; name a PEM file with ?ca=FILE"
        ));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS: {error}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

fn trusted(ca: Option<&Path>) -> Result<Vec<CertificateDer<'static>>, String> {
    let Some(path) = ca else {
        return Ok(rustls_native_certs::load_native_certs().certs);
    };
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    read.map_err(|error| format!("the PEM file {} cannot be used: {error}", path.display()))
}
