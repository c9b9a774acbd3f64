//! The way of a batch: from units to statements, out in one round trip, and from answers to
//! verdicts.
//!
//! | module | what it does |
//! | --- | --- |
//! | `form` | what is particular to row writes and to SQL calls; all else is the same for both |
//! | `executor` | the loop of round trips that ends when every unit has its verdict |
//! | `connection` | a connection, and what it has learned |
//! | `statements`, `prepared` | all that a connection knows of statements |
//! | `batch` | every write in its place: does it fit, which rows does it touch |
//! | `segment`, `order` | the transactions of a round trip |
//! | `prepare`, `check`, `trust` | statements, guards and checks that the connection does not have yet |
//! | `send`, `bind`, `sent` | statements out |
//! | `isolation`, `executor/isolate` | a transaction of parts with a savepoint each, after a failure |
//! | `answers`, `codes` | what the server said, and what that means |
//! | `settle`, `findings` | from answers to verdicts, to what runs again, and to what is not true any more |
//! | `failure_rates` | which shapes fail often |
//! | `patience`, `wariness`, `interrupt` | how long is waited, and giving a batch up |

pub(crate) mod answers;
pub(crate) mod batch;
pub(crate) mod bind;
mod check;
pub(crate) mod codes;
pub(crate) mod connection;
pub(crate) mod executor;
pub(crate) mod failure_rates;
pub(crate) mod findings;
pub(crate) mod form;
pub(crate) mod interrupt;
pub(crate) mod isolation;
pub(crate) mod order;
pub(crate) mod patience;
pub(crate) mod prepare;
pub(crate) mod prepared;
pub(crate) mod segment;
pub(crate) mod send;
pub(crate) mod sent;
pub(crate) mod settle;
pub(crate) mod statements;
pub(crate) mod trust;
pub(crate) mod wariness;
