//! Multipart envelopes of whole HTTP requests: ArangoDB's batches, and those of OData and Google.
//!
//! The crate reads the requests out of an envelope and encodes the heads of the answers. The HTTP
//! frontend executes the requests.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`Boundary`] | the line between the parts |
//! | [`split`], [`EnvelopePart`] | splits an envelope into parts and checks all of them |
//! | [`read_request`] | parses the text of a part as a request |
//! | [`AnswerHead`] | the lines of a part's answer before its body |
//! | [`Malformed`] | an error with its HTTP status |

mod answer;
mod boundary;
mod malformed;
mod multipart;
mod request;
#[cfg(any(test, fuzzing))]
pub mod trial;

pub use answer::{AnswerHead, ERRORS};
pub use boundary::{Boundary, is_envelope};
pub use malformed::Malformed;
pub use multipart::{EnvelopePart, PartKind, split};
pub use request::read as read_request;
