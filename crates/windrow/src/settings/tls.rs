//! TLS for clients, from PEM files.

use std::fmt;
use std::sync::Arc;

use anyhow::Context;
use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::file;

/// The server's side of TLS.
#[derive(Clone, Debug)]
pub(super) struct ServerTls {
    pub(super) config: Arc<ServerConfig>,
    pub(super) certificate: Certificate,
}

/// The certificate that clients are shown, with its key. Clones share it, so that it can be
/// replaced while clients are served.
#[derive(Clone)]
pub struct Certificate(Arc<RwLock<Arc<CertifiedKey>>>);

impl Certificate {
    /// Shows another certificate to clients that connect from now on.
    pub fn replace(&self, other: &Self) {
        let new = other.current();
        *self.0.write() = new;
    }

    /// Returns the moment after which the certificate is not valid, in seconds since 1970; `None`
    /// if it cannot be read.
    pub fn not_after(&self) -> Option<i64> {
        super::not_after::not_after(self.current().cert.first()?)
    }

    fn current(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.0.read())
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Certificate")
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

/// Builds the server's side of TLS 1.2 and 1.3. `section` is its section of the configuration,
/// `alpn` the protocols that are spoken over it.
pub(super) fn server(
    section: &str,
    alpn: &[u8],
    tls: &file::WrittenTls,
) -> anyhow::Result<ServerTls> {
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
    // The provider is named here, because a process-wide default could be another one.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let certified = CertifiedKey::from_der(chain, key, &provider)
        .with_context(|| format!("{section}: certificate and key do not fit"))?;
    let certificate = Certificate(Arc::new(RwLock::new(Arc::new(certified))));
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(certificate.clone()));
    config.alpn_protocols = vec![alpn.to_vec()];
    Ok(ServerTls {
        config: Arc::new(config),
        certificate,
    })
}
