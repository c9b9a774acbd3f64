//! The parts of a client's session, and the ways in which it ends.

use std::io;
use std::sync::Arc;

use windrow_core::{FaultClass, SpooledWrites};
use windrow_mysqlwire::{ErrorPacket, ForwardError};

use crate::admit::AdmittedClient;
use crate::own_settings::OwnSettings;
use crate::prepared::PreparedStatements;
use crate::session_state::SessionState;
use crate::shared::Shared;

/// The end of a session.
pub(super) enum SessionEnd {
    /// The client gets this error.
    Said(FaultClass, ErrorPacket),
    /// The client or the server has gone, or the client has said goodbye.
    Gone,
}

impl From<io::Error> for SessionEnd {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

impl From<ForwardError> for SessionEnd {
    fn from(_: ForwardError) -> Self {
        Self::Gone
    }
}

/// A client's session.
pub(crate) struct Session {
    pub(super) shared: Arc<Shared>,
    pub(super) admitted: AdmittedClient,
    pub(super) state: SessionState,
    /// Windrow's own settings.
    pub(super) own: OwnSettings,
    /// The session's writes in the spool; `None` if it has had none.
    pub(super) spooled: Option<SpooledWrites>,
    pub(super) prepared: PreparedStatements,
}
