//! The PostgreSQL frontend: an application changes its port and nothing else.
//!
//! Its autocommit single-row writes are joined with those of all other clients; everything else
//! reaches PostgreSQL untouched, on a server connection that the session has as long as it needs
//! one.
//!
//! The way of a session, module by module; each imports those below it, and none above it:
//!
//! | module | what happens there |
//! | --- | --- |
//! | `server` | builds the shared state; the listening socket, and who is connected |
//! | `admin` | the console: `SHOW LANES`, `PAUSE` ... |
//! | `admit` | TLS, startup, authentication, cancel requests |
//! | `session` | the loop of one client: messages in, answers out in their order; what is joined and what is relayed |
//! | `databases`, `role_state` | the databases with their pool, and what their servers say of roles |
//! | `proofs` | what is proven of statements that are relayed |
//! | `pool` | server connections for what is not joined |
//! | `statements` | what texts say, and the prepared statements of a session |
//! | `bypass` | what was not joined, and why |
//! | `gate`, `senders` | holding work back; who sends notifications |
//! | [`services`] | the ports: lanes |
//! | [`metrics`] | what is counted |
//! | `register`, `session_info`, `warrant` | who is in, what others may know of a session, what it came in with |
//! | [`config`] | what can be configured |
//! | `berths` | how many server connections there may be, of lanes and sessions together |
//! | `codec`, `client_stream` | PostgreSQL's protocol, and the byte stream of a client |
//!
//! What a text says (may it be joined, with which values, and if not why) is read by `windrow-sql`.

mod admin;
mod admit;
mod berths;
mod bypass;
mod cache;
mod client;
mod client_stream;
mod codec;
pub mod config;
mod databases;
mod gate;
pub mod metrics;
mod pool;
mod proofs;
mod register;
mod role_state;
mod senders;
pub mod server;
pub mod services;
mod session;
mod session_info;
mod statements;
#[cfg(any(test, fuzzing))]
pub mod trial;
mod warrant;

pub use berths::{Berth, Berths, Guest};
pub use client::{Identity, Settings};
pub use config::{DatabaseConfig, PgConfig, Roles, Unproven, UnprovenConfig};
pub use metrics::PgMetrics;
pub use server::Pg;
pub use services::{Console, Door, LaneKey, LaneLine, Lanes, Services};
pub use windrow_proof::Trusted;
