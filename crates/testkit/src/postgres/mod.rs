//! A real PostgreSQL server of the test's own: on loopback, on a free port, in a temporary
//! directory, gone afterwards.
//!
//! PostgreSQL refuses to run as root, so a test that runs as root starts it as `postgres` or
//! `nobody`.

mod account;
mod binaries;
mod builder;
mod database;
mod psql;
mod server;
mod slow_fsync;
mod template;
mod watchdog;

pub(crate) use account::Account;
pub use binaries::PROGRAMS;
pub(crate) use binaries::named_folder;
pub use builder::Builder;
pub use database::{Database, SHARED_SERVER, shared};
pub use psql::{program as psql_program, psql};
pub use server::Postgres;
pub(crate) use server::free_port;
pub(crate) use template::scratch;
pub(crate) use watchdog::{Stop, Watched};
