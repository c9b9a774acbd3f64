//! The way of a batch: from units to statements, and from answers to verdicts.

pub(crate) mod batch;
mod bind;
pub(crate) mod cache;
pub(crate) mod compiled;
pub(crate) mod connection;
mod demands;
mod executor;
mod failed;
mod matching;
mod named;
mod one_statement;
mod set;
mod single;
mod step;
mod text;
mod transaction;
mod units;
