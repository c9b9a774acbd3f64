//! The state of a session, and the reasons why it ends.

use std::io;
use std::sync::Arc;

use smallvec::SmallVec;
use tokio_util::sync::CancellationToken;
use windrow_core::{Fault, FaultClass, SpooledWrites};

use super::client_connection::ClientConnection;
use super::kept::KeptWrites;
use super::pending::PendingAnswers;
use super::segment::Segment;
use super::values::Values;
use crate::charge::{self, Stalled};
use crate::codec::message::Violation;
use crate::lanes::{LaneInterest, LaneSource};
use crate::own::Own;
use crate::pool::Who;
use crate::session_info::SessionInfo;
use crate::shared::Shared;
use crate::statements::{CachedStatement, PreparedStatements};

/// One client's session.
pub(crate) struct Session {
    pub(crate) shared: Arc<Shared>,
    pub(crate) info: Arc<SessionInfo>,
    pub(crate) connection: ClientConnection,
    /// The client's identity and settings.
    pub(crate) who: Who,
    /// Windrow's own settings, now and at the start.
    pub(crate) own: Own,
    pub(crate) own_default: Own,
    /// The session's writes in the spool; `None` if it has had none there.
    pub(super) spooled: Option<Box<SpooledWrites>>,
    pub(crate) standard_strings: bool,
    pub(crate) utf8: bool,
    pub(crate) statements: PreparedStatements,
    pub(crate) values: Values,
    /// True if the session has asked for values of sequences in a way that only its server
    /// connection can answer: from now on, statements that take values are relayed, and the session
    /// keeps the connection.
    pub(crate) asks: bool,
    /// True if the default isolation level is READ COMMITTED; `None` if that was not asked yet
    /// under the session's settings.
    pub(super) reads_committed: Option<bool>,
    /// The epoch of the catalog in which the sequence used last existed.
    pub(super) epoch: u64,
    pub(super) segment: Segment,
    /// The answers that the client has not got yet.
    pub(super) pending: PendingAnswers,
    /// The session as a source of a lane; `None` while it has none.
    pub(super) source: Option<LaneSource>,
    /// The session's interest in a lane.
    pub(super) interest: Option<Arc<LaneInterest>>,
    /// The transaction block that its client has begun and the server does not know yet.
    pub(super) unsent_block: Option<Box<UnsentBlock>>,
    /// True if the client has cancelled its next statement while a lane described it.
    pub(crate) cancel_requested: bool,
    /// The number of messages handled since other tasks had their turn.
    pub(super) steps: u16,
    /// Cancelled when Windrow stops, or the login is revoked.
    pub(crate) stop: CancellationToken,
}

/// A transaction block that its client has begun and the server does not know yet.
#[derive(Debug)]
pub(crate) struct UnsentBlock {
    /// The statements that open the block on the server.
    pub(crate) opening: SmallVec<[Arc<CachedStatement>; 1]>,
    /// True if the last of them is bound to the unnamed portal.
    pub(crate) has_portal: bool,
    /// True if a statement of the block was refused before it reached a server.
    pub(crate) has_failed: bool,
    /// True if certain writes of the block may be kept.
    pub(crate) keeps: bool,
    /// The writes of the block that were answered.
    pub(crate) kept: KeptWrites,
}

impl UnsentBlock {
    /// Returns a block that a statement opens. `keeps`: certain writes of it may be kept;
    /// `has_portal`: the statement is bound to the unnamed portal.
    pub(super) fn opened(begin: Arc<CachedStatement>, keeps: bool, has_portal: bool) -> Self {
        Self {
            opening: SmallVec::from_iter([begin]),
            has_portal,
            has_failed: false,
            keeps,
            kept: KeptWrites::default(),
        }
    }

    /// Returns a block that has failed and that the server no longer knows.
    pub(super) fn failed() -> Self {
        Self {
            opening: SmallVec::new(),
            has_portal: false,
            has_failed: true,
            keeps: false,
            kept: KeptWrites::default(),
        }
    }
}

/// The reason why a session ends.
#[derive(Debug)]
pub(crate) enum End {
    /// The client has left.
    Left,
    /// The client cannot be reached any more.
    Broken,
    /// The client does not read its answers, and others need their memory.
    Unread,
    /// The client gets this error.
    Fatal(Fault),
    /// The client got a fatal error from its server.
    EndedByServer,
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        tracing::debug!(%error, "a client is gone");
        Self::Broken
    }
}

impl From<Stalled> for End {
    fn from(stalled: Stalled) -> Self {
        match stalled {
            Stalled::Unread => Self::Unread,
            Stalled::Still => Self::Fatal(charge::stalled()),
        }
    }
}

impl From<Violation> for End {
    fn from(violation: Violation) -> Self {
        Self::Fatal(violation.fault())
    }
}

/// Returns the error that clients get when Windrow stops.
pub(crate) fn shutdown() -> Fault {
    Fault::new(
        FaultClass::Unavailable,
        "57P01",
        "terminating connection due to administrator command",
    )
}

/// The reasons why statements go to a server connection for now.
pub(super) const LANE_ENDED: &str = "its lane has ended";
pub(super) const NO_MEMORY: &str = "more than the memory budget holds";

/// Returns the error of a write whose lane has just ended.
pub(super) fn lane_ended() -> Fault {
    let text = "the lane of this session has just ended; nothing was executed, try again";
    Fault::new(FaultClass::Unavailable, "57P03", text)
}

/// Returns the error of a write for which there is no memory at present.
pub(super) fn no_memory() -> Fault {
    let text = "the write does not fit the memory budget at this moment (limits.memory); nothing was executed, try again";
    Fault::new(FaultClass::Overloaded, "53200", text)
}
