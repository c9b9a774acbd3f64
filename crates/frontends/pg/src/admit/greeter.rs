//! A connection before its login: reads the startup packet, or turns the client away.

use bytes::BytesMut;
use windrow_core::{Fault, FaultClass};
use windrow_pgwire::scram::Binding;
use windrow_pgwire::wire::Socket;
use windrow_sockets::ClientSocket;

use super::not_admitted::NotAdmitted;
use super::packet::{self, Packet, Startup};
use super::{login, say};
use crate::metrics::Login;
use crate::shared::Shared;
use crate::tls;

/// A connection before its login.
pub(super) struct Greeter<'a> {
    pub(super) shared: &'a Shared,
    /// The stream; `None` during the TLS handshake.
    pub(super) stream: Option<Socket>,
    pub(super) peer: Box<str>,
    /// True for loopback and UNIX-domain sockets.
    pub(super) local: bool,
    pub(super) binding: Binding,
}

impl<'a> Greeter<'a> {
    pub(super) fn new(shared: &'a Shared, arrival: ClientSocket) -> Self {
        let (stream, peer, local) = match arrival {
            ClientSocket::Tcp(socket, address) => (
                Socket::Tcp(socket),
                address.to_string(),
                address.ip().to_canonical().is_loopback(),
            ),
            ClientSocket::Unix(socket) => (Socket::Unix(socket), "[local]".to_owned(), true),
        };
        Self {
            shared,
            stream: Some(stream),
            peer: peer.into(),
            local,
            binding: None,
        }
    }

    /// Returns the startup packet, after agreeing on encryption. A client may ask for each kind of
    /// encryption once.
    pub(super) async fn startup(&mut self) -> Result<Startup, NotAdmitted> {
        self.take_direct().await?;
        let (mut tls_asked, mut gss_asked) = (false, false);
        loop {
            match packet::read(self.stream()?).await? {
                Packet::Startup(startup) => return Ok(startup),
                Packet::Cancel { pid, secret } => {
                    self.shared.metrics.cancels.inc();
                    self.shared.register.cancel(pid, &secret).await;
                    return Err(NotAdmitted::Silent);
                }
                Packet::Ssl if !tls_asked => {
                    tls_asked = true;
                    self.answer_ssl().await?;
                }
                Packet::Gss if !gss_asked => {
                    gss_asked = true;
                    self.refuse_injected("GSSAPI encryption").await?;
                    self.answer(b'N').await?;
                }
                Packet::Ssl | Packet::Gss => {
                    let text = "encryption is asked for again";
                    return Err(Fault::new(FaultClass::Invalid, "08P01", text).into());
                }
            }
        }
    }

    /// Accepts TLS from the first byte on (`sslnegotiation=direct`).
    async fn take_direct(&mut self) -> Result<(), NotAdmitted> {
        let Some(Socket::Tcp(socket)) = &self.stream else {
            return Ok(());
        };
        match tls::is_direct(socket).await {
            Ok(false) => Ok(()),
            Ok(true) if self.shared.tls.is_some() => self.secure(true).await,
            _ => Err(NotAdmitted::Silent),
        }
    }

    async fn answer_ssl(&mut self) -> Result<(), NotAdmitted> {
        self.refuse_injected("SSL").await?;
        let plain = matches!(self.stream, Some(Socket::Tcp(_)));
        if !plain || self.shared.tls.is_none() {
            return self.answer(b'N').await;
        }
        self.answer(b'S').await?;
        self.secure(false).await
    }

    /// Refuses plain-text bytes after a request for encryption, because they would later be read as
    /// sent by the client under encryption.
    async fn refuse_injected(&mut self, what: &str) -> Result<(), NotAdmitted> {
        let injected = match &self.stream {
            Some(Socket::Tcp(socket)) => tls::has_more(socket).await,
            _ => false,
        };
        if !injected {
            return Ok(());
        }
        let text = format!("received unencrypted data after {what} request");
        let detail = "This could be either a client-software bug or evidence of an attempted man-in-the-middle attack.";
        Err(Fault::new(FaultClass::Invalid, "08P01", text)
            .with_detail(Some(detail))
            .into())
    }

    async fn answer(&mut self, letter: u8) -> Result<(), NotAdmitted> {
        let mut out = BytesMut::from(&[letter][..]);
        login::send(self.stream()?, &mut out).await
    }

    async fn secure(&mut self, direct: bool) -> Result<(), NotAdmitted> {
        let (Some(tls), Some(Socket::Tcp(socket))) = (&self.shared.tls, self.stream.take()) else {
            return Err(NotAdmitted::Silent);
        };
        let shaken = Box::pin(tls.accept(socket, direct)).await;
        let (stream, binding) = shaken.map_err(|error| {
            tracing::debug!(%error, peer = %self.peer, "TLS handshake failed");
            NotAdmitted::Silent
        })?;
        self.stream = Some(Socket::Tls(Box::new(stream.into())));
        self.binding = binding;
        Ok(())
    }

    /// Checks that the connection is encrypted, if that is required.
    pub(super) fn check_secure(&self) -> Result<(), NotAdmitted> {
        let open = matches!(self.stream, Some(Socket::Tcp(_)));
        if !(open && self.shared.config.require_tls) {
            return Ok(());
        }
        let text =
            "only connections with TLS are let in (require_tls): use sslmode=require or better";
        Err(Fault::new(FaultClass::Denied, "28000", text).into())
    }

    /// Returns the stream of the connection.
    pub(super) fn stream(&mut self) -> Result<&mut Socket, NotAdmitted> {
        self.stream.as_mut().ok_or(NotAdmitted::Silent)
    }

    /// Sends the client the reason why it is not admitted, and counts it.
    pub(super) async fn turn_away(&mut self, ended: NotAdmitted) {
        match ended {
            NotAdmitted::Silent => {
                self.shared.metrics.login(Login::Left);
                if let Some(stream) = self.stream.take() {
                    say::close(stream).await;
                }
            }
            NotAdmitted::Fatal(fault) => {
                self.shared.metrics.login(Login::of(&fault));
                tracing::debug!(%fault, peer = %self.peer, "a client is turned away");
                if let Some(stream) = self.stream.take() {
                    say::turn_away(stream, &fault).await;
                }
            }
        }
    }
}
