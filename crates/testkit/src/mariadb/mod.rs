//! A real MariaDB server of the test's own: on loopback, on a free port, in a temporary directory,
//! gone afterwards.
//!
//! It runs as the user who runs the test, also where that is root.

mod client;
mod database;
mod programs;
mod server;

pub use client::{has_type, is_mysql, sql};
pub use database::{MariaDbDatabase, SHARED_SERVER, shared};
pub use programs::PROGRAMS;
pub use server::{MariaDb, MariaDbBuilder};

/// True if a server is installed.
pub fn is_installed() -> bool {
    programs::MariaDbPrograms::find().is_ok()
}
