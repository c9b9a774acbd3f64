//! A connection to the server.

use windrow_core::Fault;

use super::session::Session;

/// A connection.
pub(crate) struct Connection {
    pub(super) session: Session,
    /// Collections that are not there are made.
    pub(super) creates: bool,
    /// A write is answered once it is on disk, whatever its collection says.
    pub(super) syncs: bool,
}

/// Why a batch ended before all of its writes were sent: none of the others was.
#[derive(Debug)]
pub(super) struct Stop(pub(super) Fault);

impl Connection {
    pub(crate) fn new(session: Session, creates: bool) -> Self {
        Self {
            session,
            creates,
            syncs: false,
        }
    }

    /// The same, where each write is answered once it is on disk.
    pub(crate) fn synced(self) -> Self {
        Self {
            syncs: true,
            ..self
        }
    }
}
