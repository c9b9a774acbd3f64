//! The PostgreSQL frontend: an application changes its port and nothing else.
//!
//! Its autocommit single-row writes are joined with those of all other clients; everything else
//! reaches PostgreSQL untouched, on a server connection that the session has as long as it needs
//! one.
//!
//! The way of a session, room by room:
//!
//! | room | what happens there |
//! | --- | --- |
//! | `server` | the listening socket, and who is connected |
//! | `admit` | TLS, startup, authentication, cancel requests |
//! | `session` | the loop of one client: messages in, answers out in their order; what is joined and what is relayed |
//! | `berths` | how many server connections there may be, of lanes and sessions together |
//! | `pool` | server connections for what is not joined |
//! | `proofs` | what is proven of statements that are relayed |
//! | `warrant` | whether who is in would still be let in |
//! | `admin` | the console: `SHOW LANES`, `PAUSE` ... |
//! | [`services`] | the ports: lanes |
//!
//! What a text says (may it be joined, with which values, and if not why) is read by `windrow-sql`.

mod admin;
mod admit;
mod berths;
mod bypass;
mod client;
mod client_stream;
mod codec;
pub mod config;
mod gate;
mod house;
mod memo;
pub mod metrics;
mod pool;
mod presence;
mod proofs;
mod relay;
mod senders;
pub mod server;
pub mod services;
mod session;
#[cfg(any(test, fuzzing))]
pub mod trial;
mod warrant;

pub use admit::Roles;
pub use berths::{Berth, Berths, Guest};
pub use client::{Identity, Settings};
pub use config::{DatabaseConfig, PgConfig, Unproven, UnprovenConfig};
pub use metrics::PgMetrics;
pub use server::Pg;
pub use services::{Console, Door, LaneKey, LaneLine, Lanes, Services};
pub use windrow_proof::Trusted;
