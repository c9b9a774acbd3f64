//! One file for each kind of request about rows, and what they share.

mod atomic;
pub(crate) mod batch;
pub(crate) mod insert;
pub(crate) mod keyed;
pub(crate) mod list;
mod operation;
pub(crate) mod ops;
mod pump;
