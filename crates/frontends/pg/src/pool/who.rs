//! The wish of a session for a server connection.

use windrow_core::Name;
use windrow_pgwire::target::Credential;

use crate::client::{Identity, Settings};

/// The session that wants a server connection, and the state in which it wants it.
#[derive(Clone, Debug)]
pub(crate) struct Who {
    /// Which database, as which role.
    pub(crate) identity: Identity,
    /// Under which settings.
    pub(crate) settings: Settings,
    /// The `application_name` that the server shows.
    pub(crate) application_name: Name,
    /// The credential for the server.
    pub(crate) credential: Credential,
}
