//! The byte stream below a connection, to a server or from a client: TCP, a UNIX-domain socket, or
//! TLS over TCP.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsStream;

/// A connected byte stream.
#[derive(Debug)]
pub enum Socket {
    /// Plain TCP.
    Tcp(TcpStream),
    /// A UNIX-domain socket.
    Unix(UnixStream),
    /// TLS over TCP, as the server or as the client.
    Tls(Box<TlsStream<TcpStream>>),
}

macro_rules! each {
    ($self:expr, $socket:ident => $do:expr) => {
        match $self.get_mut() {
            Self::Tcp($socket) => $do,
            Self::Unix($socket) => $do,
            Self::Tls($socket) => $do,
        }
    };
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        each!(self, socket => Pin::new(socket).poll_read(cx, buf))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        each!(self, socket => Pin::new(socket).poll_write(cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, socket => Pin::new(socket).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, socket => Pin::new(socket).poll_shutdown(cx))
    }
}
