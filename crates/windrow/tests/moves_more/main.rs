//! `windrow move` with MariaDB and SQLite, through the real program.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub,
    reason = "a test ends where something is not as expected, in its helpers too"
)]

mod across;
mod cockroachdb;
mod effects;
mod fitting;
mod keyed;
mod kills;
mod mariadb;
mod markers;
mod names;
mod once;
mod round_trip;
mod small;
mod sqlite;
mod support;
