//! A spool in the form that frontends use.

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use windrow_core::{Fault, Intake, SpoolPlace, Spooling};

use crate::progress::Progress;

/// A spool in the form that frontends use: the intake of its writes, and its progress.
#[derive(Clone, Debug)]
pub struct Handle {
    intake: Intake,
    progress: Progress,
    stop: CancellationToken,
    repeats: bool,
}

impl Handle {
    /// Combines an intake with the progress. The other end of the intake belongs to a
    /// [`windrow_spool::Appender`] on the same spool. From `stop` on, no request waits for the
    /// database any more.
    pub fn new(intake: Intake, progress: Progress, stop: CancellationToken) -> Self {
        Self {
            intake,
            progress,
            stop,
            repeats: false,
        }
    }

    /// Returns the same for a database in which entries may be applied more than once:
    /// [`crate::Beside`].
    pub fn repeating(self, repeats: bool) -> Self {
        Self { repeats, ..self }
    }

    /// Returns the progress of the spool.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }
}

#[async_trait]
impl Spooling for Handle {
    fn intake(&self) -> &Intake {
        &self.intake
    }

    fn end(&self) -> SpoolPlace {
        self.progress.end()
    }

    fn repeats(&self) -> bool {
        self.repeats
    }

    fn level(&self) -> Option<SpoolPlace> {
        self.progress.level()
    }

    async fn applied(&self, place: &SpoolPlace) -> Result<(), Fault> {
        tokio::select! {
            biased;
            applied = self.progress.applied(place) => applied,
            () = self.stop.cancelled() => Err(Fault::unavailable(
                "Windrow is shutting down; what this request has to come after is not in the \
                 database yet, and the request was not executed",
            )),
        }
    }
}
