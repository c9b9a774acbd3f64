//! The PostgreSQL frontend: an application changes its port and nothing else.
//!
//! Autocommit single-row writes are joined with those of all other clients. Everything else reaches
//! PostgreSQL unchanged, on a server connection that the session has as long as it needs one.
//!
//! The modules; each imports only those below it:
//!
//! | module | what it does |
//! | --- | --- |
//! | `server` | listens, and keeps the list of connected clients |
//! | `admin` | the console: `SHOW LANES`, `PAUSE` ... |
//! | `admit` | TLS, startup, authentication, cancel requests |
//! | `session` | the loop of one client: reads messages, joins or relays them, writes answers in their order |
//! | `shared` | the state that all connections share, made of parts of the modules below |
//! | `access`, `tls` | the roles that may log in; TLS for clients |
//! | `charge` | memory for long messages and for unread answers |
//! | `databases`, `role_state` | the databases with their pool, and their servers' answers about roles |
//! | `proofs` | proofs about relayed statements |
//! | `pool` | server connections for statements that are not joined |
//! | `statements` | texts, their meaning in each lane, and prepared statements |
//! | `lanes` | the lanes that sessions use |
//! | `block_doubts` | reasons why transactions need a server connection, with advice |
//! | `bypass` | counts of statements that were not joined, by reason |
//! | `gate`, `senders` | pausing work; the senders of notifications |
//! | `own` | Windrow's own settings of a session |
//! | `cache` | a cache of servers' answers about roles and settings |
//! | [`services`] | the ports: lanes |
//! | [`metrics`] | counters |
//! | `register`, `session_info`, `admission` | the connected sessions, their visible state, and their credentials |
//! | [`config`] | the configuration |
//! | `connection_slots` | the limit on server connections of lanes and sessions together |
//! | `codec`, `client_stream` | PostgreSQL's protocol, and the byte stream of a client |
//!
//! `windrow-sql` reads the texts: whether they may be joined, with which values, and if not, why.

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
pub use services::{Console, LaneKey, Lanes, Services, SqlKeys, SqlSpool};
pub use windrow_proof::Trusted;
