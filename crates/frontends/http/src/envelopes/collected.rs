//! The answers of an envelope's parts, kept until the last one has arrived: the number of failures
//! comes before the first.

use http::header::RETRY_AFTER;
use http::{Method, StatusCode};
use windrow_core::Fault;
use windrow_envelopes::{AnswerHead, PartKind};

use super::body::{EncodedPart, EnvelopeBody};
use crate::answers::{self, Answer, AnswerBody, Refusal, json};
use crate::bodies::charge::Charge;

/// The memory of a part besides its body and a long answer, charged before any part runs, so that
/// every write can be answered.
const PART_BYTES: usize = 1024;
/// The length of an answer up to which that memory suffices.
const SHORT_ANSWER_BYTES: usize = 512;

/// The answer of one part, and the properties of the part that are needed to write it.
pub(super) struct PartAnswer {
    /// The index of the part, from 0.
    pub(super) index: usize,
    pub(super) kind: PartKind,
    pub(super) id: Option<Box<[u8]>>,
    pub(super) method: Method,
    pub(super) answer: Answer,
}

/// All answers so far, and their memory.
pub(super) struct CollectedAnswers {
    dashed: Box<str>,
    answers: Vec<Option<EncodedPart>>,
    errors: u64,
    charge: Charge,
}

impl CollectedAnswers {
    /// Allocates space for this number of answers.
    ///
    /// # Errors
    /// 429 if the budget has no memory for them.
    pub(super) fn new(dashed: &str, parts: usize, mut charge: Charge) -> Result<Self, Refusal> {
        charge.add(parts.saturating_mul(PART_BYTES))?;
        let mut answers = Vec::new();
        answers.resize_with(parts, || None);
        Ok(Self {
            dashed: dashed.into(),
            answers,
            errors: 0,
            charge,
        })
    }

    /// Keeps the answer of a part.
    pub(super) fn keep(&mut self, mut part: PartAnswer) {
        if let AnswerBody::Whole(bytes) = part.answer.body() {
            let length = bytes.len();
            if length > SHORT_ANSWER_BYTES && self.charge.add(length).is_err() {
                part.answer = without_room(&part, length);
            }
        }
        let status = part.answer.status();
        self.errors += u64::from(status.is_client_error() || status.is_server_error());
        let lead = self.lead(&part);
        let body = match part.method {
            Method::HEAD => AnswerBody::Whole(bytes::Bytes::new()),
            _ => part.answer.into_body(),
        };
        if let Some(slot) = self.answers.get_mut(part.index) {
            *slot = Some(EncodedPart { lead, body });
        }
    }

    /// Counts the answers with a status of 400 or more.
    pub(super) fn errors(&self) -> u64 {
        self.errors
    }

    pub(super) fn into_body(self) -> EnvelopeBody {
        let answers = self.answers.into_iter().flatten().collect();
        EnvelopeBody::new(answers, &self.dashed, self.charge.into_permit())
    }

    /// Returns the text of a part before the body of its answer.
    fn lead(&self, part: &PartAnswer) -> Box<[u8]> {
        let length = match part.answer.body() {
            AnswerBody::Whole(bytes) if part.method != Method::HEAD => Some(bytes.len()),
            _ => None,
        };
        let head = AnswerHead {
            kind: part.kind,
            id: part.id.as_deref(),
            status: part.answer.status(),
            headers: part.answer.headers(),
            length,
        };
        head.encode(&self.dashed)
    }
}

/// Returns the answer to a part whose own answer is too long for the remaining memory. A read can
/// be repeated; a write was executed, so its status stays.
fn without_room(part: &PartAnswer, length: usize) -> Answer {
    let message = format!(
        "the answer of this part has {length} bytes, and the memory budget (limits.memory) has no room for it in this envelope"
    );
    let status = part.answer.status();
    if !status.is_success() || part.method == Method::GET || part.method == Method::HEAD {
        let fault = Fault::new(windrow_core::FaultClass::Overloaded, "53200", message);
        let mut answer = Refusal::from(fault).into_answer();
        if !status.is_success() {
            // At least the status says what was wrong.
            *answer.status_mut() = status;
            answer.headers_mut().remove(RETRY_AFTER);
        }
        return answer;
    }
    let mut body = b"{\"omitted\":".to_vec();
    json::string(&mut body, &message);
    body.push(b'}');
    answers::of_json(status.max(StatusCode::OK), body)
}
