//! The client's side of an exchange, from keys.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use subtle::ConstantTimeEq;

use super::{Bytes32, Keys, attribute, hash, hmac, is_nonce, nonce, xor};

/// One exchange. Its steps must be taken in order.
pub(crate) struct KeyClient {
    keys: Keys,
    gs2: &'static str,
    binding: Vec<u8>,
    nonce: String,
    /// The server's signature that is to come, once the proof was made.
    signature: Option<Bytes32>,
}

impl KeyClient {
    /// `gs2`: the header (`n,,`, `y,,`, `p=tls-server-end-point,,`), with the data that it binds
    /// to.
    pub(crate) fn new(keys: Keys, gs2: &'static str, binding: Vec<u8>) -> Self {
        Self {
            keys,
            gs2,
            binding,
            nonce: nonce(),
            signature: None,
        }
    }

    /// The client-first-message.
    pub(crate) fn first(&self) -> String {
        format!("{}{}", self.gs2, self.bare())
    }

    fn bare(&self) -> String {
        format!("n=,r={}", self.nonce)
    }

    /// The client-final-message for a server-first-message.
    pub(crate) fn prove(&mut self, challenge: &[u8]) -> Option<String> {
        let challenge = std::str::from_utf8(challenge).ok()?;
        let (nonce, rest) = attribute(challenge, 'r')?;
        let (salt, rest) = attribute(rest?, 's')?;
        let (iterations, _) = attribute(rest?, 'i')?;
        // The keys are what salt and iterations would have led to: they are only looked at.
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

    /// True if the server's final message proves that it knows the verifier.
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
