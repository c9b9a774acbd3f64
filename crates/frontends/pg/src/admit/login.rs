//! The exchange in which a client proves that it knows a password.

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use windrow_core::{Fault, FaultClass};
use windrow_pgwire::scram::{Keys, Mechanism, Server};
use windrow_pgwire::wire::Socket;

use super::not_admitted::NotAdmitted;
use super::say;

/// The longest SASL message, in bytes. A client's nonce is the only part of it that may vary.
const MAX_MESSAGE_BYTES: usize = 4096;

const PLAIN: &str = "SCRAM-SHA-256";
const SCRAM_WITH_BINDING: &str = "SCRAM-SHA-256-PLUS";

/// Requires the proof. Returns the keys that it reveals; the last message of the exchange is in
/// `out`, not yet sent.
pub(super) async fn scram(
    stream: &mut Socket,
    role: &str,
    server: Server,
    out: &mut BytesMut,
) -> Result<Keys, NotAdmitted> {
    let offered: &[&str] = match server.offers_binding() {
        true => &[SCRAM_WITH_BINDING, PLAIN],
        false => &[PLAIN],
    };
    say::mechanisms(out, offered);
    send(stream, out).await?;
    let first = receive(stream).await?;
    let (mechanism, first) = initial(&first, offered)?;
    let not_proven = |error| NotAdmitted::from(say::not_proven(error, role));
    let (begun, challenge) = server.begin(mechanism, first).map_err(not_proven)?;
    say::sasl(out, 11, &challenge);
    send(stream, out).await?;
    let last = receive(stream).await?;
    let (proof, keys) = begun.finish(&last).map_err(not_proven)?;
    say::sasl(out, 12, &proof);
    Ok(keys)
}

/// Reads SASLInitialResponse: the mechanism, and its first message.
fn initial<'a>(body: &'a [u8], offered: &[&str]) -> Result<(Mechanism, &'a [u8]), NotAdmitted> {
    let read = || {
        let end = memchr::memchr(0, body)?;
        let (name, rest) = body.split_at_checked(end)?;
        let (length, data) = rest.get(1..)?.split_first_chunk::<4>()?;
        let length = usize::try_from(i32::from_be_bytes(*length)).ok()?;
        (length == data.len()).then_some((std::str::from_utf8(name).ok()?, data))
    };
    let (name, data) = read().ok_or_else(|| violation("malformed SASLInitialResponse message"))?;
    match name {
        PLAIN => Ok((Mechanism::Plain, data)),
        SCRAM_WITH_BINDING if offered.contains(&SCRAM_WITH_BINDING) => Ok((Mechanism::Plus, data)),
        _ => Err(violation("client selected an invalid SASL authentication mechanism").into()),
    }
}

pub(super) async fn send(stream: &mut Socket, out: &mut BytesMut) -> Result<(), NotAdmitted> {
    let sent = async {
        stream.write_all(out).await?;
        stream.flush().await
    };
    sent.await.map_err(|_| NotAdmitted::Silent)?;
    out.clear();
    Ok(())
}

/// Returns the body of the next SASL message. A client without a password disconnects here, to ask
/// its user for one.
async fn receive(stream: &mut Socket) -> Result<Vec<u8>, NotAdmitted> {
    let gone = |_| NotAdmitted::Silent;
    let tag = stream.read_u8().await.map_err(gone)?;
    if tag == b'X' {
        return Err(NotAdmitted::Silent);
    }
    if tag != b'p' {
        let text = format!("expected SASL response, got message type {tag}");
        return Err(violation(text).into());
    }
    let length = stream.read_u32().await.map_err(gone)?;
    let length = usize::try_from(length)
        .ok()
        .and_then(|length| length.checked_sub(size_of::<u32>()))
        .filter(|length| *length <= MAX_MESSAGE_BYTES)
        .ok_or_else(|| {
            violation(format!(
                "a SASL message is longer than {MAX_MESSAGE_BYTES} bytes"
            ))
        })?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.map_err(gone)?;
    Ok(body)
}

fn violation(text: impl Into<Box<str>>) -> Fault {
    Fault::new(FaultClass::Invalid, "08P01", text)
}
