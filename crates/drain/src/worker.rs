//! Applies a partition: connects, reads the position in the database, and goes on from there.
//!
//! After each failure that leaves the state of the database open, the worker connects again and
//! reads the position. It keeps no state that the database could contradict.

mod land;
mod session;
mod state;

pub(crate) use self::state::Worker;
