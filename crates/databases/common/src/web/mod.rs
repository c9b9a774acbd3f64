//! HTTP/1.1 for the sinks whose databases speak it: one keep-alive connection an executor, answers
//! of bounded size, time limits, and an exact account of what may have been received.
//!
//! | room | what it holds |
//! | --- | --- |
//! | `target` | what a URL names: where, who, which parameters |
//! | `secure` | TLS |
//! | `client` | one connection, opened when it is needed: a request out, an answer in, or the reason why there is none |
//! | `body` | whole bodies out, bounded bodies in |
//! | `greeting` | connections that show a sign of life within their time |
//! | `refusal` | the error of a request, and how far it reaches |
//! | `json` | JSON texts, written |
//! | `batch` | a batch without transactions: one write a unit, and the steps in which the writes go out |

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
