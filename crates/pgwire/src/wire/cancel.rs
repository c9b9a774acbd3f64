//! Interrupting the statement of a connection, from outside of it.

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
use super::tls;
use crate::target::{Host, Target};

/// The right to interrupt a connection's statement. Its secret is shown nowhere.
#[derive(Clone)]
pub struct CancelKey {
    pub(super) endpoint: Endpoint,
    pub(super) pid: i32,
    pub(super) secret: i32,
    /// The connection is encrypted, and so is the way of its key.
    pub(super) secure: Option<Arc<(Target, Host)>>,
}

impl CancelKey {
    /// Asks the server to interrupt the statement that runs at this moment, if any, over a
    /// connection of its own, which is encrypted where the one that it is about is. That it was
    /// interrupted is told on the connection itself (57014). Cancel safe.
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
    ) -> io::Result<impl AsyncRead + AsyncWrite + Unpin> {
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
        Ok(secured.stream)
    }

    async fn ask(&self, mut socket: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
        let mut request = BytesMut::new();
        frontend::cancel_request(self.pid, self.secret, &mut request);
        socket.write_all(&request).await?;
        socket.flush().await?;
        // The server closes the connection once it has passed the signal on.
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
