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
//! | `server` | the listening socket, and who is connected |
//! | `admin` | the console: `SHOW LANES`, `PAUSE` ... |
//! | `admit` | TLS, startup, authentication, cancel requests |
//! | `session` | the loop of one client: messages in, answers out in their order; what is joined and what is relayed |
//! | `shared` | what all connections share: made of parts of all those below |
//! | `access`, `tls` | which roles may log in; TLS for clients |
//! | `charge` | memory for long messages and for answers that are not read |
//! | `databases`, `role_state` | the databases with their pool, and what their servers say of roles |
//! | `proofs` | what is proven of statements that are relayed |
//! | `pool` | server connections for what is not joined |
//! | `statements` | what is known of statements: what texts say and mean in a lane; prepared statements |
//! | `lanes` | the lanes that sessions have open |
//! | `block_doubts` | why transactions go to a server connection, and advice |
//! | `bypass` | what was not joined, and why |
//! | `gate`, `senders` | holding work back; who sends notifications |
//! | `own` | Windrow's own settings of a session |
//! | `cache` | answers of servers about roles and settings, kept for a while |
//! | [`services`] | the ports: lanes |
//! | [`metrics`] | what is counted |
//! | `register`, `session_info`, `admission` | who is in, what others may know of a session, what it came in with |
//! | [`config`] | what can be configured |
//! | `connection_slots` | how many server connections there may be, of lanes and sessions together |
//! | `codec`, `client_stream` | PostgreSQL's protocol, and the byte stream of a client |
//!
//! What a text says (may it be joined, with which values, and if not why) is read by `windrow-sql`.

mod access;
mod admin;
mod admission;
mod admit;
mod admitted_client;
mod block_doubts;
mod bypass;
mod cache;
mod charge;
mod client;
mod codec;
pub mod config;
mod connection_slots;
mod databases;
mod gate;
mod lanes;
pub mod metrics;
mod own;
mod pool;
mod proofs;
mod register;
mod role_state;
mod rows_ahead;
mod senders;
pub mod server;
pub mod services;
mod session;
mod session_info;
mod shared;
mod statements;
mod tls;
#[cfg(any(test, fuzzing))]
pub mod trial;

pub use access::try_auth_query;
pub use block_doubts::advice;
pub use client::{Identity, Settings};
pub use config::{DatabaseConfig, PgConfig, Roles, Unproven, UnprovenConfig};
pub use connection_slots::{ConnectionSlot, ConnectionSlots, IdleConnections};
pub use metrics::PgMetrics;
pub use server::{Pg, RoleKeeper};
pub use services::{Console, LaneCounts, LaneKey, LaneLine, Lanes, Services, SqlKeys, SqlSpool};
pub use windrow_proof::Trusted;
