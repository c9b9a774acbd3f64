//! The console, which clients reach as the database `windrow`: `SHOW LANES`, `PAUSE` and others,
//! over the parts of the simple and the extended protocol that psql and drivers use. `HELP` lists
//! the commands, `HELP LANES` explains a table's columns.

mod act;
mod command;
mod config;
mod console_session;
mod extended;
mod prepared;
mod show;
mod table;

use bytes::BufMut;
use windrow_core::{Fault, FaultClass};
use windrow_pgwire::wire::Socket;

use crate::codec::message::{self, Front, HEADER, Message};
use crate::codec::{answer, failure};
use crate::shared::Shared;
use command::Command;
use console_session::{ConsoleEnd, ConsoleSession, MAX_MESSAGE_BYTES, columns};

/// Serves a session at the console until it ends. The greeting was sent already.
pub(crate) async fn run(stream: Socket, shared: &Shared) {
    let mut session = ConsoleSession::new(stream, shared);
    if let Err(ConsoleEnd::Fatal(fault)) = session.serve().await {
        failure::fatal(&mut session.out, &fault);
        // A client that does not read the answers has left.
        drop(session.flush().await);
    }
}

impl ConsoleSession<'_> {
    async fn serve(&mut self) -> Result<(), ConsoleEnd> {
        loop {
            while let Some(total) = self.whole()? {
                let message = self.input.split_to(total);
                self.take(&message).await?;
            }
            self.flush().await?;
            self.receive().await?;
        }
    }

    /// Returns the size of the first message, once it is complete.
    fn whole(&self) -> Result<Option<usize>, ConsoleEnd> {
        match message::front(&self.input, MAX_MESSAGE_BYTES) {
            Ok(Front::Whole { total, .. }) => Ok(Some(total)),
            // COPY data of any length is allowed elsewhere, but not here.
            Ok(Front::Part {
                header: Some((b'd', _)),
            }) => Err(ConsoleEnd::Fatal(Fault::new(
                FaultClass::Invalid,
                "08P01",
                "the console takes no COPY data",
            ))),
            Ok(Front::Part { .. }) => Ok(None),
            Err(violation) => Err(ConsoleEnd::Fatal(violation.fault())),
        }
    }

    async fn take(&mut self, message: &[u8]) -> Result<(), ConsoleEnd> {
        let (tag, body) = match message {
            [tag, ..] => (*tag, message.get(HEADER..).unwrap_or_default()),
            [] => return Ok(()),
        };
        match Message::read(tag, body) {
            Message::Terminate => Err(ConsoleEnd::Left),
            Message::Sync => {
                self.skipping = false;
                answer::ready(&mut self.out, self.status);
                Ok(())
            }
            Message::Flush => self.flush().await,
            Message::Query(text) => {
                self.skipping = false;
                self.simple(text).await?;
                answer::ready(&mut self.out, self.status);
                Ok(())
            }
            _ if self.skipping => Ok(()),
            message => {
                let done = self.extended(message).await?;
                if let Err(fault) = done {
                    self.skipping = true;
                    self.fail(&fault);
                }
                Ok(())
            }
        }
    }

    /// Handles a simple query: executes all commands of its text, up to the first that fails.
    async fn simple(&mut self, text: &[u8]) -> Result<(), ConsoleEnd> {
        let text = String::from_utf8_lossy(text).into_owned();
        let commands = command::split(&text);
        if commands.is_empty() {
            self.out.put_slice(answer::EMPTY_QUERY);
        }
        for command in commands {
            let done = match Command::parse(command) {
                Ok(command) => {
                    if let Some(columns) = columns(&command) {
                        table::fields(&mut self.out, columns);
                    }
                    self.execute(&command).await?
                }
                Err(fault) => Err(fault),
            };
            if let Err(fault) = done {
                self.fail(&fault);
                break;
            }
        }
        Ok(())
    }
}
