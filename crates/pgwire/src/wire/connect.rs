//! Connects to a server: tries hosts and their addresses in order, with or without TLS.

use std::fmt;
use std::time::Duration;

use rand::seq::SliceRandom;
use tokio::net::TcpStream;
use tokio::time;
use windrow_core::{Fault, FaultClass};

use super::connection::Wire;
use super::dial::{self, PlainSocket};
use super::endpoint::{Endpoint, Peer};
use super::entrance::{Entrance, Refusal};
use super::socket::Socket;
use super::startup::start;
use super::tls;
use crate::target::{Host, SessionKind, SslMode, Target};

impl Wire {
    /// Connects to the first host of the target that accepts. `settings` are run-time parameters
    /// for the session (`lock_timeout`, ...), in force from its start. `timeout` is for each
    /// address of each host; the URL's `connect_timeout` comes before it. Cancel safe.
    ///
    /// # Errors
    /// [`FaultClass::Unavailable`], with the names of all hosts, if none could be reached or all
    /// were busy, starting or stopping. [`FaultClass::Denied`], [`FaultClass::Invalid`] or another
    /// class if another attempt would fail too: as in libpq, the first such answer ends the search.
    /// No message has a password.
    pub async fn connect(
        target: &Target,
        settings: &[(&str, String)],
        timeout: Duration,
    ) -> Result<Self, Fault> {
        let timeout = target.connect_timeout.unwrap_or(timeout);
        let mut faults = Vec::new();
        let mut hosts: Vec<&Host> = target.hosts.iter().collect();
        if target.is_balanced {
            hosts.shuffle(&mut rand::rng());
        }
        for host in hosts {
            let endpoints = match within(timeout, host, dial::endpoints(host)).await {
                Ok(Ok(endpoints)) => endpoints,
                Ok(Err(error)) => {
                    faults.push(unreachable(
                        host,
                        &format!("the name is not found: {error}"),
                    ));
                    continue;
                }
                Err(late) => {
                    faults.push(late);
                    continue;
                }
            };
            for endpoint in &endpoints {
                let entrance = Entrance {
                    target,
                    host,
                    endpoint,
                    settings,
                };
                let tried = within(timeout, &Peer(host, endpoint), enter(&entrance)).await;
                match tried.and_then(|entered| entered) {
                    Ok(wire) => return Ok(wire),
                    Err(fault) if fault.class == FaultClass::Unavailable => faults.push(fault),
                    Err(fault) => return Err(fault),
                }
            }
        }
        Err(sum_up(faults))
    }
}

/// Runs a step of connecting, with a timeout.
async fn within<T>(
    timeout: Duration,
    peer: &impl fmt::Display,
    step: impl Future<Output = T>,
) -> Result<T, Fault> {
    time::timeout(timeout, step).await.map_err(|_| {
        unreachable(
            peer,
            &format!(
                "no connection within {timeout:?} (connect_timeout); is the address right, and does a firewall let it through?"
            ),
        )
    })
}

fn unreachable(peer: &impl fmt::Display, why: &str) -> Fault {
    Fault::unavailable(format!("cannot connect to PostgreSQL at {peer}: {why}"))
}

/// Combines the faults of all hosts.
fn sum_up(mut faults: Vec<Fault>) -> Fault {
    match (faults.pop(), faults.is_empty()) {
        (Some(only), true) => only,
        (Some(last), false) => {
            faults.push(last);
            let all: Vec<_> = faults.iter().map(|fault| &*fault.message).collect();
            Fault::unavailable(all.join("; "))
        }
        (None, _) => Fault::unavailable("cannot connect to PostgreSQL: its name has no address"),
    }
}

/// Connects with TLS, without, or with one after the other, as `sslmode` says.
async fn enter(entrance: &Entrance<'_>) -> Result<Wire, Fault> {
    let ways: &[bool] = match (entrance.endpoint, entrance.target.tls.mode) {
        (Endpoint::Unix(_), _) | (_, SslMode::Disable) => &[false],
        (_, SslMode::Allow) => &[false, true],
        (_, SslMode::Prefer) => &[true, false],
        _ => &[true],
    };
    let mut first: Option<Fault> = None;
    for way in ways {
        match attempt(entrance, *way).await {
            Ok(wire) => return check_kind(wire, entrance).await,
            Err(refusal) if refusal.other_way && first.is_none() => first = Some(refusal.fault),
            // If both attempts fail, the first error is more useful.
            Err(refusal) if matches!(&*refusal.fault.code, "28000" | tls::NOT_ESTABLISHED) => {
                return Err(first.unwrap_or(refusal.fault));
            }
            Err(refusal) => return Err(refusal.fault),
        }
    }
    Err(first.unwrap_or_else(|| Fault::internal("no way to connect was tried")))
}

async fn attempt(entrance: &Entrance<'_>, with_tls: bool) -> Result<Wire, Refusal> {
    let peer = entrance.peer();
    let plain = dial::dial(entrance.endpoint, &entrance.target.tcp)
        .await
        .map_err(|error| unreachable(&peer, &error.to_string()))?;
    match plain {
        PlainSocket::Unix(socket) => start(entrance, Socket::Unix(socket), None).await,
        PlainSocket::Tcp(socket) if !with_tls => start(entrance, Socket::Tcp(socket), None).await,
        PlainSocket::Tcp(socket) => secure(entrance, socket).await,
    }
}

/// Asks for TLS and continues with it, or without it if the server has none and `sslmode` permits
/// that.
async fn secure(entrance: &Entrance<'_>, mut socket: TcpStream) -> Result<Wire, Refusal> {
    let peer = entrance.peer();
    if entrance.target.tls.is_direct {
        let secured = tls::secure(socket, entrance).await?;
        return start(entrance, secured.socket, secured.binding).await;
    }
    match tls::ask(&mut socket).await {
        Ok(b'S') => {
            let secured = tls::secure(socket, entrance).await?;
            start(entrance, secured.socket, secured.binding).await
        }
        Ok(b'N') if entrance.target.tls.mode == SslMode::Prefer => {
            start(entrance, Socket::Tcp(socket), None).await
        }
        Ok(b'N') => Err(Fault::new(
            FaultClass::Denied,
            tls::NOT_ESTABLISHED,
            format!("the server at {peer} does not offer TLS, and the URL's sslmode insists on it"),
        )
        .into()),
        // A server that cannot start a process sends an error without encryption. The message is
        // not repeated, because it is not authenticated.
        Ok(b'E') => Err(unreachable(&peer, "the server refused before TLS was agreed").into()),
        Ok(other) => Err(Fault::new(
            FaultClass::Other,
            "08P01",
            format!(
                "what listens at {peer} is no PostgreSQL server: it answered the question for TLS with `{}`",
                other.escape_ascii()
            ),
        )
        .into()),
        Err(error) => Err(unreachable(&peer, &error.to_string()).into()),
    }
}

/// Refuses servers of the wrong kind.
async fn check_kind(mut wire: Wire, entrance: &Entrance<'_>) -> Result<Wire, Fault> {
    let (reported, question, wanted) = match entrance.target.session {
        SessionKind::Any => return Ok(wire),
        SessionKind::ReadWrite => (
            &["in_hot_standby", "default_transaction_read_only"][..],
            "SHOW transaction_read_only",
            "read-write",
        ),
        SessionKind::Primary => (
            &["in_hot_standby"][..],
            "SELECT CASE WHEN pg_catalog.pg_is_in_recovery() THEN 'on' ELSE 'off' END",
            "primary",
        ),
    };
    // PostgreSQL 14 and later report these parameters without being asked.
    let known: Option<Vec<&str>> = reported.iter().map(|name| wire.parameter(name)).collect();
    let fits = match known {
        Some(known) => known.iter().all(|value| *value == "off"),
        None => ask(&mut wire, question, entrance.host).await? == "off",
    };
    if fits {
        return Ok(wire);
    }
    wire.terminate().await;
    let why = format!("it is no {wanted} server (target_session_attrs)");
    Err(unreachable(&entrance.peer(), &why))
}

async fn ask(wire: &mut Wire, question: &str, host: &Host) -> Result<String, Fault> {
    let rows = match wire.simple(question).await {
        Ok(answer) => answer.map_err(Fault::from)?,
        Err(broken) => return Err(unreachable(host, &broken.to_string())),
    };
    let first = rows
        .into_iter()
        .next()
        .and_then(|row| row.into_iter().next());
    Ok(first.flatten().unwrap_or_default())
}
