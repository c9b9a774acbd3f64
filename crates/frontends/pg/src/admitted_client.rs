//! An admitted client, and the start state of its session.

use std::sync::Arc;

use bytes::BytesMut;
use windrow_core::Name;
use windrow_pgwire::target::Credential;
use windrow_pgwire::wire::Socket;

use crate::client::{Identity, Settings};
use crate::own::Own;
use crate::session_info::SessionInfo;

/// An admitted client, and the start state of its session.
#[derive(Debug)]
pub(crate) struct AdmittedClient {
    /// The client's connection.
    pub(crate) stream: Socket,
    /// Bytes that were read after the startup packet.
    pub(crate) received: BytesMut,
    /// The role and the database.
    pub(crate) identity: Identity,
    /// The settings at the start.
    pub(crate) settings: Settings,
    /// The client's `application_name`.
    pub(crate) application_name: Name,
    /// The credential for the server.
    pub(crate) credential: Credential,
    /// Windrow's own settings at the start.
    pub(crate) own: Own,
    /// True if `standard_conforming_strings` was reported as on, which decides how literals are
    /// read.
    pub(crate) standard_strings: bool,
    /// True if `client_encoding` was reported as UTF8.
    pub(crate) utf8: bool,
    /// The session as other tasks see it.
    pub(crate) info: Arc<SessionInfo>,
}
