//! The ArangoDB sink against a real database where `WINDROW_TEST_ARANGODB` names one, else against
//! the stand-in. What only a stand-in can be made to do is always tried against it.

#![cfg(feature = "arangodb")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may end by any of these"
)]

mod arrays;
mod differential;
mod faults;
mod ops;
mod service;
mod support;
