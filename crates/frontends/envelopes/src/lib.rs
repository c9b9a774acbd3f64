//! Multipart envelopes of whole HTTP requests: ArangoDB's batches, and those of OData and Google.
//!
//! Only the format is here: an envelope's text to its requests, and the head of each answer. Who
//! executes them is not known.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`Boundary`] | what separates the parts |
//! | [`split`], [`Piece`] | an envelope to its parts, all of it checked before any is executed |
//! | [`read_request`] | the text of a part to a request |
//! | [`AnswerHead`] | what stands before the body of a part's answer |
//! | [`Malformed`] | what is wrong, and the status that says so |

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
pub use multipart::{Kind, Piece, split};
pub use request::read as read_request;
