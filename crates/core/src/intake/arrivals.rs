//! The lane's end of the port.

use tokio::sync::mpsc;

use super::{Hint, Submission};
use crate::work::Work;

/// The lane's end of an [`super::Intake`].
#[derive(Debug)]
pub struct Arrivals<W: Work> {
    /// What is to be done.
    pub submissions: mpsc::Receiver<Submission<W>>,
    /// What is not to be done any more. A hint may be read before the submission that it is about:
    /// all submissions that are there when a hint was read are to be read before it is
    /// followed.
    pub hints: mpsc::Receiver<Hint>,
}

impl<W: Work> Arrivals<W> {
    /// The next submission; `None` once all intakes are gone. Cancel safe.
    pub async fn recv(&mut self) -> Option<Submission<W>> {
        self.submissions.recv().await
    }

    /// Several at once, as [`mpsc::Receiver::recv_many`]. Cancel safe.
    pub async fn recv_many(&mut self, into: &mut Vec<Submission<W>>, limit: usize) -> usize {
        self.submissions.recv_many(into, limit).await
    }

    /// The next submission, if it is there already.
    ///
    /// # Errors
    /// As [`mpsc::Receiver::try_recv`].
    pub fn try_recv(&mut self) -> Result<Submission<W>, mpsc::error::TryRecvError> {
        self.submissions.try_recv()
    }

    /// Lets nothing more in. What is in already can still be received.
    pub fn close(&mut self) {
        self.submissions.close();
    }
}
