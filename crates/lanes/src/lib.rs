//! Lanes: where batches form.
//!
//! A lane is a queue of units for one database. One actor owns all of it, without locks, and does
//! three things: it takes what frontends submit, sends it to the database in batches, and gives
//! each client its own answer.
//!
//! **A batch is formed by the flight before it.** While fewer flights are under way than are of use
//! (W), what arrives leaves at once; while all are under way, units queue; the flight that ends
//! first takes all that is queued, up to the limits. No timer stands on the path of a write: at low
//! load a batch is one unit without delay, under load it grows exactly as much as the database is
//! behind. A flight that takes much longer than usual is not waited for where the database takes
//! another one beside it. Writes are held back only where
//! [`Limits::max_wait`](windrow_core::Limits::max_wait) asks for it, and where clients that were
//! just answered come back at once and rows per second were seen to rise when they are waited for
//! ([`pace::Gather`]).
//!
//! The way of a unit, room by room:
//!
//! | room | what happens there |
//! | --- | --- |
//! | `handle` | [`Lane`]: starts the actor, ends it, tells what it is doing |
//! | `worker` | the actor: one loop that receives arrivals and signals, sends off what may leave, unloads what has landed |
//! | `ticket` | one answer owed for each submission, given when all of its units have outcomes |
//! | `queue` | per-source queues and the forming of batches: order, fairness, limits, one key in one flight (pure) |
//! | [`pace`] | finds W, the largest batch and whether to wait for who comes back, by comparing rows per second (pure) |
//! | `connections`, `connection` | the connections, each owned by a task that executes one batch after another, and interrupts it if its client asks for that |
//! | `lock_wait` | units that wait for a foreign lock, on connections of their own |
//! | `message` | what the worker and these tasks say to each other |
//! | `panics` | what is made of a panic in a sink or an executor |
//! | `away` | a database that cannot be reached: since when, and the faults of the writes that wait |
//! | `idle`, `alarm` | since when there is nothing to do; one timer for all that nobody signals |
//! | `overdue` | how long flights usually take, and which one takes too long (pure) |
//! | `retry` | how often and when what was rolled back runs again |
//! | `failures` | which writes failed, by table and reason |
//! | [`metrics`] | what is counted |
//!
//! **Order.** Units of one source keep their order: a source is in one flight at a time. With
//! several flights, a row (as far as [`Sink::touches`](windrow_core::Sink::touches) names it) is in
//! one of them at a time.
//!
//! **Fairness.** Sources take turns by rows. While no more sources wait than a batch has rows, a
//! single row is in the next batch, whatever others have queued.
//!
//! **Failures.** A unit that was rolled back for no fault of its own goes back to the front of its
//! source and travels in a batch of half the size. A unit that waits for a lock runs alone; its
//! source and those that touch the same rows wait, all others go on. A panic in an executor is
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
mod status;
mod ticket;
mod worker;

pub use failures::Failure;
pub use handle::{Lane, LaneWatch};
pub use metrics::LaneMetrics;
pub use status::LaneStatus;
