//! The marks of one load.

use std::sync::Arc;

use windrow_core::{Mark, Marks, Span};

use super::LoadError;
use super::retries::Retries;
use super::spans::Spans;

/// The database's marks, and the name of the load there.
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

    /// Reads the records that are done. Waits for the database.
    pub(super) async fn read(
        &self,
        retries: &mut Retries<'_>,
        place: impl Fn() -> String,
    ) -> Result<Spans, LoadError> {
        let spans = retries.call(place, || self.marks.read(&self.load)).await?;
        Ok(Spans::new(spans))
    }

    /// Replaces the marks within a span by one. Waits for the database.
    pub(super) async fn merge(
        &self,
        span: Span,
        retries: &mut Retries<'_>,
        place: impl Fn() -> String,
    ) -> Result<(), LoadError> {
        let mark = self.mark(span);
        retries.call(place, || self.marks.merge(&mark)).await
    }
}
