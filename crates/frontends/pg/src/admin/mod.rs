//! The console: the database `windrow`, which is none. `SHOW LANES`, `PAUSE` and the like, over the
//! simple and the extended protocol, as far as psql and drivers speak them. `HELP` lists what can
//! be asked, `HELP LANES` what a table's columns mean.

mod act;
mod command;
mod config;
mod extended;
mod show;
mod table;

use bytes::{Buf, BufMut, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use windrow_core::{Fault, FaultClass};

use crate::client_stream::ClientStream;
use crate::codec::answer::{self, parameter_status};
use crate::codec::failure;
use crate::codec::frame::{self, Front, HEADER};
use crate::codec::message::Message;
use crate::house::House;
use command::Command;
use extended::Prepared;
use table::Column;

/// The longest message, in bytes.
const LONGEST: usize = 64 * 1024;

/// What a new session at the console is told.
pub(crate) fn greet(out: &mut BytesMut, role: &str, application_name: &str) {
    // Drivers read a PostgreSQL version out of it and choose by it what they may ask.
    let version = format!("16.0 (Windrow {})", env!("CARGO_PKG_VERSION"));
    for (name, value) in [
        ("server_version", version.as_str()),
        ("server_encoding", "UTF8"),
        ("client_encoding", "UTF8"),
        ("application_name", application_name),
        ("is_superuser", "off"),
        ("session_authorization", role),
        ("DateStyle", "ISO, MDY"),
        ("IntervalStyle", "postgres"),
        ("TimeZone", "UTC"),
        ("integer_datetimes", "on"),
        ("standard_conforming_strings", "on"),
    ] {
        parameter_status(out, name, value);
    }
    out.put_slice(answer::READY);
}

/// Somebody at the console.
struct Visitor<'a> {
    house: &'a House,
    stream: ClientStream,
    input: BytesMut,
    out: BytesMut,
    prepared: Prepared,
    /// `I`, `T` or `E`, as drivers believe.
    status: u8,
    /// After an error, up to the next Sync.
    skipping: bool,
}

/// Why a visit ends.
enum End {
    Left,
    Fatal(Fault),
}

/// Serves somebody at the console until it leaves. The greeting was sent.
pub(crate) async fn run(stream: ClientStream, house: &House) {
    let mut visitor = Visitor {
        house,
        stream,
        input: BytesMut::new(),
        out: BytesMut::new(),
        prepared: Prepared::default(),
        status: b'I',
        skipping: false,
    };
    if let Err(End::Fatal(fault)) = visitor.serve().await {
        failure::fatal(&mut visitor.out, &fault);
        // Whoever does not take it has left.
        drop(visitor.flush().await);
    }
}

impl Visitor<'_> {
    async fn serve(&mut self) -> Result<(), End> {
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
    fn whole(&self) -> Result<Option<usize>, End> {
        match frame::front(&self.input, LONGEST) {
            Ok(Front::Whole { total, .. }) => Ok(Some(total)),
            // COPY data has no bound elsewhere; here it has no place.
            Ok(Front::Part {
                header: Some((b'd', _)),
            }) => Err(End::Fatal(Fault::new(
                FaultClass::Invalid,
                "08P01",
                "the console takes no COPY data",
            ))),
            Ok(Front::Part { .. }) => Ok(None),
            Err(violation) => Err(End::Fatal(violation.fault())),
        }
    }

    async fn receive(&mut self) -> Result<(), End> {
        tokio::select! {
            read = self.stream.read_buf(&mut self.input) => match read {
                Ok(1..) => Ok(()),
                _ => Err(End::Left),
            },
            () = self.house.stop.cancelled() => Err(End::Fatal(Fault::new(
                FaultClass::Unavailable,
                "57P01",
                "terminating connection due to administrator command",
            ))),
        }
    }

    async fn flush(&mut self) -> Result<(), End> {
        let flushed = async {
            self.stream.write_all(&self.out).await?;
            self.stream.flush().await
        };
        flushed.await.map_err(|_| End::Left)?;
        self.out.clear();
        Ok(())
    }

    async fn take(&mut self, message: &[u8]) -> Result<(), End> {
        let (tag, body) = match message {
            [tag, ..] => (*tag, message.get(HEADER..).unwrap_or_default()),
            [] => return Ok(()),
        };
        match Message::read(tag, body) {
            Message::Terminate => Err(End::Left),
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
    async fn simple(&mut self, text: &[u8]) -> Result<(), End> {
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

    fn fail(&mut self, fault: &Fault) {
        failure::fault(&mut self.out, fault);
        if self.status == b'T' {
            self.status = b'E';
        }
    }

    /// Does what is asked; rows and CommandComplete go out.
    async fn execute(&mut self, command: &Command) -> Result<Result<(), Fault>, End> {
        let tag = match command {
            Command::Empty => {
                self.out.put_slice(answer::EMPTY_QUERY);
                return Ok(Ok(()));
            }
            Command::Show(show) => self.give(&show::rows(*show, self.house)),
            Command::Help(show) => self.give(&show::meanings(*show)),
            Command::One => {
                answer::one_value(&mut self.out, b"1");
                "SELECT 1"
            }
            Command::Courtesy(tag, status) => {
                self.status = status.unwrap_or(self.status);
                tag
            }
            Command::Pause(database) => match self.pause(database.as_deref()).await? {
                Ok(()) => "PAUSE",
                Err(fault) => return Ok(Err(fault)),
            },
            Command::Resume(database) => match act::resume(self.house, database.as_deref()) {
                Ok(()) => "RESUME",
                Err(fault) => return Ok(Err(fault)),
            },
            Command::Reload => match act::reload(self.house).await {
                Ok(()) => "RELOAD",
                Err(fault) => return Ok(Err(fault)),
            },
            Command::Shutdown => {
                act::shutdown(self.house);
                "SHUTDOWN"
            }
        };
        answer::complete(&mut self.out, tag);
        Ok(Ok(()))
    }

    fn give(&mut self, rows: &[Vec<String>]) -> &'static str {
        table::rows(&mut self.out, rows);
        "SHOW"
    }

    /// Waits for what is under way, unless whoever asked for it leaves: then all goes on.
    async fn pause(&mut self, database: Option<&str>) -> Result<Result<(), Fault>, End> {
        self.flush().await?;
        let house = self.house;
        let pausing = act::pause(house, database);
        tokio::pin!(pausing);
        loop {
            tokio::select! {
                biased;
                paused = &mut pausing => return Ok(paused),
                received = self.receive() => received?,
            }
            if self.input.remaining() > LONGEST {
                return Err(End::Left);
            }
        }
    }
}

/// The columns of what a command gives.
fn columns(command: &Command) -> Option<&'static [Column]> {
    match command {
        Command::Show(show) => Some(show::columns(*show)),
        Command::Help(_) => Some(show::meaning_columns()),
        Command::One => Some(&[("?column?", "the number one")]),
        _ => None,
    }
}
