//! TLS to a server.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio_rustls::TlsConnector;
use windrow_sockets::{CertificateCheck, verifying};

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
    let config = verifying(check, file, Arc::default()).map_err(io::Error::other)?;
    Ok(config.with_no_client_auth())
}
