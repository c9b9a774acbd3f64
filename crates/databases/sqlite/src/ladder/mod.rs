//! The way of a batch: from units to statements, and from answers to verdicts.

pub(crate) mod batch;
pub(crate) mod deferred_sync;
pub(crate) mod executor;
pub(crate) mod grow;
pub(crate) mod moments;
pub(crate) mod plans;
pub(crate) mod session;
pub(crate) mod sql;
pub(crate) mod statement;
pub(crate) mod unit;
pub(crate) mod writer;
