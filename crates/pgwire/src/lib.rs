//! PostgreSQL's protocol, version 3.0, as both its sides speak it: what the sink and the frontend
//! share.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`wire`] | a connection to a server: getting in, TLS, exchanges, cancelling |
//! | [`target`] | which server, as which role: connection URLs as libpq reads them |
//! | [`scram`] | SCRAM-SHA-256 from verifiers and keys: a server's side, and a client's that knows no password |
//! | [`fault`] | from the server's errors to faults |
//!
//! A leaf beside `core`: the crates that speak this protocol may import it, it imports `core`
//! alone.

pub mod fault;
pub mod scram;
pub mod target;
pub mod wire;

pub use fault::class_of;
pub use target::Target;
pub use wire::{Answer, Broken, ServerError, Wire};
