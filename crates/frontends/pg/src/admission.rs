//! What a session came in with: what it goes on with only as long as that is good.

use tokio_util::sync::CancellationToken;
use windrow_pgwire::scram::Verifier;
use windrow_pgwire::target::Credential;

/// What a session came in with.
#[derive(Debug, Default)]
pub(crate) struct Admission {
    /// What lets it into the server.
    pub(crate) credential: Credential,
    /// What it has proven itself against; `None`: no proof was asked for.
    pub(crate) verifier: Option<Verifier>,
    /// Cancelled once it is good no more, or Windrow stops.
    pub(crate) revoked: CancellationToken,
}
