//! The console: the database `windrow`, which is none. `SHOW LANES`, `PAUSE` and the like, over the
//! simple and the extended protocol, as far as psql and drivers speak them. `HELP` lists what can
//! be asked, `HELP LANES` what a table's columns mean.

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

/// Serves a session at the console until it leaves. The greeting was sent.
pub(crate) async fn run(stream: Socket, shared: &Shared) {
    let mut session = ConsoleSession::new(stream, shared);
    if let Err(ConsoleEnd::Fatal(fault)) = session.serve().await {
        failure::fatal(&mut session.out, &fault);
        // A client that does not take it has left.
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

    /// The size of the message that stands in front, once it is whole.
    fn whole(&self) -> Result<Option<usize>, ConsoleEnd> {
        match message::front(&self.input, MAX_MESSAGE_BYTES) {
            Ok(Front::Whole { total, .. }) => Ok(Some(total)),
            // COPY data has no bound elsewhere; here it has no place.
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

    /// A simple query: all commands of its text, up to the first that fails.
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
