//! Applies a partition: connects, asks the database how far it is, and goes on from there.
//!
//! Whatever goes wrong in a way that leaves open what the database has, the worker connects anew
//! and asks again. It remembers nothing that the database could contradict.

mod land;
mod session;
mod state;

pub(crate) use self::state::Worker;
