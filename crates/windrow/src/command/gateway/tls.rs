//! TLS to a gateway on this machine. Its certificate is for the name that clients use, and not for
//! 127.0.0.1, so it is not verified. Therefore only loopback addresses are allowed.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use anyhow::ensure;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use windrow_sockets::{CertificateCheck, verifying};

/// Starts TLS on a connection to a gateway.
///
/// # Errors
/// The address is not one of this machine's loopback.
pub(super) fn start(
    stream: TcpStream,
    address: SocketAddr,
) -> anyhow::Result<impl Read + Write + use<>> {
    ensure!(
        address.ip().is_loopback(),
        "{address} speaks TLS; a gateway that does is only asked on 127.0.0.1 or ::1, where no certificate has to be verified"
    );
    let config = verifying(CertificateCheck::Nothing, None, Arc::default());
    let config = config.map_err(anyhow::Error::msg)?.with_no_client_auth();
    let name = ServerName::IpAddress(address.ip().into());
    let connection = ClientConnection::new(Arc::new(config), name)?;
    Ok(StreamOwned::new(connection, stream))
}
