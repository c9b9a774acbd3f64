//! The CrateDB sink against a real cluster where `WINDROW_TEST_CRATEDB` names one, else against the
//! stand-in. What only a stand-in can be made to do is always tried against it.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may end by any of these"
)]

mod bulks;
mod created;
mod faults;
mod lost;
mod ops;
mod service;
mod support;
mod values;
