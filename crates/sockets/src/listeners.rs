//! The listening sockets.

use std::future::pending;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::path::PathBuf;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixStream};

/// The delay after an error of a listening socket, nearly always "too many open files".
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// The most connected clients that are not accepted yet. The kernel has a limit of its own
/// (`net.core.somaxconn`).
const MAX_BACKLOG: u32 = 4096;

/// The idle time before keepalive probes, which detect a vanished client after some minutes.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
const KEEPALIVE_PROBES: u32 = 4;

/// The listening sockets of a frontend.
#[derive(Debug)]
pub struct Listeners {
    tcp: TcpListener,
    unix: Option<UnixSocket>,
}

/// A connection of a client.
#[derive(Debug)]
pub enum ClientSocket {
    /// A connection over TCP, from this address.
    Tcp(TcpStream, SocketAddr),
    /// A connection over the UNIX-domain socket.
    Unix(UnixStream),
}

/// A UNIX-domain socket, whose file is removed with it.
#[derive(Debug)]
struct UnixSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl Listeners {
    /// Opens a socket over TCP as [`listen`] does, and a UNIX-domain socket at the path that
    /// `unix_path` returns for the port.
    ///
    /// # Errors
    /// The address or the path cannot be used.
    pub async fn open(
        address: SocketAddr,
        open: Option<&StdListener>,
        unix_path: impl FnOnce(u16) -> Option<PathBuf>,
    ) -> io::Result<Self> {
        let tcp = listen(address, open)?;
        let unix = match unix_path(tcp.local_addr()?.port()) {
            Some(path) => Some(UnixSocket::open(path).await?),
            None => None,
        };
        Ok(Self { tcp, unix })
    }

    /// Returns the address of the socket over TCP, with the actual port.
    ///
    /// # Errors
    /// The socket is dead.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }

    /// Returns the next connection. Cancel safe.
    pub async fn accept(&self) -> ClientSocket {
        loop {
            let accepted = tokio::select! {
                accepted = self.tcp.accept() => accepted.and_then(|(socket, address)| {
                    prepare(&socket).map(|()| ClientSocket::Tcp(socket, address))
                }),
                accepted = self.accept_unix() => accepted.map(ClientSocket::Unix),
            };
            match accepted {
                Ok(client) => return client,
                Err(error) => wait_after(&error).await,
            }
        }
    }

    async fn accept_unix(&self) -> io::Result<UnixStream> {
        match &self.unix {
            Some(unix) => unix.listener.accept().await.map(|(socket, _)| socket),
            None => pending().await,
        }
    }
}

impl UnixSocket {
    async fn open(path: PathBuf) -> io::Result<Self> {
        let of_path =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        // A file left by a dead process must be removed, but not one at which a process listens.
        match UnixStream::connect(&path).await {
            Ok(_) => return Err(of_path(io::ErrorKind::AddrInUse.into())),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                std::fs::remove_file(&path).map_err(of_path)?;
            }
            Err(_) => {}
        }
        let listener = UnixListener::bind(&path).map_err(of_path)?;
        Ok(Self { listener, path })
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        // It does not matter if the file is gone already.
        drop(std::fs::remove_file(&self.path));
    }
}

/// Returns the socket that a service manager opened, or else opens one with a backlog for many
/// clients that connect at once: past the usual 128 the kernel drops what they send, and they try
/// again a second later.
///
/// # Errors
/// An address that cannot be listened on.
pub fn listen(address: SocketAddr, open: Option<&StdListener>) -> io::Result<TcpListener> {
    if let Some(open) = open {
        let socket = open.try_clone()?;
        socket.set_nonblocking(true)?;
        return TcpListener::from_std(socket);
    }
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // Needed after a restart, while connections of the previous process linger.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(MAX_BACKLOG)
}

/// Waits after an error of a listening socket, unless only the connection to be accepted has
/// failed.
pub async fn wait_after(error: &io::Error) {
    if !is_of_one_connection(error) {
        tracing::warn!(%error, "a connection cannot be accepted");
        tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
    }
}

/// Disables Nagle's algorithm and enables keepalive: answers are written whole, and waiting to fill
/// a packet would only delay them.
fn prepare(socket: &TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_IDLE)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_PROBES);
    SockRef::from(socket).set_tcp_keepalive(&keepalive)
}

/// Returns true if only the connection to be accepted has failed.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::NotConnected
            | io::ErrorKind::InvalidInput
    )
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpStream};

    use super::*;

    /// Nobody accepts them, so the kernel keeps them; one for which it had no room would be tried
    /// again a second later.
    #[tokio::test]
    async fn hundreds_may_connect_at_once() {
        let listener = listen((Ipv4Addr::LOCALHOST, 0).into(), None).unwrap();
        let address = listener.local_addr().unwrap();
        let half = Duration::from_millis(500);
        let connect = |_| TcpStream::connect_timeout(&address, half).unwrap();
        let clients: Vec<_> = (0..500).map(connect).collect();
        drop(clients);
    }
}
