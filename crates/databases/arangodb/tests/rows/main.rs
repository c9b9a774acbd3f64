//! The ArangoDB sink against a real database where `WINDROW_TEST_ARANGODB` names one, else against
//! the stand-in. What only a stand-in can be made to do is always tried against it.

#![expect(clippy::unwrap_used, reason = "a test may end by any of these")]

mod arrays;
mod faults;
mod ops;
mod service;
mod support;
