//! The credential of a session. The session ends when the credential is revoked.

use tokio_util::sync::CancellationToken;
use windrow_pgwire::scram::Verifier;
use windrow_pgwire::target::Credential;

/// The credential of a session.
#[derive(Debug, Default)]
pub(crate) struct Admission {
    /// The credential for the server.
    pub(crate) credential: Credential,
    /// The verifier by which the client has proven its password; `None` if no proof was required.
    pub(crate) verifier: Option<Verifier>,
    /// Cancelled once the login is revoked, or Windrow stops.
    pub(crate) revoked: CancellationToken,
}
