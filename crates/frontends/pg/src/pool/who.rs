//! Who wants a server connection, and how it is to be.

use windrow_core::Name;
use windrow_pgwire::target::Credential;

use crate::client::{Identity, Settings};

/// Who wants a server connection, and how it is to be.
#[derive(Clone, Debug)]
pub(crate) struct Who {
    /// Which database, as which role.
    pub(crate) identity: Identity,
    /// Under which settings.
    pub(crate) settings: Settings,
    /// What the server shows as `application_name`.
    pub(crate) application_name: Name,
    /// What lets it in.
    pub(crate) credential: Credential,
}
