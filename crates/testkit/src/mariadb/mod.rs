//! A real MariaDB server of the test's own: on loopback, on a free port, in a temporary directory,
//! gone afterwards.
//!
//! It runs as the user who runs the test, also where that is root.

mod binaries;
mod client;
mod database;
mod server;
mod template;

pub use binaries::PROGRAMS;
pub use client::{has_type, is_mysql, sql};
pub use database::{Database, SHARED_SERVER, shared};
pub use server::{Builder, MariaDb};

/// True where a server is installed.
pub fn is_installed() -> bool {
    binaries::Binaries::find().is_ok()
}
