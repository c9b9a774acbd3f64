//! The first packet of a connection: a length, a code, and a body that depends on the code.
//!
//! PostgreSQL's documentation, "Message Formats" (StartupMessage, SSLRequest, GSSENCRequest,
//! CancelRequest); `src/backend/tcop/backend_startup.c`.

use tokio::io::{AsyncRead, AsyncReadExt};
use windrow_core::{Fault, FaultClass};

use super::not_admitted::NotAdmitted;

/// The shortest and longest startup packet, in bytes, the length included
/// (`MAX_STARTUP_PACKET_LENGTH` excludes it).
const MIN_PACKET_BYTES: usize = 8;
const MAX_PACKET_BYTES: usize = 10_004;

const CANCEL_REQUEST: u32 = 80_877_102;
const SSL_REQUEST: u32 = 80_877_103;
const GSSENC_REQUEST: u32 = 80_877_104;

/// The oldest and the newest supported version of the protocol: major and minor version.
const PROTOCOL: u32 = 3 << 16;
const NEWEST_PROTOCOL: u32 = PROTOCOL + 2;

/// The version of the protocol from which on cancel keys may be longer than 4 bytes.
const LONG_KEYS: u32 = PROTOCOL + 2;

/// The lengths of cancel keys, in bytes.
const CANCEL_KEY: std::ops::RangeInclusive<usize> = 4..=256;

/// The first packet of a client.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Packet {
    /// A request for TLS.
    Ssl,
    /// A request for encryption by GSSAPI.
    Gss,
    /// A request to interrupt the statement of a session.
    Cancel {
        /// The process number of the session.
        pid: i32,
        /// The secret of the session.
        secret: Box<[u8]>,
    },
    /// A request for a session.
    Startup(Startup),
}

/// A StartupMessage.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Startup {
    /// The requested version of the protocol.
    pub(super) version: u32,
    /// Protocol options (`_pq_.`), all of which are unknown here.
    pub(super) unknown: Vec<String>,
    /// Names and values, in their order.
    pub(super) parameters: Vec<(String, String)>,
}

impl Startup {
    /// Returns the version of the protocol that is used with the client.
    pub(super) fn spoken(&self) -> u32 {
        self.version.min(NEWEST_PROTOCOL)
    }

    /// Returns true if the client asks for more than is supported.
    pub(super) fn is_beyond(&self) -> bool {
        self.version > NEWEST_PROTOCOL || !self.unknown.is_empty()
    }

    /// Returns the length of the client's cancel key, in bytes.
    pub(super) fn key_bytes(&self) -> usize {
        match self.spoken() >= LONG_KEYS {
            true => 32,
            false => 4,
        }
    }
}

/// Reads a packet, and not a byte after it.
pub(super) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Result<Packet, NotAdmitted> {
    let length = stream.read_u32().await.map_err(|_| NotAdmitted::Silent)?;
    // As the server does: a driver that is closed before it begins sends a zero length here, and
    // expects no answer.
    let length = usize::try_from(length)
        .ok()
        .filter(|length| (MIN_PACKET_BYTES..=MAX_PACKET_BYTES).contains(length))
        .ok_or_else(|| {
            tracing::debug!(length, "invalid length of startup packet");
            NotAdmitted::Silent
        })?;
    let mut body = vec![0; length - size_of::<u32>()];
    stream
        .read_exact(&mut body)
        .await
        .map_err(|_| NotAdmitted::Silent)?;
    parse(&body)
}

pub(super) fn parse(body: &[u8]) -> Result<Packet, NotAdmitted> {
    let Some((code, rest)) = body.split_first_chunk::<4>() else {
        return Err(NotAdmitted::Silent);
    };
    match (u32::from_be_bytes(*code), rest) {
        (SSL_REQUEST, []) => Ok(Packet::Ssl),
        (GSSENC_REQUEST, []) => Ok(Packet::Gss),
        (CANCEL_REQUEST, rest) => cancel(rest).ok_or(NotAdmitted::Silent),
        (version, rest) if version >> 16 == PROTOCOL >> 16 => {
            startup(version, rest).map(Packet::Startup)
        }
        (version, _) => {
            let (major, minor) = (version >> 16, version & 0xffff);
            let text = format!(
                "unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.2"
            );
            Err(Fault::new(FaultClass::Unsupported, "0A000", text).into())
        }
    }
}

fn cancel(rest: &[u8]) -> Option<Packet> {
    let (pid, rest) = rest.split_first_chunk::<4>()?;
    CANCEL_KEY.contains(&rest.len()).then(|| Packet::Cancel {
        pid: i32::from_be_bytes(*pid),
        secret: rest.into(),
    })
}

fn startup(version: u32, rest: &[u8]) -> Result<Startup, NotAdmitted> {
    let bad = || violation("invalid startup packet layout: expected terminator as last byte");
    let rest = rest
        .strip_suffix(&[0])
        .filter(|rest| rest.last().is_none_or(|last| *last == 0))
        .ok_or_else(bad)?;
    let mut texts = rest.split(|byte| *byte == 0);
    let mut startup = Startup {
        version,
        ..Startup::default()
    };
    loop {
        // The last value's terminator leaves an empty text after it. If that is missing, the last
        // name has no value.
        let name = texts.next().ok_or_else(bad)?;
        if name.is_empty() {
            break;
        }
        let (name, value) = (text(name)?, text(texts.next().ok_or_else(bad)?)?);
        if name.starts_with("_pq_.") {
            startup.unknown.push(name);
        } else {
            startup.parameters.push((name, value));
        }
    }
    if texts.next().is_some() {
        return Err(bad().into());
    }
    Ok(startup)
}

fn text(bytes: &[u8]) -> Result<String, NotAdmitted> {
    let text = String::from_utf8(bytes.to_vec());
    text.map_err(|_| {
        let text = "the startup packet holds text that is not UTF-8, which is not supported: use names and values in UTF-8";
        Fault::new(FaultClass::Unsupported, "0A000", text).into()
    })
}

fn violation(text: &str) -> Fault {
    Fault::new(FaultClass::Invalid, "08P01", text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packet(code: u32, rest: &[u8]) -> Vec<u8> {
        [&code.to_be_bytes()[..], rest].concat()
    }

    #[test]
    fn each_kind_is_read() {
        assert!(matches!(parse(&packet(SSL_REQUEST, &[])), Ok(Packet::Ssl)));
        assert!(matches!(
            parse(&packet(GSSENC_REQUEST, &[])),
            Ok(Packet::Gss)
        ));
        let cancel = parse(&packet(CANCEL_REQUEST, &[0, 0, 0, 9, 1, 2, 3, 4])).ok();
        let (pid, secret) = (9, [1, 2, 3, 4].into());
        assert_eq!(cancel, Some(Packet::Cancel { pid, secret }));
        let long = parse(&packet(CANCEL_REQUEST, &[7; 36])).ok();
        let (pid, secret) = (0x0707_0707, [7; 32].into());
        assert_eq!(long, Some(Packet::Cancel { pid, secret }));
        assert!(parse(&packet(CANCEL_REQUEST, &[7; 261])).is_err());
        let text = b"user\0me\0_pq_.x\0y\0options\0\0\0";
        let startup = parse(&packet(PROTOCOL + 3, text)).ok();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            startup,
            Some(Packet::Startup(Startup {
                version: PROTOCOL + 3,
                unknown: vec!["_pq_.x".to_owned()],
                parameters: vec![pair("user", "me"), pair("options", "")],
            }))
        );
    }

    #[test]
    fn what_is_malformed_is_refused() {
        for bytes in [
            packet(PROTOCOL, b""),
            packet(PROTOCOL, b"user\0me\0"),
            packet(PROTOCOL, b"user\0me"),
            packet(PROTOCOL, b"user\0me\0\0x\0\0"),
            packet(PROTOCOL, b"user\0\xff\0\0"),
            packet(2 << 16, b"user\0me\0\0"),
            packet(CANCEL_REQUEST, b"123"),
            packet(SSL_REQUEST, b"more"),
        ] {
            assert!(parse(&bytes).is_err(), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(rest: Vec<u8>, any: Vec<u8>) {
            drop(parse(&packet(PROTOCOL, &rest)));
            drop(parse(&any));
        }
    }
}
