//! Answers to clients: errors, results, values as JSON.

mod answer;
mod chunks;
pub(crate) mod expected;
pub mod json;
pub(crate) mod ledger;
mod live;
pub(crate) mod refusal;
mod report;

pub use answer::whole_json;
pub(crate) use answer::{
    Answer, AnswerBody, add_place, add_replayed, add_retry, chunked_json, of_json, typed, with_type,
};
pub(crate) use chunks::Chunks;
pub use live::Live;
pub(crate) use refusal::Refusal;
pub(crate) use report::Report;
