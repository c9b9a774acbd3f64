//! A spool, as frontends see it.

use async_trait::async_trait;
use windrow_core::{Fault, Intake, RowWrite, SpoolPlace, Spooling};

use crate::progress::Progress;

/// A spool, as frontends see it: what takes their writes, and how far those have come.
#[derive(Clone, Debug)]
pub struct Handle {
    intake: Intake<RowWrite>,
    progress: Progress,
}

impl Handle {
    /// Joins the two ends. The other end of the intake is a [`windrow_spool::Appender`]'s on the
    /// same spool.
    pub fn new(intake: Intake<RowWrite>, progress: Progress) -> Self {
        Self { intake, progress }
    }

    /// How far the spool has come.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }
}

#[async_trait]
impl Spooling<RowWrite> for Handle {
    fn intake(&self) -> &Intake<RowWrite> {
        &self.intake
    }

    fn end(&self) -> SpoolPlace {
        self.progress.end()
    }

    fn level(&self) -> Option<SpoolPlace> {
        self.progress.level()
    }

    async fn applied(&self, place: &SpoolPlace) -> Result<(), Fault> {
        self.progress.applied(place).await
    }
}
