//! The protocol of MySQL and MariaDB: the code that a frontend needs on both of its sides.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`packet`] | packets over a byte stream: reading, writing, forwarding without collecting |
//! | [`handshake`] | the server's greeting and the client's login request |
//! | [`auth`] | proofs of a password, made and verified |
//! | [`answer`] | finds the end of the server's answer to a command |
//! | [`command`] | the numbers of commands |
//! | [`error_packet`] | errors as the server writes them |
//! | [`lane`] | the login of a lane's connections |
//! | [`write_answer`] | the server's answer to a write of a lane |
//! | [`query`] | a question of Windrow's own |
//! | [`success`] | reports of success, and results |
//! | [`reply`] | the server's whole answer to a command of Windrow's own |
//! | [`target`] | server and user: connection URLs |
//! | [`connect`] | connects to a server and logs in |
//!
//! Flags, scrambles and encodings of numbers are those of the crate `mysql_common`. Its structs for
//! the login are not used: they lose the order of attributes and fix the collation.

pub mod answer;
pub mod auth;
pub mod command;
pub mod connect;
pub mod error_packet;
pub mod handshake;
pub mod lane;
pub mod packet;
pub mod query;
pub mod reply;
mod server_tls;
pub mod success;
pub mod target;
pub mod write_answer;

pub use answer::{Answer, PreparedStatement};
pub use auth::{Credential, Verifier};
pub use connect::{ConnectError, ServerLogin};
pub use error_packet::ErrorPacket;
pub use handshake::{Greeting, LoginRequest};
pub use lane::{LaneLogin, lane_question, lane_variables};
pub use mysql_common::constants::{CapabilityFlags, MariadbCapabilities, StatusFlags};
pub use packet::{ForwardError, Head, Stream, Wire};
pub use reply::Reply;
pub use success::{Success, put_columns, put_result};
pub use target::Target;
pub use write_answer::{ResultPackets, Warning, WriteAnswer, WriteFailure};
