//! HTTP/1.1 for databases that speak it: one keep-alive connection for each executor, answers of
//! limited size, timeouts, and exact knowledge of what may have been sent.
//!
//! | module | content |
//! | --- | --- |
//! | `target` | the parts of a URL: address, login, parameters |
//! | `secure` | TLS |
//! | `client` | one connection, opened when needed |
//! | `body` | complete bodies to send, bounded ones to receive |
//! | `greeting` | time limits for opening a connection |
//! | `refusal` | the error of a request, and the writes that it concerns |
//! | `json` | writing JSON texts |
//! | `batch` | a batch without transactions: units of one write each, and the steps in which they are sent |

mod batch;
mod body;
mod client;
mod greeting;
mod json;
mod refusal;
mod secure;
mod target;

pub use batch::{Batch, BoundWrite, Part, Stop};
pub use client::{Answer, Ask, Client, Loss, Origin, secret};
pub use greeting::{alive, connected};
pub use json::{is_json, push_text};
pub use refusal::{Refusal, Scope, of_status};
pub use target::Target;
