//! The way of a request from its method and path to its handler.

mod find;
mod router;

#[cfg(any(test, fuzzing))]
pub(crate) use find::find;
pub(crate) use router::Router;
