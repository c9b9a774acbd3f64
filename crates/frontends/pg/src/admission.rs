//! The credential of a session. The session ends when the credential is revoked.

use tokio_util::sync::CancellationToken;
use windrow_pgwire::scram::Verifier;
use windrow_pgwire::target::Credential;

/// The credential of a session.
#[derive(Debug, Default)]
pub(crate) struct Admission {
    /// The credential for the server.
    pub(crate) credential: Credential,
    /// The verifier that the client has proven itself against; `None`: no proof was asked for.
    pub(crate) verifier: Option<Verifier>,
    /// Cancelled once it is good no more, or Windrow stops.
    pub(crate) revoked: CancellationToken,
}
