//! The loop of one client: commands go to the session's server connection, answers come back, byte
//! for byte and as they come. A client's next command waits until the answer has ended, as at the
//! server.

use std::io;
use std::sync::Arc;

use tokio::time::timeout;
use windrow_mysqlwire::answer::{LOOK_BYTES, Step, command};
use windrow_mysqlwire::{Answer, ErrorPacket, ForwardError, Head, LoginRequest, StatusFlags, Wire};

use crate::admit::{AdmittedClient, MAX_LOGIN_BYTES, NotAdmitted, ServerConnection, open, prove};
use crate::errors;
use crate::kill::{self, MAX_KILL_BYTES};
use crate::shared::Shared;

/// The end of a session.
enum SessionEnd {
    /// The client gets this error.
    Said(ErrorPacket),
    /// The client or the server has gone, or the client has said goodbye.
    Gone,
}

impl From<io::Error> for SessionEnd {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

impl From<ForwardError> for SessionEnd {
    fn from(_: ForwardError) -> Self {
        Self::Gone
    }
}

/// A client's session.
pub(crate) struct Session {
    shared: Arc<Shared>,
    admitted: AdmittedClient,
    /// True while the session is in a transaction, as the server said last.
    is_in_transaction: bool,
}

/// Serves a client until it leaves, its server connection ends, or the frontend does.
pub(crate) async fn run(shared: Arc<Shared>, admitted: AdmittedClient) {
    let info = Arc::clone(&admitted.entry.info);
    let close_limit = shared.config.connect_timeout;
    let mut session = Session {
        shared,
        admitted,
        is_in_transaction: false,
    };
    let ended = tokio::select! {
        biased;
        () = info.revoked.cancelled() => SessionEnd::Said(errors::revoked()),
        ended = session.serve() => ended,
    };
    let Session { admitted, .. } = session;
    let mut client = admitted.client;
    if let SessionEnd::Said(error) = ended
        && !client.is_within_packet()
    {
        client.put(&error.encode());
    }
    // A client that does not read holds nothing up.
    drop(timeout(close_limit, client.close()).await);
}

impl Session {
    async fn serve(&mut self) -> SessionEnd {
        loop {
            let next = self.next().await;
            let done = match next {
                Ok(head) => self.command(head).await,
                Err(ended) => return ended,
            };
            if let Err(ended) = done {
                return ended;
            }
        }
    }

    /// Waits for a command.
    async fn next(&mut self) -> Result<Head, SessionEnd> {
        let (client, server) = (&mut self.admitted.client, &mut self.admitted.server.wire);
        client.set_next(0);
        tokio::select! {
            biased;
            () = self.shared.stop.cancelled(), if !self.is_in_transaction => {
                Err(SessionEnd::Said(errors::shutdown()))
            }
            head = client.head(MAX_KILL_BYTES) => head?.ok_or(SessionEnd::Gone),
            // The server speaks without being asked before it ends a connection.
            said = server.head(0) => {
                if let Ok(Some(_)) = said {
                    server.forward(client).await?;
                    client.flush().await?;
                }
                Err(SessionEnd::Gone)
            }
        }
    }

    /// Carries out a command, up to the end of its answer.
    async fn command(&mut self, head: Head) -> Result<(), SessionEnd> {
        let content = self.admitted.client.content(head);
        let command = content.first().copied().unwrap_or_default();
        match command {
            command::CHANGE_USER => return self.change_user().await,
            command::BINLOG_DUMP..=command::REGISTER_SLAVE
            | command::BINLOG_DUMP_GTID
            | command::CLONE
            | command::SUBSCRIBE
            | command::MULTI => return self.refuse().await,
            command::QUERY | command::STMT_EXECUTE | command::STMT_BULK_EXECUTE => {
                self.shared.metrics.relayed.inc();
            }
            _ => {}
        }
        self.send(head).await?;
        match Answer::to(command, self.admitted.server.forms) {
            Some(answer) => self.answer(answer).await,
            None if command == command::QUIT => Err(SessionEnd::Gone),
            None => Ok(()),
        }
    }

    /// Hands a command to the server as it is, but for the number of a `KILL`.
    async fn send(&mut self, head: Head) -> Result<(), SessionEnd> {
        let kill = self.kill(head);
        let (client, server) = (&mut self.admitted.client, &mut self.admitted.server.wire);
        let sent = match kill {
            Some(kill) => {
                self.shared.metrics.kills.inc();
                client.skip(head);
                server.set_next(head.number);
                server.put(&kill);
                Ok(())
            }
            None => client.forward(server).await,
        };
        let sent = match sent {
            Ok(()) => server.flush().await.map_err(ForwardError::To),
            Err(broken) => Err(broken),
        };
        self.unless_server_ended(sent).await
    }

    /// Returns the content of a `KILL` with the server's number of the session that it names.
    /// `None` for any other command.
    fn kill(&self, head: Head) -> Option<Vec<u8>> {
        if head.len > MAX_KILL_BYTES {
            return None;
        }
        let content = self.admitted.client.content(head);
        let server_id = |id| self.shared.register.server_id(id);
        match content.split_first()? {
            (&command::PROCESS_KILL, rest) => {
                let id = u32::from_le_bytes(*rest.first_chunk::<4>()?);
                let id = server_id(id.into())?.to_le_bytes();
                Some([&[command::PROCESS_KILL][..], &id].concat())
            }
            (&command::QUERY, _) => {
                let place = kill::number(content, self.admitted.request.capabilities)?;
                kill::renumbered(content, place, server_id)
            }
            _ => None,
        }
    }

    /// Hands the answer to the client as it comes.
    async fn answer(&mut self, mut answer: Answer) -> Result<(), SessionEnd> {
        loop {
            let (client, server) = (&mut self.admitted.client, &mut self.admitted.server.wire);
            let head = match server.here(LOOK_BYTES) {
                Some(head) => head,
                None => {
                    client.flush().await?;
                    server.head(LOOK_BYTES).await?.ok_or(SessionEnd::Gone)?
                }
            };
            let step = answer.take(server.content(head), head.len);
            server.forward(client).await?;
            match step {
                Step::More => {}
                Step::File => self.file().await?,
                Step::Done => break,
            }
        }
        if let Some(status) = answer.status() {
            self.is_in_transaction = status.contains(StatusFlags::SERVER_STATUS_IN_TRANS);
        }
        Ok(self.admitted.client.flush().await?)
    }

    /// Hands a client's file to the server, up to the empty packet at its end.
    async fn file(&mut self) -> Result<(), SessionEnd> {
        self.admitted.client.flush().await?;
        loop {
            let (client, server) = (&mut self.admitted.client, &mut self.admitted.server.wire);
            let head = client.head(0).await?.ok_or(SessionEnd::Gone)?;
            let sent = match client.forward(server).await {
                Ok(()) if head.len == 0 => server.flush().await.map_err(ForwardError::To),
                forwarded => forwarded,
            };
            self.unless_server_ended(sent).await?;
            if head.len == 0 {
                return Ok(());
            }
        }
    }

    /// Ends the session if a stream broke. If that is the server's, the client gets what the server
    /// said before.
    async fn unless_server_ended(
        &mut self,
        forwarded: Result<(), ForwardError>,
    ) -> Result<(), SessionEnd> {
        if let Err(ForwardError::To(_)) = forwarded {
            self.last_words().await;
        }
        Ok(forwarded?)
    }

    /// Hands over all that the server has sent before its end.
    async fn last_words(&mut self) {
        let (client, server) = (&mut self.admitted.client, &mut self.admitted.server.wire);
        while let Ok(Some(_)) = server.head(0).await {
            if server.forward(client).await.is_err() {
                break;
            }
        }
        drop(client.flush().await);
    }

    /// Refuses a command whose answer cannot be followed.
    async fn refuse(&mut self) -> Result<(), SessionEnd> {
        let client = &mut self.admitted.client;
        client.packet(MAX_LOGIN_BYTES).await?;
        client.put(&errors::unknown_command().encode());
        Ok(client.flush().await?)
    }

    /// Logs the session in again, as another user, over another server connection.
    async fn change_user(&mut self) -> Result<(), SessionEnd> {
        let content = self.admitted.client.packet(MAX_LOGIN_BYTES).await?;
        let content = content.ok_or(SessionEnd::Gone)?;
        let request = self.admitted.request.changed(&content);
        let request = request.ok_or(SessionEnd::Gone)?;
        let (server, ok) = match self.log_in_again(&request).await {
            Ok(changed) => changed,
            Err(NotAdmitted::Gone) => return Err(SessionEnd::Gone),
            Err(NotAdmitted::Refused(error)) => {
                self.admitted.client.put(&error.encode());
                self.admitted.client.flush().await?;
                return Err(SessionEnd::Gone);
            }
        };
        self.admitted.server = server;
        self.admitted.request = request;
        self.is_in_transaction = false;
        self.admitted.client.put(&ok);
        Ok(self.admitted.client.flush().await?)
    }

    /// Has the client prove the password of another user, and opens that user's server connection
    /// once the work of the one before is undone.
    async fn log_in_again(
        &mut self,
        request: &LoginRequest,
    ) -> Result<(ServerConnection, Vec<u8>), NotAdmitted> {
        let AdmittedClient {
            client,
            server,
            host,
            is_local,
            entry,
            ..
        } = &mut self.admitted;
        let shared = &*self.shared;
        let proven = prove(shared, client, request, None, (&**host, *is_local)).await?;
        // A server connection that does not answer ends all the same.
        drop(timeout(shared.config.connect_timeout, leave(&mut server.wire)).await);
        open(shared, request, proven, entry).await
    }
}

/// Ends a server connection. Its transaction, locks and temporary tables are gone before.
async fn leave(server: &mut Wire) -> io::Result<()> {
    server.set_next(0);
    server.put(&[command::RESET_CONNECTION]);
    server.flush().await?;
    server.packet(MAX_LOGIN_BYTES).await?;
    server.set_next(0);
    server.put(&[command::QUIT]);
    server.flush().await
}
