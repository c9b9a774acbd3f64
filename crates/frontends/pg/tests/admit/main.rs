//! The way in, the server connections behind it, and the console, against a real PostgreSQL.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails where it stands"
)]

mod auth;
mod auth_query;
mod cancel;
mod configuration;
mod console;
mod drivers;
mod flood;
mod pooled;
mod startup;
mod stop;
mod support;
mod tls;
