//! The form in which a server stores a password:
//! `SCRAM-SHA-256$ITERATIONS:SALT$STORED_KEY:SERVER_KEY`, as in `pg_authid.rolpassword`.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{Bytes32, hmac};

/// Bytes of the longest verifier, and of the longest salt. PostgreSQL's own salts have 16.
const MAX_VERIFIER_BYTES: usize = 1024;
const MAX_SALT_BYTES: usize = 256;

/// PostgreSQL's default number of iterations, used for unknown roles.
const ITERATIONS: u32 = 4096;

/// A SCRAM-SHA-256 verifier. A secret: with it a program can impersonate the server.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Verifier {
    pub(super) iterations: u32,
    pub(super) salt: Box<[u8]>,
    pub(super) stored: Bytes32,
    pub(super) server: Bytes32,
}

/// The reason why a text is not a verifier. The error does not repeat the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadVerifier {
    /// The text is an MD5 hash.
    Md5,
    /// The text is no password hash of PostgreSQL.
    Malformed,
}

impl fmt::Display for BadVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Md5 => {
                "it is an md5 hash, and only SCRAM-SHA-256 is supported: set password_encryption = 'scram-sha-256' \
                 at the server and set the role's password again"
            }
            Self::Malformed => {
                "it is no SCRAM-SHA-256 verifier (SCRAM-SHA-256$ITERATIONS:SALT$STORED_KEY:SERVER_KEY, as in \
                 pg_authid.rolpassword)"
            }
        })
    }
}

impl std::error::Error for BadVerifier {}

impl FromStr for Verifier {
    type Err = BadVerifier;

    fn from_str(text: &str) -> Result<Self, BadVerifier> {
        if text.len() == 35 && text.starts_with("md5") {
            return Err(BadVerifier::Md5);
        }
        (text.len() <= MAX_VERIFIER_BYTES)
            .then(|| read(text))
            .flatten()
            .ok_or(BadVerifier::Malformed)
    }
}

fn read(text: &str) -> Option<Verifier> {
    let text = text.strip_prefix("SCRAM-SHA-256$")?;
    let (cost, keys) = text.split_once('$')?;
    let (iterations, salt) = cost.split_once(':')?;
    let (stored, server) = keys.split_once(':')?;
    let salt = STANDARD.decode(salt).ok()?;
    Some(Verifier {
        iterations: iterations.parse().ok().filter(|n| *n > 0)?,
        salt: (!salt.is_empty() && salt.len() <= MAX_SALT_BYTES).then(|| salt.into())?,
        stored: STANDARD.decode(stored).ok()?.try_into().ok()?,
        server: STANDARD.decode(server).ok()?.try_into().ok()?,
    })
}

impl Verifier {
    /// Returns a verifier that no password fits, for an unknown role. The same role gets the same
    /// salt each time, so that challenges do not reveal which roles exist.
    pub fn decoy(secret: &Bytes32, role: &str) -> Self {
        let derive = |what: &str| hmac(secret, format!("{what}\0{role}").as_bytes());
        let salt = derive("salt");
        Self {
            iterations: ITERATIONS,
            salt: salt.iter().copied().take(16).collect(),
            stored: derive("stored"),
            server: derive("server"),
        }
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Verifier(***)")
    }
}
