//! Sends requests to a running gateway over HTTP.

mod tls;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Args;
use serde_json::Value;
use windrow::settings::address;
use windrow_core::Secret;

/// The time limit of an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The credential of a command.
#[derive(Clone, Debug, Args)]
pub(crate) struct Admission {
    /// The bearer token that the gateway asks for, if it does (better: WINDROW_TOKEN)
    #[arg(
        long,
        value_name = "TOKEN",
        env = "WINDROW_TOKEN",
        hide_env_values = true
    )]
    pub(crate) token: Option<Secret>,
}

/// The usual address of HTTP.
const USUAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8420);

/// The first byte of an alert of TLS (RFC 8446, section 5.1): the reply to a request that is not
/// encrypted.
const TLS_ALERT: u8 = 21;

/// The most bytes of an answer that are read.
const MOST: u64 = 64 << 20;

/// A running gateway that a command sends requests to.
#[derive(Debug)]
pub(crate) struct Gateway {
    /// The address of its HTTP.
    http: String,
    token: Option<Secret>,
    /// True if it uses TLS; empty until it has answered.
    is_tls: OnceLock<bool>,
}

impl Gateway {
    /// Names a gateway by the address of its HTTP. Sends nothing yet.
    pub(crate) fn new(http: &str, token: Option<&Secret>) -> Self {
        Self {
            http: http.to_owned(),
            token: token.cloned(),
            is_tls: OnceLock::new(),
        }
    }

    /// Requests a path, and returns the body of the answer. Fails unless the answer is a success.
    pub(crate) fn get(&self, path: &str) -> anyhow::Result<String> {
        self.ask(&format!("GET {path}"), "\r\n")
    }

    /// Sends JSON to a path. Fails unless the answer is a success.
    pub(crate) fn post(&self, path: &str, body: &Value) -> anyhow::Result<()> {
        let body = body.to_string();
        let length = body.len();
        let rest =
            format!("Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}");
        self.ask(&format!("POST {path}"), &rest).map(drop)
    }

    /// Sends a request. `rest` holds further headers, the empty line after them, and the body.
    fn ask(&self, what: &str, rest: &str) -> anyhow::Result<String> {
        let address = reached(&self.http)?;
        let mut request = format!("{what} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
        if let Some(token) = &self.token {
            request.push_str(&format!("Authorization: Bearer {}\r\n", token.reveal()));
        }
        request.push_str(rest);
        let (answer, read) = self.exchange(address, &request)?;
        let answer = String::from_utf8_lossy(&answer);
        let status = answer.lines().next().unwrap_or_default();
        if status.is_empty() {
            read.with_context(|| format!("{address} does not answer"))?;
            bail!("{address} closes the connection without an answer");
        }
        let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
        let why = reason(body).map(|why| format!(": {why}"));
        ensure!(
            status.starts_with("HTTP/1.1 200"),
            "{address} answers {status}{}",
            why.unwrap_or_default()
        );
        Ok(body.to_owned())
    }

    /// Sends a request, with TLS if the gateway uses it. Its first reply shows that. The token must
    /// not be sent unencrypted to a gateway that uses TLS, so the first request does not contain
    /// it.
    fn exchange(&self, address: SocketAddr, request: &str) -> anyhow::Result<Exchanged> {
        if self.is_tls.get().is_none() && self.token.is_some() {
            let (reply, _) = exchange(connect(address)?, HARMLESS);
            self.note(&reply);
        }
        if self.is_tls.get() != Some(&true) {
            let (reply, read) = exchange(connect(address)?, request);
            self.note(&reply);
            if self.is_tls.get() != Some(&true) {
                return Ok((reply, read));
            }
        }
        Ok(exchange(tls::start(connect(address)?, address)?, request))
    }

    /// Notes whether the gateway uses TLS, by its reply to an unencrypted request.
    fn note(&self, reply: &[u8]) {
        if let Some(first) = reply.first() {
            self.is_tls.get_or_init(|| *first == TLS_ALERT);
        }
    }
}

/// Returns the message of a gateway's error.
fn reason(body: &str) -> Option<String> {
    let answer: Value = serde_json::from_str(body).ok()?;
    Some(answer.pointer("/error/message")?.as_str()?.to_owned())
}

/// A request without a token, whose answer has no body.
const HARMLESS: &str = "HEAD /healthz HTTP/1.1\r\nHost: windrow\r\nConnection: close\r\n\r\n";

/// The bytes that were read, and how the connection ended.
type Exchanged = (Vec<u8>, std::io::Result<()>);

fn connect(address: SocketAddr) -> anyhow::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, PATIENCE)
        .with_context(|| format!("nobody listens on {address}"))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Sends a request and reads until the connection ends, with or without an error.
fn exchange(mut stream: impl Read + Write, request: &str) -> Exchanged {
    let mut answer = Vec::new();
    let done = stream.write_all(request.as_bytes());
    let done = done.and_then(|()| stream.take(MOST).read_to_end(&mut answer).map(drop));
    (answer, done)
}

/// Returns the address to connect to: loopback for a gateway that listens on all addresses of the
/// machine.
fn reached(http: &str) -> anyhow::Result<SocketAddr> {
    let mut address = address::read("--http", http, USUAL)?;
    if address.ip().is_unspecified() {
        address.set_ip(match address.is_ipv4() {
            true => Ipv4Addr::LOCALHOST.into(),
            false => Ipv6Addr::LOCALHOST.into(),
        });
    }
    Ok(address)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn all_addresses_are_asked_on_loopback() {
        for (written, asked) in [
            ("8420", "127.0.0.1:8420"),
            ("localhost:1", "127.0.0.1:1"),
            ("0.0.0.0:8420", "127.0.0.1:8420"),
            ("[::]:8420", "[::1]:8420"),
            ("192.0.2.1:1", "192.0.2.1:1"),
        ] {
            assert_eq!(reached(written).unwrap().to_string(), asked);
        }
        assert!(reached("here").is_err());
    }

    /// Counts the connections that a gateway gets for two questions.
    fn connections(token: Option<&Secret>) -> usize {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let gateway = Gateway::new(&listener.local_addr().unwrap().to_string(), token);
        let (asked, is_asked) = std::sync::mpsc::channel();
        let served = std::thread::spawn(move || {
            let mut count = 0;
            while is_asked.try_recv().is_err() {
                let (mut stream, _) = listener.accept().unwrap();
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    match stream.read(&mut byte) {
                        Ok(1) => head.extend_from_slice(&byte),
                        _ => break,
                    }
                }
                count += usize::from(!head.is_empty());
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nwell").ok();
            }
            count
        });
        for _ in 0..2 {
            assert_eq!(gateway.get("/healthz").unwrap(), "well");
        }
        asked.send(()).unwrap();
        drop(connect(reached(&gateway.http).unwrap()));
        served.join().unwrap()
    }

    #[test]
    fn a_gateway_is_asked_once_if_it_speaks_tls() {
        assert_eq!(connections(None), 2);
        assert_eq!(connections(Some(&Secret::from("secret"))), 3);
    }
}
