//! What a server keeps of a password: `SCRAM-SHA-256$ITERATIONS:SALT$STORED_KEY:SERVER_KEY`, as in
//! `pg_authid.rolpassword`.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{Bytes32, hmac};

/// The longest verifier that is read, and the longest salt, in bytes. PostgreSQL's own salts have
/// 16.
const LONGEST: usize = 1024;
const LONGEST_SALT: usize = 256;

/// PostgreSQL's default, which a role that is not known is given.
const ITERATIONS: u32 = 4096;

/// A SCRAM-SHA-256 verifier. Shown nowhere: who has it can pass himself off as the server.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Verifier {
    pub(super) iterations: u32,
    pub(super) salt: Box<[u8]>,
    pub(super) stored: Bytes32,
    pub(super) server: Bytes32,
}

/// Why a text is no verifier. It does not repeat the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadVerifier {
    /// A hash of the old kind.
    Md5,
    /// Neither.
    Malformed,
}

impl fmt::Display for BadVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Md5 => {
                "it is an md5 hash, and only SCRAM-SHA-256 is supported: set password_encryption = 'scram-sha-256' \
                 at the server and set the role's password anew"
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
        (text.len() <= LONGEST)
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
        salt: (!salt.is_empty() && salt.len() <= LONGEST_SALT).then(|| salt.into())?,
        stored: STANDARD.decode(stored).ok()?.try_into().ok()?,
        server: STANDARD.decode(server).ok()?.try_into().ok()?,
    })
}

impl Verifier {
    /// A verifier that no password fits, for a role that is not known: each time the same salt for
    /// the same role, so that nobody learns from the challenge which roles there are.
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
