//! Resolves a host's name and connects sockets.

use std::io;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpStream, UnixStream, lookup_host};

use super::endpoint::Endpoint;
use crate::target::{Address, Host, TcpOptions};

/// The idle time before TCP keepalives. A vanished server is detected after about a minute: 30 s of
/// silence, then three probes.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_PROBES: u32 = 3;

/// The time for which sent bytes may stay unacknowledged.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED_TIMEOUT: Duration = Duration::from_secs(60);

/// Returns all endpoints of a host, in the resolver's order.
pub(super) async fn endpoints(host: &Host) -> io::Result<Vec<Endpoint>> {
    match &host.address {
        Address::Unix(directory) => Ok(vec![Endpoint::Unix(host.socket_path(directory))]),
        Address::Tcp(name) => {
            let found = lookup_host((name.as_str(), host.port)).await?;
            Ok(found.map(Endpoint::Tcp).collect())
        }
    }
}

/// A connected socket, before TLS or any protocol.
pub(super) enum PlainSocket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// Connects a socket. Cancel safe.
pub(super) async fn dial(endpoint: &Endpoint, tcp: &TcpOptions) -> io::Result<PlainSocket> {
    match endpoint {
        Endpoint::Unix(path) => UnixStream::connect(path).await.map(PlainSocket::Unix),
        Endpoint::Tcp(address) => {
            let socket = TcpStream::connect(address).await?;
            socket.set_nodelay(true)?;
            watch(&socket, tcp)?;
            Ok(PlainSocket::Tcp(socket))
        }
    }
}

fn watch(socket: &TcpStream, tcp: &TcpOptions) -> io::Result<()> {
    let socket = SockRef::from(socket);
    let keepalive = TcpKeepalive::new()
        .with_time(tcp.idle.unwrap_or(KEEPALIVE_IDLE))
        .with_interval(tcp.interval.unwrap_or(KEEPALIVE_INTERVAL))
        .with_retries(tcp.count.unwrap_or(KEEPALIVE_PROBES));
    if !tcp.no_keepalive {
        socket.set_tcp_keepalive(&keepalive)?;
    }
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(tcp.user_timeout.unwrap_or(UNACKNOWLEDGED_TIMEOUT)))?;
    Ok(())
}
