//! A client that was let in: what its session begins with.

use std::sync::Arc;

use bytes::BytesMut;
use windrow_core::Name;
use windrow_pgwire::target::Credential;

use crate::client::{Identity, Settings};
use crate::client_stream::ClientStream;
use crate::own::Own;
use crate::session_info::SessionInfo;

/// A client whose login was accepted, with all that its session begins with.
#[derive(Debug)]
pub(crate) struct AdmittedClient {
    /// Its connection.
    pub(crate) stream: ClientStream,
    /// What was read from it behind the startup packet.
    pub(crate) received: BytesMut,
    /// Who it is.
    pub(crate) identity: Identity,
    /// Under which settings it starts.
    pub(crate) settings: Settings,
    /// What it calls itself.
    pub(crate) application_name: Name,
    /// What lets it into the server.
    pub(crate) credential: Credential,
    /// Windrow's own settings at the start.
    pub(crate) own: Own,
    /// What it was told of `standard_conforming_strings` (true: on), which decides how literals
    /// read.
    pub(crate) standard_strings: bool,
    /// True where it was told that `client_encoding` is UTF8.
    pub(crate) utf8: bool,
    /// How others see it.
    pub(crate) info: Arc<SessionInfo>,
}
