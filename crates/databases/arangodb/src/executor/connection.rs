//! A lane's connection to the server.

use super::session::Session;

/// A lane's connection to the server.
pub(crate) struct Connection {
    pub(super) session: Session,
    /// True if missing collections are created.
    pub(super) creates: bool,
    /// True if writes are answered once they are on disk, whatever the collection's setting.
    pub(super) syncs: bool,
}

impl Connection {
    pub(crate) fn new(session: Session, creates: bool) -> Self {
        Self {
            session,
            creates,
            syncs: false,
        }
    }

    /// Returns the connection with `syncs` set: writes are answered once they are on disk.
    pub(crate) fn synced(self) -> Self {
        Self {
            syncs: true,
            ..self
        }
    }
}
