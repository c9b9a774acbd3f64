//! SCRAM-SHA-256 without a password: the server's side from a verifier, the client's side from
//! keys.
//!
//! A server that has verified a client's proof knows the client's key, and the verifier contains
//! the server's key. Both keys together log in at any server with the same verifier. The password
//! is never known.
//!
//! RFC 5802, RFC 7677; PostgreSQL's documentation, "SASL Authentication";
//! `src/backend/libpq/auth-scram.c`.

mod client;
mod server;
#[cfg(test)]
mod tests;
mod verifier;

use std::fmt;
use std::hash::{Hash, Hasher};

use hmac::digest::{FixedOutput, Key};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

pub(crate) use client::KeyClient;
pub use server::{Begun, Binding, Mechanism, ScramError, Server};
pub use verifier::{BadVerifier, Verifier};

/// The size of all keys and proofs, in bytes.
const KEY: usize = 32;

/// Key, proof or signature.
pub(crate) type Bytes32 = [u8; KEY];

/// The keys that log a role in at every server with its verifier. A secret.
#[derive(Clone)]
pub struct Keys {
    client: Bytes32,
    server: Bytes32,
}

impl Keys {
    /// Makes keys of the ClientKey that a proof revealed and the ServerKey of the verifier.
    pub(crate) fn new(client: Bytes32, server: Bytes32) -> Self {
        Self { client, server }
    }
}

impl PartialEq for Keys {
    fn eq(&self, other: &Self) -> bool {
        let equal = self.client.ct_eq(&other.client) & self.server.ct_eq(&other.server);
        equal.into()
    }
}

impl Eq for Keys {}

impl Hash for Keys {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.client.hash(state);
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

fn hmac(key: &Bytes32, message: &[u8]) -> Bytes32 {
    // HMAC fills a short key with zeros up to the block size of the hash.
    let mut block = Key::<Hmac<Sha256>>::default();
    for (to, from) in block.iter_mut().zip(key) {
        *to = *from;
    }
    let mut hmac = Hmac::<Sha256>::new(&block);
    hmac.update(message);
    hmac.finalize().into_bytes().into()
}

fn hash(key: &Bytes32) -> Bytes32 {
    let mut hash = Sha256::default();
    hash.update(key);
    hash.finalize_fixed().into()
}

fn xor(mut a: Bytes32, b: &Bytes32) -> Bytes32 {
    for (to, from) in a.iter_mut().zip(b) {
        *to ^= *from;
    }
    a
}

/// Returns the value of the next attribute, `name=value`, and the text after its comma.
fn attribute(text: &str, name: char) -> Option<(&str, Option<&str>)> {
    let value = text.strip_prefix(name)?.strip_prefix('=')?;
    Some(match value.split_once(',') {
        Some((value, rest)) => (value, Some(rest)),
        None => (value, None),
    })
}

/// Returns true for a text of printable characters other than the comma.
fn is_nonce(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| matches!(b, 0x21..=0x7e) && b != b',')
}

/// Returns a nonce of 144 random bits, as PostgreSQL makes it.
fn nonce() -> String {
    use base64::Engine;
    use rand::RngExt;

    let raw: [u8; 18] = rand::rng().random();
    base64::engine::general_purpose::STANDARD.encode(raw)
}
