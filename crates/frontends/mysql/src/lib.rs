//! The MySQL frontend: an application of MySQL or MariaDB changes its port and nothing else.
//!
//! Each session has a server connection of its own, logged in with the client's own abilities, and
//! every packet is relayed byte for byte.
//!
//! Modules, each of which imports those below it:
//!
//! | module | what happens there |
//! | --- | --- |
//! | [`server`] | the listening sockets |
//! | `session` | the loop of one client: commands, answers, files |
//! | `admit` | greeting, TLS, the proof of a password, the session's server connection |
//! | `kill` | `KILL` of a session by the number that its client knows |
//! | `shared` | the state that all connections share |
//! | `access` | which users may log in |
//! | `register` | the sessions by number |
//! | `profile` | the server's greeting, which clients get |
//! | [`metrics`] | counters |
//! | `errors` | the frontend's own errors |
//! | [`config`] | what can be configured |

mod access;
mod admit;
pub mod config;
mod errors;
mod kill;
pub mod metrics;
mod profile;
mod register;
pub mod server;
mod session;
mod shared;

pub use config::{MysqlConfig, UserConfig};
pub use metrics::MysqlMetrics;
pub use server::{MysqlFrontend, UserKeeper};
