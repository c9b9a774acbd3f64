//! Interrupting the statement of a connection, from outside of it.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time;

use super::Wire;

/// Where a server was reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// The right to interrupt a connection's statement. Its secret is shown nowhere.
#[derive(Clone)]
pub struct CancelKey {
    pub(super) place: Place,
    pub(super) pid: i32,
    pub(super) secret: i32,
}

impl Wire {
    /// The process that serves this connection.
    pub fn backend_pid(&self) -> i32 {
        self.cancel.pid
    }

    /// What is needed to interrupt this connection's statement from outside.
    pub fn cancel_key(&self) -> CancelKey {
        self.cancel.clone()
    }
}

impl CancelKey {
    /// Asks the server to interrupt the statement that runs at this moment, if any, over a plain connection of its own,
    /// as libpq's `PQcancel` does. That it was interrupted is told on the connection itself (57014). Cancel safe.
    ///
    /// # Errors
    /// If the server cannot be reached within `timeout`.
    pub async fn send(&self, timeout: Duration) -> io::Result<()> {
        let asking = async {
            match &self.place {
                Place::Tcp(address) => self.ask(TcpStream::connect(address).await?).await,
                Place::Unix(path) => self.ask(UnixStream::connect(path).await?).await,
            }
        };
        time::timeout(timeout, asking).await?
    }

    async fn ask(&self, mut socket: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
        let mut request = BytesMut::new();
        frontend::cancel_request(self.pid, self.secret, &mut request);
        socket.write_all(&request).await?;
        // The server closes the connection once it has passed the signal on.
        let mut nothing = [0];
        socket.read(&mut nothing).await.map(drop)
    }
}

impl fmt::Debug for CancelKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelKey")
            .field("place", &self.place)
            .field("pid", &self.pid)
            .finish_non_exhaustive()
    }
}
