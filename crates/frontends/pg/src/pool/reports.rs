//! The report of a server to a new session: the run-time parameters sent to its clients.

use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use windrow_pgwire::wire::Wire;

use crate::cache::Cache;
use crate::client::{Identity, Settings};
use crate::codec::answer::parameter_status;

/// Reports by identity and settings at the start.
pub(super) type Reports = Cache<(Identity, Settings), Arc<Report>>;

/// The report for clients of one identity with the same settings.
#[derive(Debug)]
pub(crate) struct Report {
    /// The role and the database.
    pub(crate) identity: Identity,
    /// Their settings at the start.
    pub(crate) settings: Settings,
    /// True if `standard_conforming_strings` is on.
    pub(crate) standard_strings: bool,
    /// True if `client_encoding` is UTF8.
    pub(crate) utf8: bool,
    /// ParameterStatus messages for all but `application_name`.
    messages: Box<[u8]>,
}

impl Report {
    /// Returns the report of a server connection in the state of a new session.
    pub(super) fn of(identity: Identity, settings: Settings, wire: &Wire) -> Self {
        let mut messages = BytesMut::new();
        let parameters = wire
            .parameters()
            .filter(|(name, _)| *name != "application_name");
        for (name, value) in parameters {
            parameter_status(&mut messages, name, value);
        }
        Self {
            identity,
            settings,
            standard_strings: wire.parameter("standard_conforming_strings") == Some("on"),
            utf8: wire.parameter("client_encoding") == Some("UTF8"),
            messages: messages.as_ref().into(),
        }
    }

    /// Writes the report for a client with this name.
    pub(crate) fn write(&self, out: &mut BytesMut, application_name: &str) {
        out.put_slice(&self.messages);
        parameter_status(out, "application_name", application_name);
    }
}
