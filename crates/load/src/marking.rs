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

    /// Reads which records are done. Waits for the database.
    pub(super) async fn read(
        &self,
        retries: &mut Retries<'_>,
        place: impl Fn() -> String,
    ) -> Result<Spans, LoadError> {
        let spans = retries.call(place, || self.marks.read(&self.load)).await?;
        Ok(Spans::new(spans))
    }

    /// Returns the name under which portions are noted whose rows go through the lane.
    pub(super) fn lane_name(&self) -> Box<str> {
        format!("{}/lane", self.load).into()
    }

    /// Notes a portion before its rows go through the lane. Even if this run is killed, a later run
    /// must not write these rows by the bulk form: rows under way then have marks of their own,
    /// which do not conflict with a mark of many rows. Waits for the database.
    pub(super) async fn note_lane(
        &self,
        span: Span,
        retries: &mut Retries<'_>,
        place: impl Fn() -> String,
    ) -> Result<(), LoadError> {
        let load = self.lane_name();
        let mark = Mark { load, span };
        retries.call(place, || self.marks.merge(&mark)).await
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
