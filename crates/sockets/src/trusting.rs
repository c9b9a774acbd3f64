//! TLS to a server whose certificate must be trusted.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// Returns a configuration that trusts the certificates of a PEM file, or else those of the system.
/// Reads files, so it blocks.
///
/// # Errors
/// The file cannot be read, or there are no certificates.
pub fn trusting(ca: Option<&Path>) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(trusted(ca)?);
    if roots.is_empty() {
        return Err(match ca {
            Some(path) => format!("the file {} holds no certificates", path.display()),
            None => {
                "the system has no certificates that could be trusted; name a PEM file with `ca`"
                    .to_owned()
            }
        });
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS: {error}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

fn trusted(ca: Option<&Path>) -> Result<Vec<CertificateDer<'static>>, String> {
    let Some(path) = ca else {
        return Ok(rustls_native_certs::load_native_certs().certs);
    };
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    read.map_err(|error| format!("the PEM file {} cannot be used: {error}", path.display()))
}
