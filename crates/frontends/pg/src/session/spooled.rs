//! What a session has in the spool.

use windrow_core::{SourceId, SpoolPlace};

/// What a session has in the spool.
#[derive(Debug)]
pub(super) struct Spooled {
    /// Who it is there.
    pub(super) source: SourceId,
    /// Behind all of it; `None` once the database has it.
    pub(super) place: Option<SpoolPlace>,
}
