//! From units to statements, and from answers to verdicts.
//!
//! | file | what it does |
//! | --- | --- |
//! | `plan`, `plans`, `sql` | plan: from a shape to its statement |
//! | `send` | send: executes the writes of a unit |
//! | `settle` | settle: the transactions of a batch, and the verdict of each unit |
//! | `isolate` | isolate: what runs again, and how small, when a transaction fails |
//! | `grow` | creates and extends tables for units that need it |

pub(crate) mod deferred_sync;
pub(crate) mod executor;
pub(crate) mod grow;
mod isolate;
pub(crate) mod moments;
pub(crate) mod plan;
pub(crate) mod plans;
pub(crate) mod send;
pub(crate) mod session;
mod settle;
pub(crate) mod sql;
pub(crate) mod writer;
