//! The marks of one load.

use std::sync::Arc;

use windrow_core::{Mark, Marks, Span};

use super::LoadError;
use super::patience::Patience;
use super::spans::Spans;

/// Where the marks of a load are, and what it is called there.
#[derive(Clone)]
pub(super) struct Marking {
    pub(super) marks: Arc<dyn Marks>,
    pub(super) load: Box<str>,
}

impl Marking {
    pub(super) fn mark(&self, span: Span) -> Mark {
        Mark {
            load: self.load.clone(),
            span,
        }
    }

    /// What is done, as the database tells it; waits for the database.
    pub(super) async fn read(
        &self,
        patience: &mut Patience<'_>,
        place: impl Fn() -> String,
    ) -> Result<Spans, LoadError> {
        loop {
            match self.marks.read(&self.load).await {
                Ok(spans) => {
                    patience.reached();
                    return Ok(Spans::new(spans));
                }
                Err(fault) if fault.may_retry() => patience.wait(fault, &place).await?,
                Err(fault) => {
                    let place = place();
                    return Err(LoadError::Database { place, fault });
                }
            }
        }
    }

    /// Puts one mark in the place of many; waits for the database.
    pub(super) async fn merge(
        &self,
        span: Span,
        patience: &mut Patience<'_>,
        place: impl Fn() -> String,
    ) -> Result<(), LoadError> {
        let mark = self.mark(span);
        loop {
            match self.marks.merge(&mark).await {
                Ok(()) => {
                    patience.reached();
                    return Ok(());
                }
                Err(fault) if fault.may_retry() => patience.wait(fault, &place).await?,
                Err(fault) => {
                    let place = place();
                    return Err(LoadError::Database { place, fault });
                }
            }
        }
    }
}
