//! The handlers of requests about rows, one file for each kind, and their shared code.

mod atomic;
pub(crate) mod batch;
pub(crate) mod insert;
pub(crate) mod keyed;
pub(crate) mod list;
mod operation;
pub(crate) mod ops;
mod pump;
