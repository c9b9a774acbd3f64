//! The server's side of an exchange: a client proves that it knows a password, and we that we know
//! its verifier.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use subtle::ConstantTimeEq;
use thiserror::Error;

use super::{Bytes32, Keys, Verifier, attribute, hash, hmac, is_nonce, nonce, xor};

/// What a client can bind its proof to: the hash of our certificate, where it came over TLS and the
/// certificate has one.
pub type Binding = Option<Vec<u8>>;

/// The mechanism that a client chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// SCRAM-SHA-256.
    Plain,
    /// SCRAM-SHA-256-PLUS: with channel binding.
    Plus,
}

/// Why an exchange ended. The words are PostgreSQL's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ScramError {
    /// The client says what it should not (08P01).
    #[error("malformed SCRAM message")]
    Malformed(&'static str),
    /// The client asks for what is not supported (0A000).
    #[error("{0}")]
    Unsupported(&'static str),
    /// Somebody in the middle took the offer of channel binding away (28000).
    #[error("SCRAM channel binding negotiation error")]
    Negotiation,
    /// The proof is bound to another connection (28000).
    #[error("SCRAM channel binding check failed")]
    Binding,
    /// The password is wrong, or the role is not known (28P01).
    #[error("password authentication failed")]
    Denied,
}

/// An exchange that has not begun.
pub struct Server {
    verifier: Verifier,
    /// False for a decoy: no proof is good enough.
    known: bool,
    binding: Binding,
}

/// An exchange whose challenge was sent.
pub struct Begun {
    server: Server,
    /// `c=` of the client's last message.
    bound: String,
    first_bare: String,
    nonce: String,
    challenge: String,
}

impl Server {
    /// `known`: false where the verifier is a [`Verifier::decoy`].
    pub fn new(verifier: Verifier, known: bool, binding: Binding) -> Self {
        Self {
            verifier,
            known,
            binding,
        }
    }

    /// True where SCRAM-SHA-256-PLUS is to be offered.
    pub fn offers_binding(&self) -> bool {
        self.binding.is_some()
    }

    /// Takes the client-first-message; gives the server-first-message.
    ///
    /// # Errors
    /// [`ScramError`].
    pub fn begin(self, mechanism: Mechanism, first: &[u8]) -> Result<(Begun, String), ScramError> {
        self.begin_with(mechanism, first, &nonce())
    }

    pub(super) fn begin_with(
        self,
        mechanism: Mechanism,
        first: &[u8],
        ours: &str,
    ) -> Result<(Begun, String), ScramError> {
        let first = text(first)?;
        let (gs2, first_bare) = self.header(mechanism, first)?;
        if first_bare.starts_with("m=") {
            return Err(ScramError::Unsupported(
                "client requires an unsupported SCRAM extension",
            ));
        }
        // The name is that of the startup message; what stands here is not looked at, as PostgreSQL
        // does it.
        let (_, rest) = attribute(first_bare, 'n').ok_or(bad("the name is missing"))?;
        let theirs = rest.and_then(|rest| attribute(rest, 'r'));
        let (theirs, _) = theirs
            .filter(|(nonce, _)| is_nonce(nonce))
            .ok_or(bad("the nonce is missing, or not printable"))?;
        let nonce = format!("{theirs}{ours}");
        let salt = STANDARD.encode(&self.verifier.salt);
        let challenge = format!("r={nonce},s={salt},i={}", self.verifier.iterations);
        let data = self
            .binding
            .as_deref()
            .filter(|_| mechanism == Mechanism::Plus);
        let bound = [gs2.as_bytes(), data.unwrap_or_default()].concat();
        let begun = Begun {
            bound: STANDARD.encode(bound),
            first_bare: first_bare.to_owned(),
            nonce,
            challenge: challenge.clone(),
            server: self,
        };
        Ok((begun, challenge))
    }

    /// The GS2 header with its commas, and what is behind it.
    fn header<'a>(
        &self,
        mechanism: Mechanism,
        first: &'a str,
    ) -> Result<(&'a str, &'a str), ScramError> {
        let (flag, rest) = first
            .split_once(',')
            .ok_or(bad("the header is not whole"))?;
        let (identity, bare) = rest.split_once(',').ok_or(bad("the header is not whole"))?;
        match (mechanism, flag) {
            (Mechanism::Plus, "p=tls-server-end-point") if self.binding.is_some() => {}
            (Mechanism::Plus, "n" | "y") => {
                return Err(bad(
                    "SCRAM-SHA-256-PLUS was chosen, and the message has no channel binding data",
                ));
            }
            (Mechanism::Plain, "n") => {}
            (Mechanism::Plain, "y") if self.binding.is_none() => {}
            (Mechanism::Plain, "y") => return Err(ScramError::Negotiation),
            (_, flag) if flag.starts_with("p=") => {
                return Err(ScramError::Unsupported(
                    "unsupported SCRAM channel-binding type",
                ));
            }
            _ => return Err(bad("the channel-binding flag is not known")),
        }
        if !identity.is_empty() {
            return Err(ScramError::Unsupported(
                "client uses authorization identity, but it is not supported",
            ));
        }
        let header = first.len() - bare.len();
        first
            .split_at_checked(header)
            .ok_or(bad("the header is not whole"))
    }
}

impl Begun {
    /// Takes the client-final-message; gives the server-final-message and what the proof gave away.
    ///
    /// # Errors
    /// [`ScramError`].
    pub fn finish(self, last: &[u8]) -> Result<(String, Keys), ScramError> {
        let last = text(last)?;
        let (unproven, proof) = last.rsplit_once(",p=").ok_or(bad("the proof is missing"))?;
        let (bound, rest) =
            attribute(unproven, 'c').ok_or(bad("the channel binding is missing"))?;
        let (nonce, _) = rest
            .and_then(|rest| attribute(rest, 'r'))
            .ok_or(bad("the nonce is missing"))?;
        if nonce != self.nonce {
            return Err(bad("the nonce does not match"));
        }
        if bound != self.bound {
            return Err(ScramError::Binding);
        }
        let proof: Bytes32 = STANDARD
            .decode(proof)
            .ok()
            .and_then(|proof| proof.try_into().ok())
            .ok_or(bad("the proof is malformed"))?;
        let verifier = &self.server.verifier;
        let authenticated = format!("{},{},{unproven}", self.first_bare, self.challenge);
        let signature = hmac(&verifier.stored, authenticated.as_bytes());
        let client = xor(proof, &signature);
        let fits: bool = hash(&client).ct_eq(&verifier.stored).into();
        if !(fits && self.server.known) {
            return Err(ScramError::Denied);
        }
        let ours = hmac(&verifier.server, authenticated.as_bytes());
        Ok((
            format!("v={}", STANDARD.encode(ours)),
            Keys::new(client, verifier.server),
        ))
    }
}

fn bad(why: &'static str) -> ScramError {
    ScramError::Malformed(why)
}

fn text(message: &[u8]) -> Result<&str, ScramError> {
    std::str::from_utf8(message).map_err(|_| bad("it is not UTF-8"))
}
