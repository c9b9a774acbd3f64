//! Makes the proof of a password for a server, and verifies one for a client.
//!
//! Both kinds reveal, to a server that has the verifier, a hash of the password that is enough to
//! log in again with the same kind: so a client that has proven itself here can be logged in at the
//! server without its password.

use std::fmt;
use std::str::FromStr;

use mysql_common::scramble::{scramble_native, scramble_sha256};
use sha1::{Digest as _, Sha1};
use sha2::Sha256;
use subtle::ConstantTimeEq;
use thiserror::Error;
use windrow_core::Secret;

use crate::handshake::Nonce;

/// The name of MariaDB's usual kind of proof.
pub const NATIVE: &str = "mysql_native_password";

/// The name of MySQL's usual kind of proof.
pub const CACHING_SHA2: &str = "caching_sha2_password";

/// The hash of a password by which a user's proof is verified.
#[derive(Clone, PartialEq, Eq)]
pub enum Verifier {
    /// SHA-1 of SHA-1 of the password.
    Native([u8; 20]),
    /// SHA-256 of SHA-256 of the password.
    CachingSha2([u8; 32]),
}

/// The means by which a user logs in at a server.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Credential {
    /// The password.
    Password(Secret),
    /// SHA-1 of the password.
    NativeKey([u8; 20]),
    /// SHA-256 of the password.
    CachingSha2Key([u8; 32]),
}

/// A text that is no verifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "it is neither * and 40 hexadecimal digits (mysql_native_password, as PASSWORD() gives it) nor \
     caching_sha2_password: and 64 hexadecimal digits (SHA-256 of SHA-256 of the password)"
)]
pub struct BadPasswordVerifier;

impl FromStr for Verifier {
    type Err = BadPasswordVerifier;

    fn from_str(text: &str) -> Result<Self, BadPasswordVerifier> {
        let native = text.strip_prefix('*').and_then(unhex).map(Self::Native);
        let digits = text
            .strip_prefix(CACHING_SHA2)
            .and_then(|rest| rest.strip_prefix(':'));
        let sha2 = digits.and_then(unhex).map(Self::CachingSha2);
        native.or(sha2).ok_or(BadPasswordVerifier)
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.plugin())
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential")
    }
}

fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.len() != 2 * N {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        let digits = str::from_utf8(digits).ok()?;
        *byte = u8::from_str_radix(digits, 16).ok()?;
    }
    Some(bytes)
}

fn sha1(parts: &[&[u8]]) -> [u8; 20] {
    let mut hash = Sha1::new();
    for part in parts {
        hash.update(part);
    }
    hash.finalize().into()
}

fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    use sha2::Digest as _;
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
    }
    hash.finalize().into()
}

fn xor<const N: usize>(one: [u8; N], other: &[u8]) -> Option<[u8; N]> {
    let mut both: [u8; N] = other.try_into().ok()?;
    for (byte, of_one) in both.iter_mut().zip(one) {
        *byte ^= of_one;
    }
    Some(both)
}

impl Verifier {
    /// Returns the verifier of a password.
    pub fn of(password: &str, plugin: &str) -> Self {
        let password = password.as_bytes();
        match plugin {
            CACHING_SHA2 => Self::CachingSha2(sha256(&[&sha256(&[password])])),
            _ => Self::Native(sha1(&[&sha1(&[password])])),
        }
    }

    /// Returns the kind of proof that it verifies.
    pub fn plugin(&self) -> &'static str {
        match self {
            Self::Native(_) => NATIVE,
            Self::CachingSha2(_) => CACHING_SHA2,
        }
    }

    /// Verifies a proof for this nonce. Returns the credential that it reveals.
    pub fn verify(&self, nonce: &Nonce, proof: &[u8]) -> Option<Credential> {
        match self {
            Self::Native(stored) => {
                let key = xor(sha1(&[nonce, stored]), proof)?;
                let is_it = bool::from(sha1(&[&key]).ct_eq(stored));
                is_it.then_some(Credential::NativeKey(key))
            }
            Self::CachingSha2(stored) => {
                let key = xor(sha256(&[stored, nonce]), proof)?;
                let is_it = bool::from(sha256(&[&key]).ct_eq(stored));
                is_it.then_some(Credential::CachingSha2Key(key))
            }
        }
    }
}

impl Credential {
    /// Returns the proof of a kind for this nonce. `None` if this credential cannot give one.
    pub fn proof(&self, plugin: &[u8], nonce: &Nonce) -> Option<Vec<u8>> {
        let is_native = plugin == NATIVE.as_bytes();
        let is_sha2 = plugin == CACHING_SHA2.as_bytes();
        match self {
            Self::Password(password) => {
                let password = password.reveal().as_bytes();
                match (is_native, is_sha2) {
                    (true, _) => {
                        Some(scramble_native(nonce, password).map_or_else(Vec::new, Vec::from))
                    }
                    (_, true) => {
                        Some(scramble_sha256(nonce, password).map_or_else(Vec::new, Vec::from))
                    }
                    _ => None,
                }
            }
            Self::NativeKey(key) => {
                let hash = sha1(&[nonce, &sha1(&[key])]);
                is_native.then(|| xor(*key, &hash).map(Vec::from)).flatten()
            }
            Self::CachingSha2Key(key) => {
                let hash = sha256(&[&sha256(&[key]), nonce]);
                is_sha2.then(|| xor(*key, &hash).map(Vec::from)).flatten()
            }
        }
    }

    /// Returns the password, if it is known.
    pub(crate) fn password(&self) -> Option<&Secret> {
        match self {
            Self::Password(password) => Some(password),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handshake::nonce;

    #[test]
    fn a_proof_is_verified_and_can_be_made_again() {
        for plugin in [NATIVE, CACHING_SHA2] {
            let verifier = Verifier::of("s3cret", plugin);
            let (here, there) = (nonce(), nonce());
            let password = Credential::Password("s3cret".into());
            let proof = password.proof(plugin.as_bytes(), &here).unwrap();
            let revealed = verifier.verify(&here, &proof).unwrap();
            assert!(verifier.verify(&there, &proof).is_none());
            assert!(verifier.verify(&here, b"").is_none());
            let other = Credential::Password("other".into());
            let wrong = other.proof(plugin.as_bytes(), &here).unwrap();
            assert!(verifier.verify(&here, &wrong).is_none());
            assert_eq!(
                revealed.proof(plugin.as_bytes(), &there),
                password.proof(plugin.as_bytes(), &there)
            );
        }
    }

    #[test]
    fn reads_verifiers_as_servers_write_them() {
        // SELECT PASSWORD('abc')
        let written = "*0D3CED9BEC10A777AEC23CCC353A8C08A633045E";
        assert_eq!(written.parse(), Ok(Verifier::of("abc", NATIVE)));
        for nonsense in ["", "*", "abc", "*0D3CED9BEC10A777AEC23CCC353A8C08A633045é"] {
            assert_eq!(nonsense.parse::<Verifier>(), Err(BadPasswordVerifier));
        }
        let digits = "4f8b42c22dd3729b519ba6f68d2da7cc5b2d606d05daed5ad5128cc03e6c6358";
        let written = format!("caching_sha2_password:{digits}");
        assert_eq!(written.parse(), Ok(Verifier::of("abc", CACHING_SHA2)));
    }

    #[test]
    fn no_password_is_an_empty_proof() {
        let none = Credential::Password("".into());
        assert_eq!(none.proof(NATIVE.as_bytes(), &nonce()), Some(Vec::new()));
        assert_eq!(none.proof(b"ed25519", &nonce()), None);
    }
}
