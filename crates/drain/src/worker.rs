//! Applies a partition: connects, asks the database how far it is, and goes on from there.
//!
//! After each failure that leaves open what the database has, the worker connects again and reads
//! the position. It remembers nothing that the database could contradict.

mod land;
mod session;
mod state;

pub(crate) use self::state::Worker;
