//! From the server to the client: what CockroachDB says of itself, and its errors.

use std::sync::Arc;

use super::refusals::{AMBIGUOUS, MARK};
use super::shared::{Fates, Upstream};
use crate::pgclient::backend::Message;
use crate::pgclient::frontend::message;

/// The version of PostgreSQL that CockroachDB says it is compatible with.
const COMPATIBLE: &str = "13.0.0";

/// Parameters that PostgreSQL reports and CockroachDB does not.
const UNREPORTED: [&str; 5] = [
    "in_hot_standby",
    "default_transaction_read_only",
    "scram_iterations",
    "search_path",
    "session_authorization",
];

/// One connection's answers.
pub(super) struct Back<'l> {
    upstream: &'l Arc<Upstream>,
    fates: &'l Fates,
    /// The session has begun.
    ready: bool,
}

impl<'l> Back<'l> {
    pub(super) fn new(upstream: &'l Arc<Upstream>, fates: &'l Fates) -> Self {
        Self {
            upstream,
            fates,
            ready: false,
        }
    }

    /// Returns the bytes for the client in place of a message.
    pub(super) fn pass(&mut self, said: &Message) -> Vec<u8> {
        let mut out = Vec::new();
        match said.tag {
            b'S' => match parameter(&said.body) {
                Some("server_version") => status(&mut out, "server_version", COMPATIBLE),
                Some(name) if UNREPORTED.contains(&name) => {}
                _ => forward(said, &mut out),
            },
            b'E' => match refused(said) {
                Some((code, why)) => error(&mut out, &code, &why),
                None => forward(said, &mut out),
            },
            b'Z' => {
                if !self.ready && self.upstream.reports {
                    status(&mut out, "crdb_version", &self.upstream.version);
                }
                if std::mem::replace(&mut self.ready, true) && self.fates.next() {
                    error(&mut out, AMBIGUOUS.0, AMBIGUOUS.1);
                }
                forward(said, &mut out);
            }
            _ => forward(said, &mut out),
        }
        out
    }
}

fn parameter(body: &[u8]) -> Option<&str> {
    let name = body.split(|byte| *byte == 0).next()?;
    std::str::from_utf8(name).ok()
}

/// Code and message of an error that was provoked.
fn refused(said: &Message) -> Option<(String, String)> {
    let text = said.field(b'M')?;
    let (_, rest) = text.split_once(MARK)?;
    let (code, why) = rest.split_once(": ")?;
    Some((code.to_owned(), why.trim_end_matches('"').to_owned()))
}

fn status(out: &mut Vec<u8>, name: &str, value: &str) {
    message(out, b'S', |body| {
        for text in [name, value] {
            body.extend_from_slice(text.as_bytes());
            body.push(0);
        }
    });
}

fn error(out: &mut Vec<u8>, code: &str, why: &str) {
    message(out, b'E', |body| {
        for (field, text) in [(b'S', "ERROR"), (b'V', "ERROR"), (b'C', code), (b'M', why)] {
            body.push(field);
            body.extend_from_slice(text.as_bytes());
            body.push(0);
        }
        body.push(0);
    });
}

fn forward(said: &Message, out: &mut Vec<u8>) {
    message(out, said.tag, |body| body.extend_from_slice(&said.body));
}
