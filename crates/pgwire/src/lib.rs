//! PostgreSQL's protocol, version 3.0: the code that the PostgreSQL sink and the PostgreSQL
//! frontend share.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`wire`] | a connection to a server: login, TLS, exchanges, cancelling |
//! | [`target`] | server and role: connection URLs, with libpq's meaning |
//! | [`scram`] | SCRAM-SHA-256 without a password: the server's side from a verifier, the client's from keys |
//! | [`fault`] | converts the server's errors to faults |
//!
//! The crate imports only `core`.

pub mod fault;
pub mod scram;
pub mod target;
pub mod wire;

pub use fault::class_of;
pub use target::Target;
pub use wire::{Answer, Broken, ServerError, Wire};
