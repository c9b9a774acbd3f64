//! The session that wants a server connection, and the state that it wants.

use windrow_core::Name;
use windrow_pgwire::target::Credential;

use crate::client::{Identity, Settings};

/// The session that wants a server connection, and the state that it wants.
#[derive(Clone, Debug)]
pub(crate) struct Who {
    /// The database and the role.
    pub(crate) identity: Identity,
    /// The settings.
    pub(crate) settings: Settings,
    /// The `application_name` that the server shows.
    pub(crate) application_name: Name,
    /// The credential for the server.
    pub(crate) credential: Credential,
}
