//! A client that speaks PostgreSQL's protocol message by message, for tests that care about each of
//! them.
//!
//! The client sends any bytes, also invalid ones, and returns the answers byte for byte. It knows
//! no authentication but `trust` and no TLS.

mod address;
pub mod backend;
pub mod frontend;

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail};

pub use address::Address;
pub use backend::Message;

/// The time after which an answer counts as missing.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Bytes that are read at once.
const CHUNK: usize = 16 * 1024;

/// A connection that blocks. Closed, without a word, when dropped.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    address: SocketAddr,
    input: Vec<u8>,
    read: usize,
    startup: Vec<Message>,
}

impl Client {
    /// Connects and waits until the server is ready for a query.
    ///
    /// # Errors
    /// Nobody listens, or the server refuses: the message holds its words.
    pub fn connect(address: &Address) -> Result<Self> {
        Self::connect_with(address, &[])
    }

    /// As [`Client::connect`], with more parameters in the startup packet.
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub fn connect_with(address: &Address, parameters: &[(&str, &str)]) -> Result<Self> {
        let mut client = Self::open(address.socket)?;
        let own = [
            ("user", address.role.as_str()),
            ("database", address.database.as_str()),
        ];
        let all: Vec<_> = own.iter().chain(parameters).copied().collect();
        let mut out = Vec::new();
        frontend::startup(&mut out, &all);
        client.send(&out)?;
        client.startup = client.until_ready()?;
        match client.startup.iter().find(|m| m.tag == b'E') {
            Some(error) => bail!("{error:?}"),
            None => Ok(client),
        }
    }

    /// Opens a connection without a startup packet.
    ///
    /// # Errors
    /// Nobody listens.
    pub fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect_timeout(&address, ANSWER_TIMEOUT)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
        Ok(Self {
            stream,
            address,
            input: Vec::new(),
            read: 0,
            startup: Vec::new(),
        })
    }

    /// Returns the messages of the server up to its first ReadyForQuery, and that.
    pub fn startup(&self) -> &[Message] {
        &self.startup
    }

    /// Returns the bytes that a CancelRequest for this session holds: process id and secret key.
    pub fn cancel_key(&self) -> Option<&[u8]> {
        let key = self.startup.iter().find(|m| m.tag == b'K')?;
        Some(&key.body)
    }

    /// Asks the server, over a connection of its own, to cancel what this session does, and waits
    /// until the server has closed that connection.
    ///
    /// # Errors
    /// Nobody listens, or the session has no key.
    pub fn cancel(&self) -> Result<()> {
        let key = self.cancel_key().context("the session has no cancel key")?;
        let mut other = Self::open(self.address)?;
        let mut out = Vec::new();
        frontend::cancel(&mut out, key);
        other.send(&out)?;
        anyhow::ensure!(other.receive()?.is_none(), "a cancel request was answered");
        Ok(())
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// The server has gone, or has not read for a minute.
    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).context("cannot send")
    }

    /// Returns the next message; `None` once the server has closed the connection.
    ///
    /// # Errors
    /// Nothing came for a minute, or what came is no message.
    pub fn receive(&mut self) -> Result<Option<Message>> {
        loop {
            let unread = self.input.get(self.read..).unwrap_or_default();
            if let Some((message, length)) = backend::split(unread)? {
                self.read += length;
                return Ok(Some(message));
            }
            self.input.drain(..self.read);
            self.read = 0;
            let mut chunk = [0; CHUNK];
            let n = match self.stream.read(&mut chunk) {
                Ok(n) => n,
                Err(error) if error.kind() == ErrorKind::ConnectionReset => 0,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    bail!("no answer for {ANSWER_TIMEOUT:?}")
                }
                Err(error) => return Err(error.into()),
            };
            if n == 0 {
                return Ok(None);
            }
            self.input
                .extend_from_slice(chunk.get(..n).unwrap_or_default());
        }
    }

    /// Returns all messages to the next ReadyForQuery, and that; or to the end of the connection.
    ///
    /// # Errors
    /// As [`Client::receive`].
    pub fn until_ready(&mut self) -> Result<Vec<Message>> {
        let mut messages = Vec::new();
        while let Some(message) = self.receive()? {
            let ready = message.tag == b'Z';
            messages.push(message);
            if ready {
                break;
            }
        }
        Ok(messages)
    }

    /// Sends a simple query and gives the whole answer.
    ///
    /// # Errors
    /// As [`Client::send`] and [`Client::receive`].
    pub fn query(&mut self, sql: &str) -> Result<Vec<Message>> {
        let mut out = Vec::new();
        frontend::query(&mut out, sql);
        self.send(&out)?;
        self.until_ready()
    }

    /// Returns the socket, for tests that shut it or change its buffers.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }
}
