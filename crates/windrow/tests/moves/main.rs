//! `windrow move`, through the real program and real databases.

#![expect(
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test ends where something is not as expected, in its helpers too"
)]

mod across;
mod asked;
mod created;
mod encodings;
mod follow;
mod kills;
mod letters;
mod support;
mod within;
