//! Connects to a server and logs in with a client's own abilities, so that the server's answers can
//! be handed to that client byte for byte.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use mysql_common::constants::CapabilityFlags;
use socket2::{SockRef, TcpKeepalive};
use thiserror::Error;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use crate::auth::{CACHING_SHA2, Credential};
use crate::error_packet::{ERROR, ErrorPacket};
use crate::handshake::{Greeting, LoginRequest, Nonce, parse_auth_switch};
use crate::packet::Wire;
use crate::server_tls;
use crate::target::{Target, TlsMode};

/// The longest packet of a login, in bytes.
const MAX_LOGIN_BYTES: usize = 128 * 1024;

/// The time after which keepalive begins, so that a vanished server is noticed after about a
/// minute.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// Steps of `caching_sha2_password`.
const FAST_DONE: u8 = 3;
const FULL_WANTED: u8 = 4;
const KEY_WANTED: u8 = 2;

/// A server connection that is logged in.
pub struct ServerLogin {
    /// The connection.
    pub wire: Wire,
    /// The server's greeting.
    pub greeting: Greeting,
    /// The packet that reports the login's success.
    pub ok: Bytes,
}

/// The reason for which a server cannot be used.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The server refused the login.
    #[error("{0}")]
    Refused(ErrorPacket),
    /// The server cannot be reached, or breaks off.
    #[error("{0}")]
    Lost(#[from] io::Error),
    /// The server asks for a proof that the credential cannot give.
    #[error("the server wants a proof by {0}, for which the user's password is needed")]
    NoProof(String),
    /// The server did not answer in time.
    #[error("the server did not answer within {0:?} (connect_timeout)")]
    Late(Duration),
}

/// Connects and logs in as the request's user. The request's own proof is not used.
///
/// # Errors
/// The server cannot be reached in time, or refuses.
pub async fn connect(
    target: &Target,
    request: &LoginRequest,
    credential: &Credential,
    limit: Duration,
) -> Result<ServerLogin, ConnectError> {
    let logged_in = timeout(limit, log_in(target, request, credential));
    logged_in.await.unwrap_or(Err(ConnectError::Late(limit)))
}

async fn log_in(
    target: &Target,
    request: &LoginRequest,
    credential: &Credential,
) -> Result<ServerLogin, ConnectError> {
    let mut wire = dial(target).await?;
    let content = packet(&mut wire).await?;
    let no_greeting = || io::Error::other("the server's greeting cannot be read");
    let greeting = Greeting::parse(&content).ok_or_else(no_greeting)?;
    let mut request = request.clone();
    let is_secret = target.socket.is_some() || target.tls != TlsMode::Disable;
    request.capabilities &= greeting.capabilities;
    request.extended &= greeting.extended;
    let with_tls = target.tls != TlsMode::Disable && target.socket.is_none();
    request
        .capabilities
        .set(CapabilityFlags::CLIENT_SSL, with_tls);
    if with_tls {
        if !greeting.capabilities.contains(CapabilityFlags::CLIENT_SSL) {
            return Err(io::Error::other("the server has no TLS, and sslmode asks for it").into());
        }
        wire.put(&request.encode_tls_request());
        wire.flush().await?;
        wire = server_tls::secure(wire, target).await?;
        wire.set_next(2);
    }
    // The server answers an unknown kind by a switch to one that it knows.
    let first = credential.proof(&greeting.plugin, &greeting.nonce);
    request.plugin = greeting.plugin.clone();
    request.proof = first.unwrap_or_default();
    wire.put(&request.encode());
    wire.flush().await?;
    let ok = prove(&mut wire, &greeting, credential, is_secret).await?;
    Ok(ServerLogin { wire, greeting, ok })
}

async fn dial(target: &Target) -> io::Result<Wire> {
    if let Some(path) = &target.socket {
        return Ok(Wire::new(UnixStream::connect(path).await?));
    }
    let socket = TcpStream::connect((&*target.host, target.port)).await?;
    socket.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_IDLE)
        .with_interval(KEEPALIVE_INTERVAL);
    SockRef::from(&socket).set_tcp_keepalive(&keepalive)?;
    Ok(Wire::new(socket))
}

/// Reads a packet, which must not be an error.
async fn packet(wire: &mut Wire) -> Result<Bytes, ConnectError> {
    let content = wire.packet(MAX_LOGIN_BYTES).await?;
    let content = content.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
    match ErrorPacket::parse(&content) {
        Some(error) if content.first() == Some(&ERROR) => Err(ConnectError::Refused(error)),
        _ => Ok(content),
    }
}

/// Sends the proofs that the server asks for, until it reports success.
async fn prove(
    wire: &mut Wire,
    greeting: &Greeting,
    credential: &Credential,
    is_secret: bool,
) -> Result<Bytes, ConnectError> {
    let (mut plugin, mut nonce) = (greeting.plugin.clone(), greeting.nonce);
    loop {
        let content = packet(wire).await?;
        match content.split_first() {
            Some((0, _)) => return Ok(content),
            Some((0xfe, rest)) => {
                let no_kind = || ConnectError::NoProof("a kind from before MySQL 4.1".to_owned());
                (plugin, nonce) = parse_auth_switch(rest).ok_or_else(no_kind)?;
                let proof = credential
                    .proof(&plugin, &nonce)
                    .ok_or_else(|| no_proof(&plugin))?;
                wire.put(&proof);
            }
            Some((1, [FAST_DONE])) => {}
            Some((1, [FULL_WANTED])) if plugin == CACHING_SHA2.as_bytes() => {
                let password = credential.password().ok_or_else(|| no_proof(&plugin))?;
                let mut password = password.reveal().as_bytes().to_vec();
                password.push(0);
                if !is_secret {
                    password = encrypted(wire, password, &nonce).await?;
                }
                wire.put(&password);
            }
            _ => return Err(no_proof(&plugin)),
        }
        wire.flush().await?;
    }
}

/// Encrypts a password with the key that the server gives.
async fn encrypted(
    wire: &mut Wire,
    mut password: Vec<u8>,
    nonce: &Nonce,
) -> Result<Vec<u8>, ConnectError> {
    wire.put(&[KEY_WANTED]);
    wire.flush().await?;
    let content = packet(wire).await?;
    for (byte, of_nonce) in password.iter_mut().zip(nonce.iter().cycle()) {
        *byte ^= of_nonce;
    }
    let key = content.strip_prefix(&[1]).unwrap_or_default();
    if !key.starts_with(b"-----BEGIN PUBLIC KEY-----") {
        return Err(no_proof(CACHING_SHA2.as_bytes()));
    }
    Ok(mysql_common::crypto::encrypt(&password, key))
}

fn no_proof(plugin: &[u8]) -> ConnectError {
    ConnectError::NoProof(String::from_utf8_lossy(plugin).into_owned())
}
