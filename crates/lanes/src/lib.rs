//! Lanes: where batches form.
//!
//! A lane is a queue of units for one database. One task, the worker, owns all of its state without
//! locks. It takes what frontends submit, sends it to the database in batches, and gives each
//! client its own answer.
//!
//! **A batch forms while the flight before it is under way.** A flight is a batch under way; W is
//! the number of flights that pace has found useful. With fewer than W flights, units leave at
//! once. With W flights, units queue, and the connection whose flight ends first takes all that is
//! queued, up to the limits. No timer delays a write: at low load a batch is one unit, and under
//! load it grows as far as the database falls behind. If a flight takes much longer than usual,
//! another one leaves beside it, if the database can run both. Writes are held back in two cases
//! only: [`Limits::max_wait`](windrow_core::Limits::max_wait) asks for it, or waiting for the
//! clients that were just answered was measured to raise rows per second ([`pace::Gather`]).
//!
//! The modules, in the order in which a unit passes them:
//!
//! | module | what it does |
//! | --- | --- |
//! | `handle` | [`Lane`]: starts and ends the worker, reports its state |
//! | `worker` | the worker: one loop that receives arrivals and signals, sends batches, and handles the units of those that have landed |
//! | `ticket` | the answer owed for each submission, sent when all of its units have outcomes |
//! | `queue` | per-source queues and the forming of batches: order, fairness, limits, one key in one flight (pure) |
//! | [`pace`] | finds W, the largest batch, and whether to wait for clients that come back, by comparing rows per second (pure) |
//! | `connections`, `connection` | the connections; each is owned by a task that executes one batch after another, and interrupts it if its client cancels |
//! | `lock_wait` | units that wait for another session's lock, on connections of their own |
//! | `message` | the messages between the worker and these tasks |
//! | `panics` | the report on a panic in a sink or an executor |
//! | `away` | a database that cannot be reached: for how long, and the faults of the writes that wait |
//! | `idle`, `alarm` | the time for which the lane is idle; one timer for all deadlines |
//! | `overdue` | the usual time of a flight, and which one takes too long (pure) |
//! | `retry` | how often and when units that were rolled back run again |
//! | `failures` | the writes that failed, by table and reason |
//! | [`metrics`] | the counters |
//!
//! **Order.** Units of one source keep their order: a source is in one flight at a time. With
//! several flights, a row that [`Sink::touches`](windrow_core::Sink::touches) names is in one of
//! them at a time.
//!
//! **Fairness.** Sources take turns by rows. While no more sources wait than a batch has rows, a
//! single row is in the next batch, whatever others have queued.
//!
//! **Failures.** A unit that was rolled back through no fault of its own goes back to the front of
//! its source and travels in a batch of half the size. A unit that waits for a lock runs alone; its
//! source and units that touch the same rows wait, and all others go on. A panic in an executor is
//! reported as an unknown outcome, and the lane goes on.
//! [`Fault::retry`](windrow_core::Fault::retry) says how a fault may be retried. The
//! [`RetryPolicy`](windrow_core::RetryPolicy) of the source and
//! [`Limits::away_wait`](windrow_core::Limits::away_wait) say how often, and how long units wait
//! for a database that cannot be reached.

mod alarm;
mod arena;
mod away;
mod batch;
mod connection;
mod connections;
mod failures;
mod handle;
mod idle;
mod lock_wait;
mod message;
pub mod metrics;
mod overdue;
pub mod pace;
mod panics;
mod queue;
mod retry;
mod ticket;
mod worker;

pub use failures::Failure;
pub use handle::{Lane, LaneWatch};
pub use metrics::LaneMetrics;
