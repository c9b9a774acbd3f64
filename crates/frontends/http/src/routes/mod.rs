//! Where a request goes: from its method and path to what answers it.

mod find;
mod router;

#[cfg(any(test, fuzzing))]
pub(crate) use find::find;
pub(crate) use router::Router;
