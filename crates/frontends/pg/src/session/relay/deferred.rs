//! What a session knows of the answers that it has given early.

use std::sync::Arc;

use bytes::Bytes;

use crate::lanes::Lane;
use crate::statements::CachedStatement;

/// What a session on a server connection knows of the answers that it has given early.
#[derive(Default)]
pub(super) struct Deferred {
    /// The first error of what was answered early, as its client is to be told it.
    pub(super) error: Option<Bytes>,
    /// The server was asked for all answers that it keeps to itself.
    pub(super) flushed: bool,
    /// The statement that is bound to the unnamed portal.
    pub(super) bound: Option<Arc<CachedStatement>>,
    /// Statements of the transaction that may run what is not proven, and so change tables.
    pub(super) doubtful: Vec<Arc<CachedStatement>>,
    /// The lane that knows the tables.
    pub(super) lane: Option<Arc<Lane>>,
    /// There is no lane, and why was said.
    pub(super) has_none: bool,
}
