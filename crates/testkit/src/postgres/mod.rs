//! A real PostgreSQL server of the test's own: on loopback, on a free port, in a temporary
//! directory, gone afterwards.
//!
//! PostgreSQL refuses to run as root, so a test that runs as root starts it as `postgres` or
//! `nobody`.

mod builder;
mod database;
mod programs;
mod psql;
mod script;
mod server;
mod slow_fsync;

pub use builder::PostgresBuilder;
pub use database::{PostgresDatabase, SHARED_SERVER, shared};
pub use programs::PROGRAMS;
pub use psql::{program as psql_program, psql};
pub use server::Postgres;
