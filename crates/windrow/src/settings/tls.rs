//! TLS for clients, from PEM files.

use std::sync::Arc;

use anyhow::Context;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::file::Tls;

/// Builds the server's side of TLS 1.2 and 1.3. `section` is where it was configured; `alpn` what
/// is spoken over it.
pub(super) fn server(
    section: &str,
    alpn: &[u8],
    tls: &Tls,
) -> anyhow::Result<Arc<rustls::ServerConfig>> {
    let chain = CertificateDer::pem_file_iter(&tls.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .with_context(|| {
            format!(
                "{section}.certificate: {} cannot be read as PEM",
                tls.certificate.display()
            )
        })?;
    let key = PrivateKeyDer::from_pem_file(&tls.key).with_context(|| {
        format!(
            "{section}.key: {} holds no private key in PEM",
            tls.key.display()
        )
    })?;
    // The provider is named here: a process-wide default could be another one.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .with_context(|| format!("{section}: certificate and key do not fit"))?;
    config.alpn_protocols = vec![alpn.to_vec()];
    Ok(Arc::new(config))
}
