//! Starts a session: sends the startup message, authenticates, and reads the server's parameters
//! until it is ready.

use std::future::poll_fn;
use std::sync::Arc;

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use tokio::io::AsyncWriteExt;
use windrow_core::Fault;

use super::auth::Auth;
use super::cancel::CancelKey;
use super::connection::Wire;
use super::cursor::Cursor;
use super::entrance::{Entrance, Refusal};
use super::inbox::{Inbox, MAX_MESSAGE_BYTES};
use super::server_error::ServerError;
use super::session::Session;
use super::socket::Socket;

/// Bytes of the longest message during the start, before the peer is known to be a server.
const MAX_START_BYTES: usize = 64 * 1024;

/// A session that is not ready yet.
struct Start<'a> {
    entrance: &'a Entrance<'a>,
    socket: Socket,
    inbox: Inbox,
    session: Session,
    key: (i32, i32),
}

/// Starts a session on a connected socket. `binding` is the channel binding data of TLS.
pub(super) async fn start(
    entrance: &Entrance<'_>,
    socket: Socket,
    binding: Option<Vec<u8>>,
) -> Result<Wire, Refusal> {
    let mut auth = Auth::new(entrance, matches!(socket, Socket::Tls(_)), binding);
    let mut start = Start {
        entrance,
        socket,
        inbox: Inbox::new(MAX_START_BYTES),
        session: Session::default(),
        key: (0, 0),
    };
    start.send(&hello(entrance)?).await?;
    loop {
        let (tag, body) = start.receive().await?;
        if start.take(tag, &body, &mut auth).await? {
            return Ok(start.ready());
        }
    }
}

/// Returns the startup message.
fn hello(entrance: &Entrance<'_>) -> Result<BytesMut, Fault> {
    let target = entrance.target;
    let asked = |name: &str| entrance.settings.iter().any(|(asked, _)| *asked == name);
    let mut parameters = vec![("user", target.user.as_str())];
    parameters.extend(target.database.as_deref().map(|name| ("database", name)));
    if !target.is_guest && !asked("client_encoding") {
        parameters.push(("client_encoding", "UTF8"));
    }
    if !asked("application_name") {
        parameters.push(("application_name", &target.application_name));
    }
    // The server uses only the last of several `options`.
    let mut options = target.options.clone().unwrap_or_default();
    for (name, value) in entrance.settings {
        if *name == "options" {
            options = format!("{options} {value}");
        } else {
            parameters.push((name, value.as_str()));
        }
    }
    if !options.is_empty() {
        parameters.push(("options", options.trim_start()));
    }
    let mut message = BytesMut::new();
    frontend::startup_message(parameters, &mut message)
        .map_err(|error| Fault::invalid(format!("the URL or a session setting is bad: {error}")))?;
    Ok(message)
}

impl Start<'_> {
    async fn send(&mut self, message: &[u8]) -> Result<(), Fault> {
        let sent = async {
            self.socket.write_all(message).await?;
            self.socket.flush().await
        };
        sent.await
            .map_err(|e: std::io::Error| self.entrance.lost(&e.to_string()))
    }

    async fn receive(&mut self) -> Result<(u8, Vec<u8>), Fault> {
        loop {
            if let Some((tag, body)) = self
                .inbox
                .next()
                .map_err(|bad| self.entrance.garbled(&bad.to_string()))?
            {
                return Ok((tag, body.to_vec()));
            }
            match poll_fn(|cx| self.inbox.poll_fill(&mut self.socket, cx)).await {
                Ok(0) => return Err(self.entrance.lost("the server closed the connection")),
                Ok(_) => {}
                Err(error) => return Err(self.entrance.lost(&error.to_string())),
            }
        }
    }

    /// Handles a message. Returns true once the session is ready.
    async fn take(&mut self, tag: u8, body: &[u8], auth: &mut Auth<'_>) -> Result<bool, Refusal> {
        match tag {
            b'R' => {
                if let Some(reply) = auth.step(body)? {
                    self.send(&reply).await?;
                }
            }
            b'S' | b'N' => self
                .session
                .receive(tag, body)
                .map_err(|bad| self.entrance.garbled(&bad))?,
            b'K' if auth.is_done() => {
                let mut body = Cursor::new(body);
                let key = body.i32().zip(body.i32());
                self.key =
                    key.ok_or_else(|| self.entrance.garbled("its cancel key is malformed"))?;
            }
            b'Z' if auth.is_done() => return Ok(true),
            b'E' => return Err(self.refused(body, auth)),
            other => {
                let what = format!("the message `{}` has no place in it", other.escape_ascii());
                return Err(self.entrance.garbled(&what).into());
            }
        }
        Ok(false)
    }

    fn refused(&self, body: &[u8], auth: &Auth<'_>) -> Refusal {
        let Ok(error) = ServerError::parse(body) else {
            return self.entrance.garbled("its error is malformed").into();
        };
        // pg_hba.conf may accept the same user with TLS and refuse it without, or the reverse.
        let other_way = error.code == "28000" && !auth.has_sent_password();
        let mut fault = Fault::from(error);
        if !self.entrance.target.is_guest {
            fault.message = format!("{}: {}", self.entrance.peer(), fault.message).into();
        }
        Refusal { fault, other_way }
    }

    fn ready(mut self) -> Wire {
        self.inbox.set_longest(MAX_MESSAGE_BYTES);
        let (pid, secret) = self.key;
        let (target, host) = (self.entrance.target, self.entrance.host);
        let encrypted = matches!(self.socket, Socket::Tls(_));
        Wire {
            socket: self.socket,
            inbox: self.inbox,
            out: BytesMut::new(),
            session: self.session,
            cancel: CancelKey {
                endpoint: self.entrance.endpoint.clone(),
                pid,
                secret,
                secure: encrypted.then(|| Arc::new((target.clone(), host.clone()))),
            },
            peer: self.entrance.host.to_string().into(),
            usable: true,
        }
    }
}
