//! The client's side of a SCRAM exchange, from keys and without the password.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use subtle::ConstantTimeEq;

use super::{Bytes32, Keys, attribute, hash, hmac, is_nonce, nonce, xor};

/// The client's side of one exchange. Its methods must be called in order.
pub(crate) struct KeyClient {
    keys: Keys,
    gs2: &'static str,
    binding: Vec<u8>,
    nonce: String,
    /// The signature that the server must send; set when the proof has been computed.
    signature: Option<Bytes32>,
}

impl KeyClient {
    /// Begins an exchange. `gs2` is the header (`n,,`, `y,,`, `p=tls-server-end-point,,`), and
    /// `binding` the data that it binds to.
    pub(crate) fn new(keys: Keys, gs2: &'static str, binding: Vec<u8>) -> Self {
        Self {
            keys,
            gs2,
            binding,
            nonce: nonce(),
            signature: None,
        }
    }

    /// Returns the client-first-message.
    pub(crate) fn first(&self) -> String {
        format!("{}{}", self.gs2, self.bare())
    }

    fn bare(&self) -> String {
        format!("n=,r={}", self.nonce)
    }

    /// Returns the client-final-message for a server-first-message; `None` if that is malformed.
    pub(crate) fn prove(&mut self, challenge: &[u8]) -> Option<String> {
        let challenge = std::str::from_utf8(challenge).ok()?;
        let (nonce, rest) = attribute(challenge, 'r')?;
        let (salt, rest) = attribute(rest?, 's')?;
        let (iterations, _) = attribute(rest?, 'i')?;
        // Salt and iterations only serve to derive the keys, which are known: they are only
        // checked.
        STANDARD.decode(salt).ok()?;
        iterations.parse::<u32>().ok()?;
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() || !is_nonce(nonce) {
            return None;
        }
        let bound = [self.gs2.as_bytes(), &self.binding].concat();
        let unproven = format!("c={},r={nonce}", STANDARD.encode(bound));
        let authenticated = format!("{},{challenge},{unproven}", self.bare());
        let stored = hash(&self.keys.client);
        let proof = xor(self.keys.client, &hmac(&stored, authenticated.as_bytes()));
        self.signature = Some(hmac(&self.keys.server, authenticated.as_bytes()));
        Some(format!("{unproven},p={}", STANDARD.encode(proof)))
    }

    /// Returns true if the server's final message proves that it knows the verifier.
    pub(crate) fn is_proven(&self, last: &[u8]) -> bool {
        let signature = std::str::from_utf8(last)
            .ok()
            .and_then(|text| attribute(text, 'v'))
            .and_then(|(value, _)| STANDARD.decode(value).ok());
        match (&self.signature, signature) {
            (Some(expected), Some(signature)) => expected.as_slice().ct_eq(&signature).into(),
            _ => false,
        }
    }
}
