//! TLS, which verifies what libpq verifies.
//!
//! Each connection gets its cryptography provider from here, so that no other library can change it
//! for the process.

mod binding;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivateKeyDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use windrow_core::{Fault, FaultClass};
use windrow_sockets::{CertificateCheck, certificates_of, unusable_pem, verifying};

use super::entrance::{Entrance, Refusal};
use super::socket::Socket;
use crate::target::{Address, Roots, SslMode, TlsOptions};
pub use binding::server_end_point;

/// The SQLSTATE of a connection that Windrow, not the server, has refused. It says nothing about
/// the role: sessions whose role the server still accepts go on.
pub(super) const NOT_ESTABLISHED: &str = "08001";

/// The ALPN name of PostgreSQL's protocol.
const PROTOCOL: &[u8] = b"postgresql";

/// A TLS connection with its channel binding data.
pub(super) struct TlsSocket {
    pub(super) socket: Socket,
    pub(super) binding: Option<Vec<u8>>,
}

/// Asks the server for TLS and reads exactly one byte. Bytes that a man in the middle adds after it
/// become part of the TLS handshake, which then fails.
pub(super) async fn ask(socket: &mut TcpStream) -> io::Result<u8> {
    let mut request = BytesMut::new();
    frontend::ssl_request(&mut request);
    socket.write_all(&request).await?;
    socket.read_u8().await
}

/// Performs the TLS handshake.
pub(super) async fn secure(
    socket: TcpStream,
    entrance: &Entrance<'_>,
) -> Result<TlsSocket, Refusal> {
    let options = entrance.target.tls.clone();
    let is_direct = options.is_direct;
    let unproven = Arc::new(AtomicBool::new(false));
    let mut config = {
        let unproven = unproven.clone();
        // Reading certificate files blocks.
        tokio::task::spawn_blocking(move || config(&options, unproven))
            .await
            .map_err(|error| Fault::internal(error.to_string()))??
    };
    // With direct TLS the server requires the ALPN name.
    if is_direct {
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
    }
    let name = server_name(entrance)?;
    let stream = TlsConnector::from(Arc::new(config))
        .connect(name, socket)
        .await
        .map_err(|error| failed(entrance, &error))?;
    let certificate = stream
        .get_ref()
        .1
        .peer_certificates()
        .and_then(<[_]>::first);
    let binding = certificate
        .filter(|_| !unproven.load(Ordering::Relaxed))
        .and_then(|certificate| server_end_point(certificate, &ring::default_provider()));
    Ok(TlsSocket {
        socket: Socket::Tls(Box::new(stream.into())),
        binding,
    })
}

fn config(options: &TlsOptions, unproven: Arc<AtomicBool>) -> Result<ClientConfig, Fault> {
    let check = match options.mode {
        SslMode::VerifyFull => CertificateCheck::Name,
        SslMode::VerifyCa => CertificateCheck::Authority,
        _ => CertificateCheck::Nothing,
    };
    let file = match &options.roots {
        Roots::File(path) => Some(path.as_path()),
        Roots::System => None,
    };
    let builder = verifying(check, file, unproven).map_err(Fault::invalid)?;
    let Some((certificate, key)) = &options.identity else {
        return Ok(builder.with_no_client_auth());
    };
    let chain = certificates_of(certificate, "the URL's sslcert").map_err(Fault::invalid)?;
    let key = PrivateKeyDer::from_pem_file(key)
        .map_err(|error| Fault::invalid(unusable_pem(key, "the URL's sslkey", &error)))?;
    builder
        .with_client_auth_cert(chain, key)
        .map_err(|error| Fault::invalid(format!("sslcert and sslkey do not fit: {error}")))
}

fn server_name(entrance: &Entrance<'_>) -> Result<ServerName<'static>, Fault> {
    let name = match &entrance.host.address {
        Address::Tcp(name) => name.clone(),
        Address::Unix(_) => "localhost".to_owned(),
    };
    ServerName::try_from(name)
        .map_err(|_| Fault::invalid(format!("{} is no name that TLS could use", entrance.host)))
}

/// Returns the refusal for a failed handshake. After a certificate error another attempt would fail
/// too.
fn failed(entrance: &Entrance<'_>, error: &io::Error) -> Refusal {
    let peer = entrance.peer();
    let rustls = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let fault = match rustls {
        Some(rustls) => Fault::new(
            FaultClass::Denied,
            NOT_ESTABLISHED,
            format!("TLS with the server at {peer} failed: {rustls}"),
        ),
        None => Fault::unavailable(format!("TLS with the server at {peer} failed: {error}")),
    };
    Refusal {
        fault,
        other_way: true,
    }
}
