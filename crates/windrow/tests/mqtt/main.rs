//! Messages of an MQTT broker as rows, through the real program and a real broker.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test ends where something is not as expected, in its helpers too"
)]

mod outages;
mod rows;
mod support;
