//! Cancels the statement of a connection, over another connection.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time;

use super::endpoint::Endpoint;
use super::entrance::{Entrance, Refusal};
use super::socket::Socket;
use super::tls;
use crate::target::{Host, Target};

/// The key that cancels statements of a connection. A secret.
#[derive(Clone)]
pub struct CancelKey {
    pub(super) endpoint: Endpoint,
    pub(super) pid: i32,
    pub(super) secret: i32,
    /// The server, if the connection is encrypted; the cancel request is encrypted then as well.
    pub(super) secure: Option<Arc<(Target, Host)>>,
}

impl CancelKey {
    /// Asks the server, over a new connection, to cancel the statement that is running, if any. The
    /// new connection is encrypted if the original one is. The cancelled statement fails with 57014
    /// on its own connection. Cancel safe.
    ///
    /// # Errors
    /// If the server cannot be reached within `timeout`.
    pub async fn send(&self, timeout: Duration) -> io::Result<()> {
        let asking = async {
            match &self.endpoint {
                Endpoint::Tcp(address) => {
                    let socket = TcpStream::connect(address).await?;
                    match &self.secure {
                        None => self.ask(socket).await,
                        Some(to) => self.ask(self.secured(socket, to).await?).await,
                    }
                }
                Endpoint::Unix(path) => self.ask(UnixStream::connect(path).await?).await,
            }
        };
        time::timeout(timeout, asking).await?
    }

    async fn secured(
        &self,
        mut socket: TcpStream,
        (target, host): &(Target, Host),
    ) -> io::Result<Socket> {
        if !target.tls.is_direct && tls::ask(&mut socket).await? != b'S' {
            return Err(io::Error::other("the server offers no TLS any more"));
        }
        let entrance = Entrance {
            target,
            host,
            endpoint: &self.endpoint,
            settings: &[],
        };
        let secured = tls::secure(socket, &entrance).await;
        let secured = secured.map_err(|Refusal { fault, .. }| io::Error::other(fault))?;
        Ok(secured.socket)
    }

    async fn ask(&self, mut socket: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
        let mut request = BytesMut::new();
        frontend::cancel_request(self.pid, self.secret, &mut request);
        socket.write_all(&request).await?;
        socket.flush().await?;
        // The server closes the connection after it has sent the signal.
        let mut nothing = [0];
        socket.read(&mut nothing).await.map(drop)
    }
}

impl fmt::Debug for CancelKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelKey")
            .field("endpoint", &self.endpoint)
            .field("pid", &self.pid)
            .finish_non_exhaustive()
    }
}
