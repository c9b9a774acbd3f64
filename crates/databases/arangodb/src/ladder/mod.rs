//! The path of a batch: from units to requests, and from answers to verdicts.

pub(crate) mod bind;
mod bulk;
pub(crate) mod connection;
mod executor;
pub(crate) mod request;
pub(crate) mod session;
