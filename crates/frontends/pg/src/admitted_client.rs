//! A client that was let in: what its session begins with.

use std::sync::Arc;

use bytes::BytesMut;
use windrow_core::Name;
use windrow_pgwire::target::Credential;
use windrow_pgwire::wire::Socket;

use crate::client::{Identity, Settings};
use crate::own::Own;
use crate::session_info::SessionInfo;

/// A client whose login was accepted, with all that its session begins with.
#[derive(Debug)]
pub(crate) struct AdmittedClient {
    /// The client's connection.
    pub(crate) stream: Socket,
    /// Bytes that were read after the startup packet.
    pub(crate) received: BytesMut,
    /// The role and the database.
    pub(crate) identity: Identity,
    /// Under which settings it starts.
    pub(crate) settings: Settings,
    /// The name that the client gives itself.
    pub(crate) application_name: Name,
    /// The credential for the server.
    pub(crate) credential: Credential,
    /// Windrow's own settings at the start.
    pub(crate) own: Own,
    /// True if `standard_conforming_strings` was reported as on, which decides how literals read.
    pub(crate) standard_strings: bool,
    /// True if `client_encoding` was reported as UTF8.
    pub(crate) utf8: bool,
    /// The session as other tasks see it.
    pub(crate) info: Arc<SessionInfo>,
}
