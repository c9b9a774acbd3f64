//! The way of a batch: from units to requests, and from answers to verdicts.

mod bind;
mod bulk;
pub(crate) mod connection;
mod executor;
mod grow;
pub(crate) mod key;
mod knowledge;
mod lookup;
pub(crate) mod session;
mod settle;
mod single;
mod statement;
