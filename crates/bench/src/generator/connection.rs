//! One connection of a client.

use std::net::SocketAddr;
use std::ops::Range;

use anyhow::{Context, Result, bail, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use windrow_testkit::pgclient::{Address, frontend};

use super::answer;
use super::job::{Call, Job};
use super::mysql;
use super::report::Outcome;

/// The server of a load, and the protocol.
#[derive(Clone, Debug)]
pub enum Target {
    /// HTTP/1.1.
    Http(SocketAddr),
    /// PostgreSQL's protocol.
    Pg(Address),
    /// MySQL's protocol.
    MySql(Address),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Http,
    Pg,
    MySql,
}

impl Target {
    fn protocol(&self) -> Protocol {
        match self {
            Self::Http(_) => Protocol::Http,
            Self::Pg(_) => Protocol::Pg,
            Self::MySql(_) => Protocol::MySql,
        }
    }
}

/// A connection that is registered with no event loop.
#[derive(Debug)]
pub(super) struct PausedConnection {
    stream: std::net::TcpStream,
    statement: Option<[u8; 4]>,
}

/// A connection with its buffers.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    protocol: Protocol,
    /// MySQL's command that was sent last, and its number of the prepared statement.
    command: u8,
    statement: Option<[u8; 4]>,
    input: Vec<u8>,
    body: Range<usize>,
}

impl Connection {
    /// Connects, and logs in where the protocol wants that.
    ///
    /// # Errors
    /// Nobody listens, or the server refuses.
    pub async fn open(target: &Target) -> Result<Self> {
        let address = match target {
            Target::Http(address) => *address,
            Target::Pg(address) | Target::MySql(address) => address.socket,
        };
        let stream = TcpStream::connect(address).await;
        let stream = stream.with_context(|| format!("nobody listens at {address}"))?;
        stream.set_nodelay(true)?;
        let mut connection = Self::new(stream, target);
        match target {
            Target::Http(_) => {}
            Target::Pg(address) => {
                let mut out = Vec::new();
                let user = ("user", address.role.as_str());
                frontend::startup(&mut out, &[user, ("database", &address.database)]);
                connection.succeed(&out).await?;
            }
            Target::MySql(address) => connection.log_in_mysql(address).await?,
        }
        Ok(connection)
    }

    /// Logs in over MySQL's protocol as a user without a password.
    async fn log_in_mysql(&mut self, address: &Address) -> Result<()> {
        let mut out = Vec::new();
        loop {
            out.clear();
            match self.packet().await? {
                [.., number, mysql::GREETING] => mysql::log_in(&mut out, number + 1, address),
                // A proof of another kind is empty too.
                [.., number, mysql::END] => mysql::packet(&mut out, number + 1, |_| ()),
                [.., mysql::OK] => return Ok(()),
                _ => {
                    let said = String::from_utf8_lossy(&self.input);
                    bail!("the server refuses the login: {said}");
                }
            }
            self.send(&out).await?;
        }
    }

    /// Waits for a packet of MySQL's, and returns its head and its first byte.
    async fn packet(&mut self) -> Result<[u8; 5]> {
        self.input.clear();
        while answer::packet(&self.input, 0).is_none() {
            let n = self.stream.read_buf(&mut self.input).await?;
            ensure!(n > 0, "the server closed the connection");
        }
        let start = self.input.first_chunk();
        Ok(*start.context("an empty packet")?)
    }

    fn new(stream: TcpStream, target: &Target) -> Self {
        Self {
            stream,
            protocol: target.protocol(),
            command: 0,
            statement: None,
            input: Vec::with_capacity(4096),
            body: 0..0,
        }
    }

    /// Takes a connection into this thread's event loop.
    pub(super) fn resume(paused: PausedConnection, target: &Target) -> Result<Self> {
        let mut connection = Self::new(TcpStream::from_std(paused.stream)?, target);
        connection.statement = paused.statement;
        Ok(connection)
    }

    /// Gives the connection back to be used in another event loop.
    pub(super) fn pause(self) -> Result<PausedConnection> {
        Ok(PausedConnection {
            stream: self.stream.into_std()?,
            statement: self.statement,
        })
    }

    /// Sends what must succeed; nothing if there is nothing to send.
    ///
    /// # Errors
    /// It fails.
    pub async fn succeed(&mut self, request: &[u8]) -> Result<()> {
        if request.is_empty() {
            return Ok(());
        }
        let outcome = self.exchange(request).await?;
        let said = String::from_utf8_lossy(self.answer());
        ensure!(
            outcome == Outcome::Success,
            "the server says {outcome:?} {said}"
        );
        Ok(())
    }

    /// Makes a call of a job: sends each of its steps when the one before is answered. `request` is
    /// a buffer. Returns the outcome of the last step, or of the first one that failed.
    ///
    /// # Errors
    /// The connection ends.
    pub async fn call(
        &mut self,
        job: &dyn Job,
        call: Call<'_>,
        request: &mut Vec<u8>,
    ) -> Result<Outcome> {
        let (mut outcome, mut value) = (Outcome::Success, String::new());
        let steps = job.steps();
        for step in 0..steps {
            request.clear();
            let returned = value.as_str();
            let call = Call {
                step,
                returned,
                ..call
            };
            job.write(call, request);
            if let Some(statement) = self.statement {
                mysql::put_number(request, statement);
            }
            outcome = self.exchange(request).await?;
            if outcome != Outcome::Success {
                break;
            }
            if steps > 1 && !self.body.is_empty() {
                value = String::from_utf8_lossy(self.answer()).into_owned();
            }
        }
        Ok(outcome)
    }

    /// Sends a request and waits for its whole answer.
    ///
    /// # Errors
    /// The connection ends, or what comes is no answer.
    pub async fn exchange(&mut self, request: &[u8]) -> Result<Outcome> {
        self.send(request).await?;
        self.receive().await
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// The connection ends.
    pub async fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.command = bytes.get(4).copied().unwrap_or_default();
        Ok(self.stream.write_all(bytes).await?)
    }

    /// Waits for a whole answer.
    ///
    /// # Errors
    /// The connection ends, or what comes is no answer.
    pub async fn receive(&mut self) -> Result<Outcome> {
        self.body = 0..0;
        self.input.clear();
        loop {
            let n = self.stream.read_buf(&mut self.input).await?;
            let parsed = match self.protocol {
                Protocol::Http => answer::over_http(&self.input)?,
                Protocol::Pg => answer::over_pg(&self.input)?,
                Protocol::MySql => answer::over_mysql(self.command, &self.input),
            };
            if let Some(answer) = parsed {
                self.body = answer.body;
                if self.protocol == Protocol::MySql && self.command == mysql::PREPARE {
                    self.statement = self.answer().first_chunk().copied();
                }
                return Ok(answer.outcome);
            }
            if n == 0 {
                let said = String::from_utf8_lossy(&self.input);
                bail!("the server closed the connection: {said}");
            }
        }
    }

    /// Sends statements with one Sync behind them, which must succeed. Reads while it writes:
    /// answers that nobody takes would stop the server, and so the writing.
    ///
    /// # Errors
    /// One fails.
    pub async fn pipeline(&mut self, request: &[u8]) -> Result<()> {
        const READY: &[u8] = b"Z\0\0\0\x05I";
        let Self { stream, input, .. } = self;
        input.clear();
        let (mut reading, mut writing) = stream.split();
        let write = async { anyhow::Ok(writing.write_all(request).await?) };
        let read = async {
            while !input.ends_with(READY) {
                let n = reading.read_buf(input).await?;
                ensure!(n > 0, "the server closed the connection");
            }
            Ok(())
        };
        tokio::try_join!(write, read)?;
        let outcome = answer::over_pg(input)?.map(|answer| answer.outcome);
        ensure!(
            outcome == Some(Outcome::Success),
            "the server says {outcome:?}"
        );
        Ok(())
    }

    /// Returns the body of the last answer: over PostgreSQL's protocol the first value of its last
    /// row, over MySQL's the last row or the message of an error.
    pub fn answer(&self) -> &[u8] {
        self.input.get(self.body.clone()).unwrap_or_default()
    }
}
