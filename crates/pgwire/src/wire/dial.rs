//! Reaching a server: names to addresses, addresses to connected sockets.

use std::fmt;
use std::io;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpStream, UnixStream, lookup_host};

use super::cancel::Place;
use crate::target::{Address, Host};

/// A server that vanished without a word is noticed after about a minute: 30 s of silence, then
/// three questions.
const SILENCE: Duration = Duration::from_secs(30);
const QUESTION: Duration = Duration::from_secs(10);
const QUESTIONS: u32 = 3;

/// How long what was sent may stay unacknowledged by the other machine.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED: Duration = Duration::from_secs(60);

/// All places that a host stands for, in the resolver's order.
pub(super) async fn places(host: &Host) -> io::Result<Vec<Place>> {
    match &host.address {
        Address::Unix(directory) => Ok(vec![Place::Unix(host.socket_path(directory))]),
        Address::Tcp(name) => {
            let found = lookup_host((name.as_str(), host.port)).await?;
            Ok(found.map(Place::Tcp).collect())
        }
    }
}

/// A connected socket without any protocol on it.
pub(super) enum Plain {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// Connects. Cancel safe.
pub(super) async fn dial(place: &Place) -> io::Result<Plain> {
    match place {
        Place::Unix(path) => UnixStream::connect(path).await.map(Plain::Unix),
        Place::Tcp(address) => {
            let socket = TcpStream::connect(address).await?;
            socket.set_nodelay(true)?;
            watch(&socket)?;
            Ok(Plain::Tcp(socket))
        }
    }
}

fn watch(socket: &TcpStream) -> io::Result<()> {
    let socket = SockRef::from(socket);
    let keepalive = TcpKeepalive::new()
        .with_time(SILENCE)
        .with_interval(QUESTION)
        .with_retries(QUESTIONS);
    socket.set_tcp_keepalive(&keepalive)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED))?;
    Ok(())
}

impl Place {
    /// True where nobody else can listen in between.
    pub(super) fn is_local(&self) -> bool {
        match self {
            Self::Unix(_) => true,
            Self::Tcp(address) => address.ip().to_canonical().is_loopback(),
        }
    }
}

/// What is said of a host, and of the address where that says more.
pub(super) struct Peer<'a>(pub(super) &'a Host, pub(super) &'a Place);

impl fmt::Display for Peer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)?;
        match (&self.0.address, self.1) {
            (Address::Tcp(name), Place::Tcp(address)) if *name != address.ip().to_string() => {
                write!(f, " [{}]", address.ip())
            }
            _ => Ok(()),
        }
    }
}
