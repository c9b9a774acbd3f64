//! `move`: rows of a table that serves as a queue into their final tables.
//!
//! ```text
//!  source --> mover: one transaction a batch --> destinations        (one database: statements of the server)
//!                       |                   \--> dead letters
//!                       +--> lane: row + marker --> another database (then the rows go from the source, then the markers)
//! ```
//!
//! - Rows are locked while they are moved, and locked rows are passed over: any number of movers,
//!   in any number of processes, do not meet ([`windrow_core::moves`]).
//! - A row is deleted from the source in the transaction that puts it into its destination, or else
//!   after it has been committed there together with a marker that says so. A mover may be killed
//!   at any moment.
//! - A row that is refused goes to the dead letters with the reason, and all others go on.

mod across;
mod batch;
mod claims;
mod counts;
mod markers;
mod news;
mod order;
mod shapes;
mod sorted_rows;
mod template;
mod trouble;
mod within;
mod worker;

use std::sync::Arc;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use windrow_core::Moves;

pub use self::counts::{Counted, Counts};
pub use self::markers::{fingerprint, tag};
pub use self::order::{Elsewhere, Order};
pub use self::template::Template;
pub use self::trouble::MoveError;

use self::counts::Ration;
use self::news::Bell;
use self::worker::Worker;

/// Moves all rows, and also rows that come later if [`Order::follow`] is set. If `stop` is
/// cancelled, batches under way are finished, and no other begins. Waits a few seconds for rows
/// that other sessions have locked.
///
/// Cancel safe: batches under way are rolled back, or (across databases) finished by the next move.
///
/// # Errors
/// [`MoveError`]. What was moved before stays moved.
pub async fn run(
    moves: Arc<dyn Moves>,
    order: Arc<Order>,
    elsewhere: Option<Elsewhere>,
    counts: Arc<Counts>,
    stop: CancellationToken,
) -> Result<(), MoveError> {
    // An error of one worker ends the others, but does not cancel the caller's token.
    let stop = stop.child_token();
    let ration = Arc::new(Ration::new(order.limit));
    let bell = Arc::new(Bell::default());
    let mut tasks = JoinSet::new();
    if order.follow {
        tasks.spawn(news::listen(
            moves.clone(),
            order.clone(),
            bell.clone(),
            stop.clone(),
        ));
    }
    for _ in 0..order.jobs.max(1) {
        let worker = Worker {
            moves: moves.clone(),
            order: order.clone(),
            elsewhere: elsewhere.clone(),
            counts: counts.clone(),
            ration: ration.clone(),
            bell: bell.clone(),
            stop: stop.clone(),
        };
        tasks.spawn(worker.run());
    }
    let mut outcome = Ok(());
    while let Some(ended) = tasks.join_next().await {
        let ended = ended.unwrap_or_else(|panic| Err(MoveError::Invalid(panic.to_string().into())));
        if ended.is_err() {
            stop.cancel();
        }
        outcome = outcome.and(ended);
    }
    outcome
}
