//! One keep-alive connection.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::answer::{self, Answer};

/// A connection with its buffers.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    input: Vec<u8>,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// Nobody listens there.
    pub async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address)
            .await
            .with_context(|| format!("nobody listens at {address}"))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            input: Vec::with_capacity(4096),
        })
    }

    /// Sends a request and reads its answer; gives the status and the body.
    ///
    /// # Errors
    /// The connection ends, or what comes is no answer.
    pub async fn exchange(&mut self, request: &[u8]) -> Result<(u16, &[u8])> {
        self.input.clear();
        self.stream.write_all(request).await?;
        let Answer { status, body } = loop {
            let n = self.stream.read_buf(&mut self.input).await?;
            anyhow::ensure!(n > 0, "the server closed the connection");
            if let Some(answer) = answer::parse(&self.input)? {
                break answer;
            }
        };
        Ok((status, self.input.get(body).unwrap_or_default()))
    }
}
