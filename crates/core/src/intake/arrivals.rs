//! The lane's end of the port.

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{SourceId, Submission};

/// What a frontend lets a lane know besides its submissions, so that nothing waits for the next
/// flight to end. Those who play a lane may leave hints unread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}

/// The lane's end of an [`super::Intake`].
#[derive(Debug)]
pub struct Arrivals {
    /// What is to be done.
    pub submissions: mpsc::Receiver<Submission>,
    /// What is not to be done any more. A hint may be read before the submission that it is about:
    /// all submissions that are there when a hint was read are to be read before it is
    /// followed.
    pub hints: mpsc::Receiver<Hint>,
}

impl Arrivals {
    /// The next submission; `None` once all intakes are gone. Cancel safe.
    pub async fn recv(&mut self) -> Option<Submission> {
        self.submissions.recv().await
    }

    /// Several at once, as [`mpsc::Receiver::recv_many`]. Cancel safe.
    pub async fn recv_many(&mut self, into: &mut Vec<Submission>, limit: usize) -> usize {
        self.submissions.recv_many(into, limit).await
    }

    /// The next submission, if it is there already.
    ///
    /// # Errors
    /// As [`mpsc::Receiver::try_recv`].
    pub fn try_recv(&mut self) -> Result<Submission, mpsc::error::TryRecvError> {
        self.submissions.try_recv()
    }

    /// Lets nothing more in. What is in already can still be received.
    pub fn close(&mut self) {
        self.submissions.close();
    }
}
