//! TLS to a server whose certificate must be trusted.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustls::client::WantsClientCert;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::{ClientConfig, ConfigBuilder, RootCertStore};

use crate::certificate_verifier::{CertificateCheck, CertificateVerifier};

/// The setting of a database's URL that names the file of trusted certificates.
pub const URL_SETTING: &str = "the URL's sslrootcert";

/// Returns a configuration that trusts the certificates of a PEM file, or else those of the system.
/// `setting`: the setting that names the file. Reads files, so it blocks.
///
/// # Errors
/// The file cannot be read, or there are no certificates.
pub fn trusting(file: Option<&Path>, setting: &str) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(trusted_certificates(file, setting)?);
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS: {error}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// Begins a configuration of TLS to a database server, as its URL says: `check` of the certificate,
/// against those of a PEM file, or else those of the system. `unproven` is set if the server has
/// not proven that the certificate is its own. Reads files, so it blocks.
///
/// # Errors
/// The file cannot be read, or there are no certificates.
pub fn verifying(
    check: CertificateCheck,
    file: Option<&Path>,
    unproven: Arc<AtomicBool>,
) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, String> {
    let trusted = match check {
        CertificateCheck::Nothing => Vec::new(),
        _ => trusted_certificates(file, URL_SETTING)?,
    };
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(trusted.iter().cloned());
    let pinned = if file.is_some() { trusted } else { Vec::new() };
    let provider = Arc::new(ring::default_provider());
    let verifier = CertificateVerifier::new(check, roots, pinned, &provider, unproven);
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS: {error}"))?;
    let builder = builder.dangerous();
    Ok(builder.with_custom_certificate_verifier(Arc::new(verifier)))
}

/// Returns the certificates of a PEM file, or else those of the system; at least one. `setting`:
/// the setting that names the file. Reads files, so it blocks.
///
/// # Errors
/// The file cannot be read, or there are no certificates.
fn trusted_certificates(
    file: Option<&Path>,
    setting: &str,
) -> Result<Vec<CertificateDer<'static>>, String> {
    if let Some(path) = file {
        return certificates_of(path, setting);
    }
    let found = rustls_native_certs::load_native_certs();
    if !found.certs.is_empty() {
        return Ok(found.certs);
    }
    let why = found
        .errors
        .first()
        .map_or_else(|| "the system has none".to_owned(), ToString::to_string);
    Err(format!(
        "no trusted certificates for TLS: {why}; name a PEM file with {setting}"
    ))
}

/// Returns the certificates of a PEM file; at least one. `setting`: the setting that names the
/// file. Blocks.
///
/// # Errors
/// The file cannot be read, or there is no certificate in it.
pub fn certificates_of(path: &Path, setting: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(unusable_pem(path, setting, &PemError::NoItemsFound)),
        Err(error) => Err(unusable_pem(path, setting, &error)),
    }
}

/// Returns the error text of a PEM file. `setting`: the setting that names the file.
pub fn unusable_pem(path: &Path, setting: &str, error: &PemError) -> String {
    let why = match error {
        PemError::NoItemsFound => "nothing of the kind is in it".to_owned(),
        other => other.to_string(),
    };
    format!(
        "the PEM file {} of {setting} cannot be used: {why}",
        path.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_certificates_is_named_with_its_setting() {
        let why = |path: &str| trusting(Some(Path::new(path)), "mqtt.ca").unwrap_err();
        let missing = "the PEM file /absent/ca.pem of mqtt.ca cannot be used: ";
        assert!(why("/absent/ca.pem").starts_with(missing));
        let empty =
            "the PEM file Cargo.toml of mqtt.ca cannot be used: nothing of the kind is in it";
        assert_eq!(why("Cargo.toml"), empty);
    }
}
