//! Messages to a client that is being admitted.

use bytes::{BufMut, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Duration, timeout};
use windrow_core::Fault;
use windrow_pgwire::scram::ScramError;
use windrow_pgwire::wire::Socket;

use crate::access;
use crate::codec::answer::{self, message, parameter_status, text};
use crate::codec::failure;

/// The time in which a client that is turned away may read the error. Meanwhile its messages are
/// read, because closing a socket with unread bytes resets the connection, and the client may never
/// see the error.
const ERROR_TIMEOUT: Duration = Duration::from_secs(1);
const MAX_READ_AT_END_BYTES: usize = 64 * 1024;

/// Writes NegotiateProtocolVersion.
pub(super) fn negotiate(out: &mut BytesMut, spoken: u32, unknown: &[String]) {
    message(out, b'v', |out| {
        out.put_u32(spoken);
        out.put_u32(u32::try_from(unknown.len()).unwrap_or_default());
        unknown.iter().for_each(|name| text(out, name.as_bytes()));
    });
}

/// Writes AuthenticationOk.
pub(super) fn welcome(out: &mut BytesMut) {
    message(out, b'R', |out| out.put_u32(0));
}

/// Writes AuthenticationSASL, with the mechanisms.
pub(super) fn mechanisms(out: &mut BytesMut, names: &[&str]) {
    message(out, b'R', |out| {
        out.put_u32(10);
        names.iter().for_each(|name| text(out, name.as_bytes()));
        out.put_u8(0);
    });
}

/// Writes AuthenticationSASLContinue (11) or AuthenticationSASLFinal (12).
pub(super) fn sasl(out: &mut BytesMut, step: u32, data: &str) {
    message(out, b'R', |out| {
        out.put_u32(step);
        out.put_slice(data.as_bytes());
    });
}

/// Writes BackendKeyData.
pub(super) fn key(out: &mut BytesMut, pid: i32, secret: &[u8]) {
    message(out, b'K', |out| {
        out.put_i32(pid);
        out.put_slice(secret);
    });
}

/// Writes the greeting of a new session at the console.
pub(super) fn greet_console(out: &mut BytesMut, role: &str, application_name: &str) {
    // Drivers parse a PostgreSQL version from it, and decide by it what they may ask.
    let version = format!("16.0 (Windrow {})", env!("CARGO_PKG_VERSION"));
    for (name, value) in [
        ("server_version", version.as_str()),
        ("server_encoding", "UTF8"),
        ("client_encoding", "UTF8"),
        ("application_name", application_name),
        ("is_superuser", "off"),
        ("session_authorization", role),
        ("DateStyle", "ISO, MDY"),
        ("IntervalStyle", "postgres"),
        ("TimeZone", "UTC"),
        ("integer_datetimes", "on"),
        ("standard_conforming_strings", "on"),
    ] {
        parameter_status(out, name, value);
    }
    out.put_slice(answer::READY);
}

/// Sends the client the reason why it is turned away, if it still reads, and closes the connection.
pub(super) async fn turn_away(mut stream: Socket, fault: &Fault) {
    let mut out = BytesMut::new();
    failure::fatal(&mut out, fault);
    let telling = async {
        stream.write_all(&out).await?;
        stream.shutdown().await?;
        let mut scrap = [0; 1024];
        let mut left = MAX_READ_AT_END_BYTES;
        while let count @ 1.. = stream.read(&mut scrap).await? {
            left = left.saturating_sub(count);
            if left == 0 {
                break;
            }
        }
        std::io::Result::Ok(())
    };
    // A client that does not read the error is turned away nevertheless.
    drop(timeout(ERROR_TIMEOUT, telling).await);
}

/// Closes a connection in an orderly way without a message: clients treat TLS that ends without an
/// alert as truncated.
pub(super) async fn close(mut stream: Socket) {
    drop(timeout(ERROR_TIMEOUT, stream.shutdown()).await);
}

/// Returns the fault of a failed proof, in PostgreSQL's words.
pub(super) fn not_proven(error: ScramError, role: &str) -> Fault {
    use windrow_core::FaultClass::Denied;
    let text = error.to_string();
    match error {
        ScramError::Malformed(why) => Fault::new(Denied, "08P01", text).with_detail(Some(why)),
        ScramError::Unsupported(_) => Fault::new(Denied, "0A000", text),
        ScramError::Negotiation => Fault::new(Denied, "28000", text).with_detail(Some(
            "The client supports SCRAM channel binding but thinks the server does not.  However, this server does support channel binding.",
        )),
        ScramError::Binding => Fault::new(Denied, "28000", text),
        ScramError::Denied => access::denied(role),
    }
}
