//! One request over HTTP: a body that is sent as fast as it is taken.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread;

use anyhow::{Context, Result, anyhow, ensure};

use super::answer;

/// The answer to a large request.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The status of the answer.
    pub status: u16,
    /// Everything behind its head; with its chunk sizes where it was sent in chunks.
    pub body: String,
}

/// Sends a request without a body, such as `GET /metrics`, and returns the body of the answer.
///
/// # Errors
/// As [`send`], or the answer is no success.
pub fn ask(address: SocketAddr, target: &str) -> Result<String> {
    let reply = send(address, target, "text/plain", Some(0), io::empty())?;
    reply.succeeded(200)
}

/// Sends a request with a body, in chunks where its length is not known, and reads the answer
/// meanwhile. `target`: the method too, such as `POST /v1/batch`. Blocks.
///
/// # Errors
/// The connection ends without an answer.
pub fn send(
    address: SocketAddr,
    target: &str,
    content_type: &str,
    length: Option<u64>,
    body: impl Read,
) -> Result<Reply> {
    let mut stream = TcpStream::connect(address).context("nobody listens")?;
    let mut reading = stream.try_clone()?;
    let answer = thread::spawn(move || {
        let mut all = Vec::new();
        reading.read_to_end(&mut all).map(|_| all)
    });
    let framing = match length {
        Some(length) => format!("Content-Length: {length}"),
        None => "Transfer-Encoding: chunked".to_owned(),
    };
    write!(
        stream,
        "{target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: {content_type}\r\n{framing}\r\n\r\n"
    )?;
    let sent = copy(&mut stream, body, length.is_none());
    if sent.is_err() {
        // A server that stops reading may have answered why.
        stream.shutdown(Shutdown::Write).ok();
    }
    let all = answer.join().map_err(|_| anyhow!("the reader panicked"))?;
    let all = all.context("no answer")?;
    if all.is_empty() {
        sent.context("sending the body")?;
    }
    reply(&all)
}

impl Reply {
    /// Returns the body.
    ///
    /// # Errors
    /// The status is another one.
    pub fn succeeded(self, status: u16) -> Result<String> {
        ensure!(
            self.status == status,
            "the server answers {} {}",
            self.status,
            self.body
        );
        Ok(self.body)
    }
}

fn reply(all: &[u8]) -> Result<Reply> {
    let end = memchr::memmem::find(all, b"\r\n\r\n")
        .context("the server closed the connection without a whole answer")?;
    let (head, rest) = all.split_at(end);
    Ok(Reply {
        status: answer::status(head)?,
        body: String::from_utf8_lossy(rest.get(4..).unwrap_or_default()).into_owned(),
    })
}

fn copy(stream: &mut TcpStream, mut body: impl Read, chunked: bool) -> io::Result<()> {
    let mut buffer = vec![0; 256 * 1024];
    loop {
        let n = body.read(&mut buffer)?;
        let bytes = buffer.get(..n).unwrap_or_default();
        if chunked {
            write!(stream, "{n:x}\r\n")?;
        }
        stream.write_all(bytes)?;
        if chunked {
            stream.write_all(b"\r\n")?;
        }
        if n == 0 {
            return Ok(());
        }
    }
}
