//! `windrow health`: asks a running gateway whether it lives, for whoever watches it and has no
//! HTTP client: a container without a shell.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail, ensure};

use crate::telemetry;

/// How long it may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The most bytes of an answer that are read.
const MOST: u64 = 4 << 10;

/// Runs the command. `http`: where HTTP listens.
pub(crate) fn run(http: &str) -> ExitCode {
    match ask(http) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            telemetry::say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn ask(http: &str) -> anyhow::Result<()> {
    let address = address(http)?;
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)
        .with_context(|| format!("nobody listens on {address}"))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let head = format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    let mut answer = Vec::new();
    let read = stream.take(MOST).read_to_end(&mut answer);
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
    Ok(())
}

/// Where to ask: what listens on all addresses of the machine is asked on loopback.
fn address(http: &str) -> anyhow::Result<SocketAddr> {
    if let Ok(port) = http.parse::<u16>() {
        return Ok(([127, 0, 0, 1], port).into());
    }
    let local = http.replace("localhost:", "127.0.0.1:");
    let mut address: SocketAddr = local.parse().with_context(|| {
        format!("{http:?} is not an address and a port such as 127.0.0.1:8420, nor a port alone")
    })?;
    if address.ip().is_unspecified() {
        let port = address.port();
        address = match address.is_ipv4() {
            true => ([127, 0, 0, 1], port).into(),
            false => (std::net::Ipv6Addr::LOCALHOST, port).into(),
        };
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
            assert_eq!(address(written).unwrap().to_string(), asked);
        }
        assert!(address("here").is_err());
    }
}
