//! What a lane is told besides submissions.

use tokio::time::Instant;

use crate::fault::Fault;
use crate::source::SourceId;

/// What a frontend lets a lane know besides its submissions, so that nothing waits for the next
/// flight to end. Those who play a lane may leave hints unread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// The source wants its first unanswered unit cancelled, unless that is under way, or was
    /// submitted later than this.
    Cancel(SourceId, Instant),
    /// The source's client has closed its side: what it has asked for is still executed, but waits
    /// for no lock any more.
    Closed(SourceId),
    /// The source does not wait for all of its submissions any more
    /// ([`super::Reply::is_abandoned`]).
    Left(SourceId),
    /// Others need connections: those that nothing is under way on had better be closed.
    Rest,
    /// The database was asked for a sign of life while the lane had nothing to do. The fault, if
    /// it gave none.
    Probed(Option<Box<Fault>>),
}
