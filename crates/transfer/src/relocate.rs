//! `move`: rows of a table that serves as a queue into their final tables.
//!
//! ```text
//!  source --> mover: one transaction a batch --> destinations        (one database: statements of the server)
//!                       |                   \--> dead letters
//!                       +--> lane: row + marker --> another database (then the rows go from the source, then the markers)
//! ```
//!
//! - Rows are locked while they are moved, and locked rows are passed over: any number of movers,
//!   in any number of processes, do not meet ([`windrow_core::relocate`]).
//! - A row is deleted from the source in the transaction that puts it into its destination, or else
//!   after it has been committed there together with a marker that says so. A mover may be killed
//!   at any moment.
//! - A row that is refused goes to the dead letters with the reason, and all others go on.

mod across;
mod counts;
mod markers;
mod news;
mod shapes;
mod template;
mod trouble;
mod within;
mod worker;

use std::sync::Arc;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use windrow_core::relocate::{NameLimit, Takes};
use windrow_core::{Intake, MovePlan, Name, Queue};

pub use self::counts::{Counted, Counts};
pub use self::markers::{fingerprint, tag};
pub use self::template::Template;
pub use self::trouble::MoveError;

use self::counts::Ration;
use self::news::Bell;
use self::worker::Worker;

/// What is to be moved, and how.
#[derive(Clone, Debug)]
pub struct Order {
    /// Which rows.
    pub plan: MovePlan,
    /// Where they go.
    pub template: Template,
    /// The longest name of a destination.
    pub name_limit: NameLimit,
    /// Destinations that are not there are made.
    pub create: bool,
    /// Rows of one batch, at least one.
    pub batch_rows: usize,
    /// Bytes of values in one batch, where rows are read; a single row may pass it.
    pub batch_bytes: usize,
    /// Connections that move at once, at least one.
    pub jobs: usize,
    /// The most rows that are moved; `None`: all.
    pub limit: Option<u64>,
    /// Whether it goes on as rows arrive, until it is stopped.
    pub follow: bool,
}

/// Another database as the destination.
#[derive(Clone)]
pub struct Elsewhere {
    /// The lane that leads there.
    pub intake: Intake,
    /// It has transactions: every row is written together with a marker, exactly once. Otherwise
    /// rows are written by the source's key, and a row that is written again is the same row.
    pub transactional: bool,
    /// What describes its tables; those that do not follow from rows were looked at before the
    /// move.
    pub described: Option<Arc<dyn Queue>>,
    /// How the source's columns give values, where that matters.
    pub gives: Vec<(Name, Takes)>,
    /// The one column that all its tables tell rows apart by; `None`: that is up to each table.
    /// Where rows do not have it, it is made from their keys.
    pub document_key: Option<Name>,
    /// Which move it is, the same for all that move from this source:
    /// [`windrow_core::relocate::Moved::relocation`].
    pub relocation: Box<str>,
    /// What begins the keys of its markers: which columns name a row. Of
    /// [`windrow_core::relocate::Moved::TAG_BYTES`].
    pub tag: Box<str>,
    /// What begins the names of batches to this destination.
    pub batches: Box<str>,
}

/// Moves all rows that there are, or those that come, too, if it is to follow. `stop`: batches that
/// are under way are finished, and no other is begun. Rows that others hold are waited for, a few
/// seconds.
///
/// Cancel safe: what is under way is rolled back, or (across databases) finished by the next move.
///
/// # Errors
/// [`MoveError`]. What was moved before stays moved.
pub async fn relocate(
    queue: Arc<dyn Queue>,
    order: Arc<Order>,
    elsewhere: Option<Elsewhere>,
    counts: Arc<Counts>,
    stop: CancellationToken,
) -> Result<(), MoveError> {
    // An error of one worker ends the others, but not whoever else holds the caller's token.
    let stop = stop.child_token();
    let ration = Arc::new(Ration::new(order.limit));
    let bell = Arc::new(Bell::default());
    let mut tasks = JoinSet::new();
    if order.follow {
        tasks.spawn(news::listen(
            queue.clone(),
            order.clone(),
            bell.clone(),
            stop.clone(),
        ));
    }
    for _ in 0..order.jobs.max(1) {
        let worker = Worker {
            queue: queue.clone(),
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
