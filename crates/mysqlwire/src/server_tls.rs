//! TLS to a server.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;
use windrow_sockets::{CertificateCheck, CertificateVerifier, trusted_certificates};

use crate::packet::{Stream, Wire};
use crate::target::{Target, TlsMode};

/// Puts TLS over a connection on which the server expects it.
pub(crate) async fn secure(wire: Wire, target: &Target) -> io::Result<Wire> {
    let early = || io::Error::other("the server sent bytes before TLS");
    let stream: Box<dyn Stream> = wire.into_stream().ok_or_else(early)?;
    let (mode, roots) = (target.tls, target.roots.clone());
    // Reading certificate files blocks.
    let config = tokio::task::spawn_blocking(move || config(mode, roots.as_deref()));
    let connector = TlsConnector::from(Arc::new(config.await.map_err(io::Error::other)??));
    let name = ServerName::try_from(target.host.clone()).map_err(io::Error::other)?;
    Ok(Wire::new(connector.connect(name, stream).await?))
}

fn config(mode: TlsMode, file: Option<&Path>) -> io::Result<ClientConfig> {
    let check = match mode {
        TlsMode::VerifyFull => CertificateCheck::Name,
        TlsMode::VerifyCa => CertificateCheck::Authority,
        TlsMode::Require | TlsMode::Disable => CertificateCheck::Nothing,
    };
    let trusted = match check {
        CertificateCheck::Nothing => Vec::new(),
        _ => trusted_certificates(file, "the URL's sslrootcert").map_err(io::Error::other)?,
    };
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(trusted.iter().cloned());
    let pinned = if file.is_some() { trusted } else { Vec::new() };
    let provider = Arc::new(ring::default_provider());
    let verifier = CertificateVerifier::new(check, roots, pinned, &provider, Arc::default());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    Ok(config.with_no_client_auth())
}
