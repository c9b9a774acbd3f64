//! TLS for clients, and the data to which an authentication can be bound.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::Poll;

use rustls::ServerConfig;
use rustls::server::Acceptor;
use tokio::io::ReadBuf;
use tokio::net::TcpStream;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;
use windrow_pgwire::scram::Binding;
use windrow_pgwire::wire::server_end_point;

/// The protocol's name in TLS (ALPN).
const PROTOCOL: &[u8] = b"postgresql";

/// The first byte of a TLS handshake.
const HANDSHAKE: u8 = 0x16;

/// The configuration of TLS.
#[derive(Clone, Debug)]
pub(crate) struct Tls(Arc<ServerConfig>);

impl Tls {
    /// Returns TLS that names the protocol, which clients with `sslnegotiation=direct` require.
    pub(crate) fn new(config: &ServerConfig) -> Self {
        let mut config = config.clone();
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        Self(Arc::new(config))
    }

    /// Performs the handshake. `direct`: true if the client began with it, and must have named the
    /// protocol.
    pub(crate) async fn accept(
        &self,
        socket: TcpStream,
        direct: bool,
    ) -> io::Result<(TlsStream<TcpStream>, Binding)> {
        let begun = LazyConfigAcceptor::new(Acceptor::default(), socket).await?;
        // Resolved here as in the handshake: only the certificate that is shown to this client
        // counts.
        let shown = self.0.cert_resolver.resolve(begun.client_hello());
        let binding = shown.and_then(|shown| {
            let certificate = shown.cert.first()?;
            server_end_point(certificate, self.0.crypto_provider())
        });
        let stream = begun.into_stream(Arc::clone(&self.0)).await?;
        if direct && stream.get_ref().1.alpn_protocol() != Some(PROTOCOL) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a direct TLS connection without the ALPN extension",
            ));
        }
        Ok((stream, binding))
    }
}

/// Returns true if a client begins with a TLS handshake instead of a packet. Waits for its first
/// byte, without reading it.
pub(crate) async fn is_direct(socket: &TcpStream) -> io::Result<bool> {
    let mut first = [0];
    let count = socket.peek(&mut first).await?;
    Ok(count == 1 && first == [HANDSHAKE])
}

/// Returns true if bytes have arrived after a request for encryption: an honest client waits for
/// the answer first.
pub(crate) async fn has_more(socket: &TcpStream) -> bool {
    let mut next = [0];
    poll_fn(|cx| {
        let mut next = ReadBuf::new(&mut next);
        let there = socket.poll_peek(cx, &mut next);
        Poll::Ready(matches!(there, Poll::Ready(Ok(1..))))
    })
    .await
}
