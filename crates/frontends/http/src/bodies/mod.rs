//! Reads bodies, by chunks or as a whole, with their limits and their charge to the memory budget.

pub(crate) mod charge;
mod feed;
mod inflate;
pub(crate) mod kind;
pub(crate) mod whole;

pub use feed::Feed;
