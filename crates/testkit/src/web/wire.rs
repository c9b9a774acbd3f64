//! Requests in, answers out.

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::message::{Reply, Request};

/// The most bytes of a head.
const HEAD: usize = 64 << 10;

/// Reads a request with a body of known length; `None`: the client has left.
pub(super) async fn read(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<Option<Request>> {
    let end = loop {
        if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if buffer.len() > HEAD || socket.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8(buffer.drain(..end + 4).collect())?;
    let mut lines = head.split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target)) = (first.next(), first.next()) else {
        bail!("no request line");
    };
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let mut request = Request {
        method: method.to_owned(),
        target: target.to_owned(),
        headers,
        body: String::new(),
    };
    let length: usize = request.header("content-length").unwrap_or("0").parse()?;
    while buffer.len() < length {
        if socket.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
    request.body =
        String::from_utf8(buffer.drain(..length).collect()).context("the body is not UTF-8")?;
    Ok(Some(request))
}

pub(super) async fn write(socket: &mut TcpStream, reply: &Reply) -> Result<()> {
    Ok(socket.write_all(&bytes(reply)).await?)
}

pub(super) async fn write_half(socket: &mut TcpStream, reply: &Reply) -> Result<()> {
    let bytes = bytes(reply);
    let half = bytes.len().saturating_sub(reply.body.len() / 2 + 1);
    Ok(socket
        .write_all(bytes.get(..half).unwrap_or_default())
        .await?)
}

fn bytes(reply: &Reply) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {} -\r\n", reply.status);
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("content-length: {}\r\n\r\n", reply.body.len()));
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(reply.body.as_bytes());
    bytes
}
