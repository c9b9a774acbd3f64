//! Interrupting what an executor is about, from outside of it.

use async_trait::async_trait;

use crate::fault::Fault;

/// The way to interrupt one executor's batch while [`crate::Executor::execute`] is under way.
#[async_trait]
pub trait Canceller: Send + Sync {
    /// Asks the database to give up what the executor executes at this moment. Whether it did is
    /// told by the executor's report alone: a batch that was through already is reported as
    /// done, one that was given up as failed, in the database's own words (57014 where it has
    /// SQLSTATEs).
    ///
    /// The executor must not be given another batch before this future has ended, or the request
    /// could meet that one. Asking again while the same batch is under way is allowed.
    ///
    /// # Errors
    /// That the request did not reach the database in time. It may still be on its way: the
    /// executor is not to be used again after its batch.
    async fn cancel(&self) -> Result<(), Fault>;
}
