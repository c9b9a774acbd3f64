//! The MySQL frontend: an application of MySQL or MariaDB changes only its port.
//!
//! Single-row writes in autocommit are joined with those of other clients by a lane. Each session
//! has a server connection of its own besides, logged in with the client's own abilities, to which
//! everything else is relayed byte for byte.
//!
//! Modules, each of which imports those below it:
//!
//! | module | what happens there |
//! | --- | --- |
//! | [`server`] | the listening sockets |
//! | `session` | the loop of one client: what is joined, and what is relayed |
//! | `not_joined` | the reasons for which a statement is relayed |
//! | `statement_kind` | the facts about a text that the spool and keys need |
//! | `own_settings` | Windrow's own settings of a session |
//! | `session_state`, `prepared` | the facts about a session; its prepared statements |
//! | `admit` | greeting, TLS, the proof of a password, the session's server connection |
//! | `kill` | replaces the number in `KILL` |
//! | `shared` | the state that all connections share |
//! | `lanes` | the lanes that sessions have open, and verdicts on statements |
//! | `access` | which users may log in |
//! | `register` | the sessions by number |
//! | `profile` | the server's greeting, which clients get |
//! | [`services`] | the ports: lanes, the spool, keys |
//! | [`metrics`] | counters |
//! | `errors` | the frontend's own errors |
//! | [`config`] | the configuration |

mod access;
mod admit;
pub mod config;
mod errors;
mod kill;
mod lanes;
pub mod metrics;
mod not_joined;
mod own_settings;
mod prepared;
mod profile;
mod register;
pub mod server;
pub mod services;
mod session;
mod session_state;
mod shared;
mod statement_kind;

pub use config::{MysqlConfig, UserConfig};
pub use metrics::MysqlMetrics;
pub use server::{MysqlFrontend, UserKeeper};
pub use services::{Lanes, MysqlSpool, Services};
