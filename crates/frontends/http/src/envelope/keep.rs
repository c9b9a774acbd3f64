//! The answers of an envelope's parts, kept until the last one is there: how many of them failed is
//! told before the first.

use http::header::{CONTENT_LENGTH, RETRY_AFTER};
use http::{Method, StatusCode};
use windrow_core::Fault;

use super::multipart::Kind;
use super::parcel::{Packed, Parcel};
use crate::answer::{self, Answer, AnswerBody, Refusal, json};
use crate::body::charge::Charge;

/// Memory of a part besides its body and a long answer, charged before any part runs: so what a
/// write is told always has room.
const PART: usize = 1024;
/// An answer up to this long is covered by that.
const SHORT: usize = 512;

/// What a part was told.
pub(super) struct Told {
    /// Counted from 0.
    pub(super) place: usize,
    pub(super) kind: Kind,
    pub(super) id: Option<Box<[u8]>>,
    pub(super) method: Method,
    pub(super) answer: Answer,
}

/// All answers so far, and the memory that they take.
pub(super) struct Keeper {
    dashed: Box<str>,
    answers: Vec<Option<Packed>>,
    errors: u64,
    charge: Charge,
}

impl Keeper {
    /// Room for so many answers.
    ///
    /// # Errors
    /// 429 where the budget has no room for them.
    pub(super) fn new(dashed: &str, parts: usize, mut charge: Charge) -> Result<Self, Refusal> {
        charge.add(parts.saturating_mul(PART))?;
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
    pub(super) fn keep(&mut self, mut told: Told) {
        if let AnswerBody::Whole(bytes) = told.answer.body() {
            let length = bytes.len();
            if length > SHORT && self.charge.add(length).is_err() {
                told.answer = without_room(&told, length);
            }
        }
        let status = told.answer.status();
        self.errors += u64::from(status.is_client_error() || status.is_server_error());
        let lead = self.lead(&told);
        let body = match told.method {
            Method::HEAD => AnswerBody::Whole(bytes::Bytes::new()),
            _ => told.answer.into_body(),
        };
        if let Some(slot) = self.answers.get_mut(told.place) {
            *slot = Some(Packed { lead, body });
        }
    }

    /// How many answers have a status of 400 or more.
    pub(super) fn errors(&self) -> u64 {
        self.errors
    }

    pub(super) fn into_parcel(self) -> Parcel {
        let answers = self.answers.into_iter().flatten().collect();
        Parcel::new(answers, &self.dashed, self.charge.into_permit())
    }

    /// All of a part that stands before the body of its answer.
    fn lead(&self, told: &Told) -> Box<[u8]> {
        let mut out = Vec::with_capacity(256);
        let mut put = |texts: &[&[u8]]| texts.iter().for_each(|text| out.extend_from_slice(text));
        put(&[self.dashed.as_bytes(), b"\r\nContent-Type: "]);
        put(&[match told.kind {
            Kind::Arango => b"application/x-arango-batchpart",
            Kind::Http | Kind::Changes => b"application/http\r\nContent-Transfer-Encoding: binary",
        }]);
        if let Some(id) = &told.id {
            let id: Vec<u8> = id
                .iter()
                .copied()
                .filter(|b| !b.is_ascii_control())
                .collect();
            put(&[b"\r\nContent-Id: "]);
            // Google's clients write their own between angle brackets, and look for the same with a
            // word before it.
            match (told.kind, id.strip_prefix(b"<")) {
                (Kind::Http | Kind::Changes, Some(rest)) if rest.ends_with(b">") => {
                    put(&[b"<response-", rest]);
                }
                _ => put(&[&id]),
            }
        }
        let status = told.answer.status();
        let reason = status.canonical_reason().unwrap_or("Unknown");
        put(&[
            b"\r\n\r\nHTTP/1.1 ",
            status.as_str().as_bytes(),
            b" ",
            reason.as_bytes(),
            b"\r\n",
        ]);
        for (name, value) in told.answer.headers() {
            put(&[name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"]);
        }
        if let (AnswerBody::Whole(bytes), true) = (told.answer.body(), told.method != Method::HEAD)
        {
            put(&[CONTENT_LENGTH.as_str().as_bytes(), b": "]);
            put(&[itoa::Buffer::new().format(bytes.len()).as_bytes(), b"\r\n"]);
        }
        put(&[b"\r\n"]);
        out.into()
    }
}

/// The answer to a part whose own answer is too long for the memory that is left. A read can be
/// asked again; a write has taken place, so its status stays.
fn without_room(told: &Told, length: usize) -> Answer {
    let message = format!(
        "the answer of this part has {length} bytes, and the memory budget (limits.memory) has no room for it in this envelope"
    );
    let status = told.answer.status();
    if !status.is_success() || told.method == Method::GET || told.method == Method::HEAD {
        let fault = Fault::new(windrow_core::FaultClass::Overloaded, "53200", message);
        let mut answer = Refusal::from(fault).into_answer();
        if !status.is_success() {
            // What was wrong is told by the status at least.
            *answer.status_mut() = status;
            answer.headers_mut().remove(RETRY_AFTER);
        }
        return answer;
    }
    let mut body = b"{\"omitted\":".to_vec();
    json::string(&mut body, &message);
    body.push(b'}');
    answer::of_json(status.max(StatusCode::OK), body)
}
