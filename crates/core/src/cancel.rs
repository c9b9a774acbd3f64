//! Cancels the batch of an executor from another task.

use async_trait::async_trait;

use crate::fault::Fault;

/// Cancels an executor's batch while [`crate::Executor::execute`] is running.
#[async_trait]
pub trait Canceller: Send + Sync {
    /// Asks the database to cancel the statement that the executor is running. The executor's
    /// report has the result: a finished batch is reported as done, a cancelled one as failed with
    /// the database's own error (57014 if it has SQLSTATEs).
    ///
    /// The executor must not get another batch before this future has ended, because the request
    /// could cancel that one. Several requests for the same batch are allowed.
    ///
    /// # Errors
    /// The request did not reach the database in time. It may still arrive, so the executor must
    /// not be used after its batch.
    async fn cancel(&self) -> Result<(), Fault>;
}
