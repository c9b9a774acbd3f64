//! Reading a body, chunk by chunk or as a whole, with its limits and its charge to the memory
//! budget.

pub(crate) mod charge;
mod feed;
mod inflate;
pub(crate) mod kind;
pub(crate) mod whole;

pub use feed::Feed;
