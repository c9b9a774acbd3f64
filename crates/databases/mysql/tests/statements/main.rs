//! The lane of MySQL clients against a real server.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may end by any of these"
)]

mod altered;
mod answers;
mod far;
mod limits;
mod locks;
mod lost;
mod numbers;
mod relay;
mod returning;
mod settings;
mod support;
mod warned;
