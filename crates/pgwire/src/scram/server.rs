//! The server's side of a SCRAM exchange: the client proves that it knows the password, and Windrow
//! proves that it knows the verifier.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use subtle::ConstantTimeEq;
use thiserror::Error;

use super::{Bytes32, Keys, Verifier, attribute, hash, hmac, is_nonce, nonce, xor};

/// The data for channel binding: the hash of Windrow's certificate. `None` without TLS, or if the
/// certificate has no such hash.
pub type Binding = Option<Vec<u8>>;

/// The SASL mechanism that a client chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// SCRAM-SHA-256.
    Plain,
    /// SCRAM-SHA-256-PLUS, with channel binding.
    Plus,
}

/// The reason why an exchange ended, in PostgreSQL's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ScramError {
    /// The client violated the protocol (08P01).
    #[error("malformed SCRAM message")]
    Malformed(&'static str),
    /// The client asked for an unsupported feature (0A000).
    #[error("{0}")]
    Unsupported(&'static str),
    /// A man in the middle removed the offer of channel binding (28000).
    #[error("SCRAM channel binding negotiation error")]
    Negotiation,
    /// The proof is bound to another connection (28000).
    #[error("SCRAM channel binding check failed")]
    Binding,
    /// The password is wrong, or the role is not known (28P01).
    #[error("password authentication failed")]
    Denied,
}

/// The server's side of an exchange before the client's first message.
pub struct Server {
    verifier: Verifier,
    /// True if the role exists. For a decoy no proof is accepted.
    known: bool,
    binding: Binding,
}

/// The server's side of an exchange after its challenge was sent.
pub struct Begun {
    server: Server,
    /// The value that `c=` must have in the client's last message.
    bound: String,
    first_bare: String,
    nonce: String,
    challenge: String,
}

impl Server {
    /// Begins an exchange. `known` is false if the verifier is a [`Verifier::decoy`].
    pub fn new(verifier: Verifier, known: bool, binding: Binding) -> Self {
        Self {
            verifier,
            known,
            binding,
        }
    }

    /// Returns true if SCRAM-SHA-256-PLUS must be offered.
    pub fn offers_binding(&self) -> bool {
        self.binding.is_some()
    }

    /// Takes the client-first-message and returns the server-first-message.
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
        // The role is that of the startup message. Like PostgreSQL, Windrow ignores the name here.
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

    /// Returns the GS2 header with its commas, and the text after it.
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
    /// Takes the client-final-message. Returns the server-final-message and the keys that the proof
    /// revealed.
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
