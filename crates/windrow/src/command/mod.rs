//! Commands that come to an end.

pub(crate) mod load;
pub(crate) mod moves;
mod progress;
mod run;
