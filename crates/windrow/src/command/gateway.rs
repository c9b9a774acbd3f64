//! Asking a running gateway over HTTP.

mod tls;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Args;
use serde_json::Value;
use windrow::settings::address;
use windrow_core::Secret;

/// How long it may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// What lets a command ask.
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

/// Where HTTP usually listens.
const USUAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8420);

/// The first byte of an alert of TLS (RFC 8446, section 5.1): the reply to a request that is not
/// encrypted.
const TLS_ALERT: u8 = 21;

/// The most bytes of an answer that are read.
const MOST: u64 = 64 << 20;

/// Asks for a path, and gives the body of the answer, which must be one of success. `http`: where
/// HTTP listens.
pub(crate) fn get(http: &str, path: &str, token: Option<&Secret>) -> anyhow::Result<String> {
    ask(http, &format!("GET {path}"), token, "\r\n")
}

/// Sends JSON to a path; the answer must be one of success. `http`: where HTTP listens.
pub(crate) fn post(
    http: &str,
    path: &str,
    token: Option<&Secret>,
    body: &Value,
) -> anyhow::Result<()> {
    let body = body.to_string();
    let length = body.len();
    let rest = format!("Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}");
    ask(http, &format!("POST {path}"), token, &rest).map(drop)
}

/// `rest`: further headers, the empty line behind them, and the body.
fn ask(http: &str, what: &str, token: Option<&Secret>, rest: &str) -> anyhow::Result<String> {
    let address = reached(http)?;
    let mut head = format!("{what} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    if let Some(token) = token {
        head.push_str(&format!("Authorization: Bearer {}\r\n", token.reveal()));
    }
    // A gateway that speaks TLS must not be sent the token in the clear.
    let is_tls = speaks_tls(address)?;
    head.push_str(rest);
    let stream = connect(address)?;
    let (answer, read) = match is_tls {
        true => exchange(tls::start(stream, address)?, &head),
        false => exchange(stream, &head),
    };
    let answer = String::from_utf8_lossy(&answer);
    let status = answer.lines().next().unwrap_or_default();
    if status.is_empty() {
        read.with_context(|| format!("{address} does not answer"))?;
        bail!("{address} closes the connection without an answer");
    }
    ensure!(
        status.starts_with("HTTP/1.1 200"),
        "{address} answers {status}"
    );
    let body = answer.split_once("\r\n\r\n");
    Ok(body.map(|(_, body)| body.to_owned()).unwrap_or_default())
}

fn connect(address: SocketAddr) -> anyhow::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, PATIENCE)
        .with_context(|| format!("nobody listens on {address}"))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Returns true if the gateway answers a request without TLS by an alert of TLS.
fn speaks_tls(address: SocketAddr) -> anyhow::Result<bool> {
    let mut stream = connect(address)?;
    stream.write_all(b"HEAD /healthz HTTP/1.1\r\nHost: windrow\r\nConnection: close\r\n\r\n")?;
    let mut first = [0];
    // What is not answered here is reported by the request itself.
    let read = stream.read(&mut first);
    Ok(read.is_ok_and(|n| n == 1) && first == [TLS_ALERT])
}

/// Sends a request and reads what comes back until the connection ends, well or not.
fn exchange(mut stream: impl Read + Write, request: &str) -> (Vec<u8>, std::io::Result<()>) {
    let mut answer = Vec::new();
    let done = stream.write_all(request.as_bytes());
    let done = done.and_then(|()| stream.take(MOST).read_to_end(&mut answer).map(drop));
    (answer, done)
}

/// Where to ask: what listens on all addresses of the machine is asked on loopback.
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
}
