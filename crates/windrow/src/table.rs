//! A writer with a statement: takes rows and returns their outcomes.

use std::sync::Arc;

use futures_util::stream::{self, Stream, StreamExt};
use windrow_core::{
    Fault, Intake, Row, Shape, SourceId, Unit, UnitOutcome, Value, Write, WriteDone,
};

/// The outcome of one row: exactly what it would have been alone.
pub type Outcome = Result<WriteDone, Fault>;

/// The most rows that [`Table::write_stream`] submits at once. It never waits for a slower source.
const CHUNK: usize = 1000;

/// Chunks under way at once, so that rows are pulled while others are written.
const CHUNKS_AHEAD: usize = 4;

/// Writes rows by one statement. Cheap to clone; clones and tasks share batches.
#[derive(Clone, Debug)]
pub struct Table {
    intake: Intake,
    shape: Arc<Shape>,
}

impl Table {
    pub(crate) fn new(intake: Intake, shape: Arc<Shape>) -> Self {
        Self { intake, shape }
    }

    /// Writes one row: the values of the statement's columns in their order, followed, for update,
    /// delete and get, by those of the key. Waits for the database's answer, and for memory if the
    /// budget is full.
    ///
    /// If the future is dropped early, the row is not written, unless it was already under way:
    /// then it may be.
    ///
    /// # Errors
    /// The row's own.
    pub async fn write(&self, row: impl IntoIterator<Item = Value>) -> Outcome {
        let mut outcomes = self
            .submit(self.intake.new_source(), vec![row.into_iter().collect()])
            .await;
        outcomes
            .pop()
            .unwrap_or_else(|| Err(Fault::internal("the row was not answered")))
    }

    /// Writes the rows of an iterator, each for itself, and returns one status for each, in order.
    ///
    /// Rows are taken from the iterator as they can be written, so a source of any length needs
    /// limited memory, apart from its statuses. Rows keep their order for each key.
    pub async fn write_all<R>(&self, rows: impl IntoIterator<Item = R>) -> Vec<Outcome>
    where
        R: IntoIterator<Item = Value>,
    {
        self.write_stream(stream::iter(rows)).collect().await
    }

    /// Writes the rows of a stream, each for itself, and returns their statuses as a stream, in
    /// order.
    ///
    /// Rows that are ready in the source are taken together without waiting for others: if a source
    /// has one row now and then, each is written at once. The source is read only as far as the
    /// statuses are read (some thousands of rows ahead).
    pub fn write_stream<S>(&self, rows: S) -> impl Stream<Item = Outcome>
    where
        S: Stream,
        S::Item: IntoIterator<Item = Value>,
    {
        // A single source, so that its rows keep their order even if several connections write.
        let source = self.intake.new_source();
        rows.map(|row| row.into_iter().collect::<Row>())
            .ready_chunks(CHUNK)
            .map(move |chunk| self.submit(source, chunk))
            .buffered(CHUNKS_AHEAD)
            .flat_map(stream::iter)
    }

    async fn submit(&self, source: SourceId, rows: Vec<Row>) -> Vec<Outcome> {
        let expected = rows.len();
        match self.try_submit(source, rows).await {
            Ok(outcomes) => outcomes,
            Err(fault) => vec![Err(fault); expected],
        }
    }

    async fn try_submit(&self, source: SourceId, rows: Vec<Row>) -> Result<Vec<Outcome>, Fault> {
        let misfits: Vec<Option<Fault>> = rows.iter().map(|row| self.misfit(row)).collect();
        let units: Vec<Unit> = rows
            .into_iter()
            .zip(&misfits)
            .filter(|(_, misfit)| misfit.is_none())
            .map(|(row, _)| Unit::one(Write::new(Arc::clone(&self.shape), row)))
            .collect();
        let bytes = units.iter().map(Unit::bytes).sum();
        let permit = self.intake.budget().take(bytes).await?;
        let mut answers = self
            .intake
            .submit(source, units, permit)
            .await?
            .await
            .into_iter();
        let outcome = |misfit: Option<Fault>| match misfit {
            Some(fault) => Err(fault),
            None => answers
                .next()
                .map_or_else(|| Err(Fault::internal("the row was not answered")), single),
        };
        Ok(misfits.into_iter().map(outcome).collect())
    }

    /// Returns the fault of a row with too few or too many values. It is never sent, because a sink
    /// would read it as a row of another statement.
    fn misfit(&self, row: &Row) -> Option<Fault> {
        let columns = self.shape.columns.len();
        let fits = if self.shape.has_key_values() {
            row.len() > columns
        } else {
            row.len() == columns
        };
        (!fits).then(|| {
            let key = if self.shape.has_key_values() {
                " and those of the key"
            } else {
                ""
            };
            Fault::invalid(format!(
                "a row of {} values was given to a statement of {columns} columns{key}",
                row.len()
            ))
        })
    }
}

fn single(outcome: UnitOutcome) -> Outcome {
    match outcome {
        Ok(mut dones) => dones
            .pop()
            .ok_or_else(|| Fault::internal("the row was not answered")),
        Err(unit) => Err(unit.fault),
    }
}
