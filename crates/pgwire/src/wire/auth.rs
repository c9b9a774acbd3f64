//! The client's side of authentication. With SCRAM the server proves its identity as well.

use std::borrow::Cow;

use bytes::BytesMut;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{
    ChannelBinding as Binding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256,
};
use postgres_protocol::message::frontend;
use windrow_core::{Fault, FaultClass};

use super::cursor::Cursor;
use super::entrance::Entrance;
use crate::scram::{KeyClient, Keys};
use crate::target::ChannelBinding;

/// The step that authentication has reached.
enum Stage {
    Nothing,
    PasswordSent,
    ScramBegun { scram: Prover, bound: bool },
    ScramProven { scram: Prover, bound: bool },
    ServerProven { bound: bool },
    Done,
}

/// A SCRAM client: from a password, or from keys that another client's proof revealed.
enum Prover {
    Password(Box<ScramSha256>),
    Keys(Box<KeyClient>),
}

/// The channel binding of a proof.
enum Bound {
    Unsupported,
    Unrequested,
    To(Vec<u8>),
}

impl Prover {
    fn of_password(password: &str, bound: Bound) -> Self {
        let binding = match bound {
            Bound::Unsupported => Binding::unsupported(),
            Bound::Unrequested => Binding::unrequested(),
            Bound::To(data) => Binding::tls_server_end_point(data),
        };
        Self::Password(Box::new(ScramSha256::new(password.as_bytes(), binding)))
    }

    fn of_keys(keys: &Keys, bound: Bound) -> Self {
        let (gs2, data) = match bound {
            Bound::Unsupported => ("n,,", Vec::new()),
            Bound::Unrequested => ("y,,", Vec::new()),
            Bound::To(data) => ("p=tls-server-end-point,,", data),
        };
        Self::Keys(Box::new(KeyClient::new(keys.clone(), gs2, data)))
    }

    fn first(&self) -> Cow<'_, [u8]> {
        match self {
            Self::Password(scram) => scram.message().into(),
            Self::Keys(client) => client.first().into_bytes().into(),
        }
    }

    fn prove(&mut self, challenge: &[u8]) -> Result<Cow<'_, [u8]>, String> {
        match self {
            Self::Password(scram) => {
                scram.update(challenge).map_err(|e| e.to_string())?;
                Ok(scram.message().into())
            }
            Self::Keys(client) => {
                let proof = client.prove(challenge).ok_or("it is malformed")?;
                Ok(proof.into_bytes().into())
            }
        }
    }

    fn check(self, last: &[u8]) -> Result<(), String> {
        match self {
            Self::Password(mut scram) => scram.finish(last).map_err(|e| e.to_string()),
            Self::Keys(client) if client.is_proven(last) => Ok(()),
            Self::Keys(_) => Err("its signature is not the verifier's".to_owned()),
        }
    }
}

/// The state of one authentication.
pub(super) struct Auth<'a> {
    entrance: &'a Entrance<'a>,
    /// True over TLS.
    tls: bool,
    binding: Option<Vec<u8>>,
    stage: Stage,
    sent_password: bool,
}

impl<'a> Auth<'a> {
    pub(super) fn new(entrance: &'a Entrance<'a>, tls: bool, binding: Option<Vec<u8>>) -> Self {
        Self {
            entrance,
            tls,
            binding,
            stage: Stage::Nothing,
            sent_password: false,
        }
    }

    /// Returns true once the server has accepted the authentication.
    pub(super) fn is_done(&self) -> bool {
        matches!(self.stage, Stage::Done)
    }

    /// Returns true once a password, or a proof computed from it, was sent.
    pub(super) fn has_sent_password(&self) -> bool {
        self.sent_password
    }

    /// Takes an Authentication message and returns the answer to send, if there is one.
    pub(super) fn step(&mut self, body: &[u8]) -> Result<Option<BytesMut>, Fault> {
        let mut body = Cursor::new(body);
        let kind = body.i32().ok_or_else(|| self.garbled("it is malformed"))?;
        match kind {
            0 => self.let_in().map(|()| None),
            3 => self.cleartext().map(Some),
            5 => self.md5(body.rest()).map(Some),
            10 => self.scram_begin(body).map(Some),
            11 => self.scram_prove(body.rest()).map(Some),
            12 => self.scram_finish(body.rest()).map(|()| None),
            _ => Err(self.unknown(kind)),
        }
    }

    fn let_in(&mut self) -> Result<(), Fault> {
        let bound = match self.stage {
            Stage::Nothing | Stage::PasswordSent => false,
            Stage::ServerProven { bound } => bound,
            // The server must not accept before it has proven that it knows the verifier.
            _ => return Err(self.garbled("it ended before the server had proven who it is")),
        };
        if self.entrance.target.binding == ChannelBinding::Require && !bound {
            return Err(self.denied(
                "the URL has channel_binding=require, and the server did not use it (it needs TLS and SCRAM-SHA-256-PLUS)",
            ));
        }
        self.stage = Stage::Done;
        Ok(())
    }

    fn cleartext(&mut self) -> Result<BytesMut, Fault> {
        if !self.tls && !self.entrance.endpoint.is_local() {
            return Err(self.denied(
                "the server asks for the password in clear text over an unencrypted network connection; \
                 it is not sent: use sslmode=require, or scram-sha-256 in the server's pg_hba.conf",
            ));
        }
        let password = self.password()?;
        self.send_password(password)
    }

    fn md5(&mut self, salt: &[u8]) -> Result<BytesMut, Fault> {
        let salt = <[u8; 4]>::try_from(salt).map_err(|_| self.garbled("its salt is malformed"))?;
        let user = self.entrance.target.user.as_bytes();
        let hash = md5_hash(user, self.password()?.as_bytes(), salt);
        self.send_password(&hash)
    }

    fn send_password(&mut self, password: &str) -> Result<BytesMut, Fault> {
        if !matches!(self.stage, Stage::Nothing) {
            return Err(self.garbled("the password is asked for twice"));
        }
        if self.entrance.target.binding == ChannelBinding::Require {
            return Err(self.denied(
                "the URL has channel_binding=require, and the server asks for a password without it",
            ));
        }
        self.stage = Stage::PasswordSent;
        self.sent_password = true;
        let mut reply = BytesMut::new();
        frontend::password_message(password.as_bytes(), &mut reply)
            .map_err(|_| self.denied("the password holds a zero byte"))?;
        Ok(reply)
    }

    fn scram_begin(&mut self, mut offer: Cursor<'_>) -> Result<BytesMut, Fault> {
        if !matches!(self.stage, Stage::Nothing) {
            return Err(self.garbled("it begins twice"));
        }
        let mut plain = false;
        let mut plus = false;
        while let Some(mechanism) = offer.cstr().filter(|m| !m.is_empty()) {
            plain |= mechanism == SCRAM_SHA_256.as_bytes();
            plus |= mechanism == SCRAM_SHA_256_PLUS.as_bytes();
        }
        let binding = self.binding.take();
        let wanted = self.entrance.target.binding != ChannelBinding::Disable;
        let (mechanism, binding, bound) = match binding.filter(|_| wanted) {
            Some(binding) if plus => (SCRAM_SHA_256_PLUS, Bound::To(binding), true),
            // Tells the server that this client supports channel binding, so that the server
            // detects a man in the middle that removed the offer.
            Some(_) if plain => (SCRAM_SHA_256, Bound::Unrequested, false),
            None if plain => (SCRAM_SHA_256, Bound::Unsupported, false),
            _ => {
                return Err(self.unsupported(
                    "a SASL mechanism that is not known; known are SCRAM-SHA-256 and SCRAM-SHA-256-PLUS",
                ));
            }
        };
        let scram = match &self.entrance.target.keys {
            Some(keys) => Prover::of_keys(keys, binding),
            None => Prover::of_password(self.password()?, binding),
        };
        let mut reply = BytesMut::new();
        frontend::sasl_initial_response(mechanism, &scram.first(), &mut reply)
            .map_err(|error| self.garbled(&error.to_string()))?;
        self.stage = Stage::ScramBegun { scram, bound };
        Ok(reply)
    }

    fn scram_prove(&mut self, challenge: &[u8]) -> Result<BytesMut, Fault> {
        let stage = std::mem::replace(&mut self.stage, Stage::Nothing);
        let Stage::ScramBegun { mut scram, bound } = stage else {
            return Err(self.garbled("a SCRAM challenge comes out of turn"));
        };
        let proof = scram
            .prove(challenge)
            .map_err(|error| self.garbled(&format!("the SCRAM challenge is bad: {error}")))?;
        let mut reply = BytesMut::new();
        frontend::sasl_response(&proof, &mut reply)
            .map_err(|error| self.garbled(&error.to_string()))?;
        drop(proof);
        self.sent_password = true;
        self.stage = Stage::ScramProven { scram, bound };
        Ok(reply)
    }

    fn scram_finish(&mut self, proof: &[u8]) -> Result<(), Fault> {
        let stage = std::mem::replace(&mut self.stage, Stage::Nothing);
        let Stage::ScramProven { scram, bound } = stage else {
            return Err(self.garbled("a SCRAM proof comes out of turn"));
        };
        scram.check(proof).map_err(|error| {
            self.denied(&format!(
                "the server could not prove that it knows the password: {error}"
            ))
        })?;
        self.stage = Stage::ServerProven { bound };
        Ok(())
    }

    fn password(&self) -> Result<&'a str, Fault> {
        let target = self.entrance.target;
        match &self.entrance.host.password {
            Some(password) => Ok(password.reveal()),
            None if target.keys.is_some() => Err(self.denied(
                "the server asks for the password itself, and of a client that came in by SCRAM only the proof is known: \
                 use scram-sha-256 for this role in the server's pg_hba.conf, with the same verifier, or configure the role's password at the server",
            )),
            None if target.is_guest => Err(self.denied(
                "the server asks for a password, and none is known for this role: configure users or an auth_query, \
                 or let the server trust this machine",
            )),
            None => Err(self.denied(
                "the server asks for a password, and none is given by the URL, PGPASSWORD or the password file",
            )),
        }
    }

    fn unknown(&self, kind: i32) -> Fault {
        self.unsupported(match kind {
            2 => "Kerberos 5, which is not known",
            6 => "SCM credentials, which are not known",
            7 | 8 => "GSSAPI, which is not known",
            9 => "SSPI, which is not known",
            _ => "a method that is not known",
        })
    }

    fn unsupported(&self, method: &str) -> Fault {
        Fault::new(
            FaultClass::Unsupported,
            "0A000",
            format!(
                "{}: the server wants user {:?} to authenticate by {method}. \
                 Known are trust, password, md5, scram-sha-256 and cert: change its pg_hba.conf",
                self.entrance.peer(),
                self.entrance.target.user
            ),
        )
    }

    fn denied(&self, why: &str) -> Fault {
        let user = &self.entrance.target.user;
        let peer = self.entrance.peer();
        Fault::new(
            FaultClass::Denied,
            "28000",
            format!("{peer}: user {user:?} cannot log in: {why}"),
        )
    }

    fn garbled(&self, why: &str) -> Fault {
        Fault::new(
            FaultClass::Other,
            "08P01",
            format!("{}: the authentication failed: {why}", self.entrance.peer()),
        )
    }
}
