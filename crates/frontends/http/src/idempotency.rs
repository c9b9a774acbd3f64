//! The header `Idempotency-Key`: a request that is sent twice is executed once.

use http::header::HeaderName;
use http::request::Parts;
use http::{Method, StatusCode};
use windrow_core::{Fault, FaultClass};
use windrow_idempotency::{IdempotencyKey, KeyedRequest, Keys, Refused};

use crate::answers::Refusal;
use crate::app::App;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// True if a request has a key. Reads need none, so theirs is ignored.
pub(crate) fn is_asked_for(head: &Parts) -> bool {
    !is_read(head) && head.headers.contains_key(IDEMPOTENCY_KEY)
}

fn is_read(head: &Parts) -> bool {
    head.method == Method::GET || head.method == Method::HEAD
}

/// Begins a request with a key of its client or of the gateway; `None` without one.
///
/// # Errors
/// 400 for an invalid or repeated key, 409 if another request with this key is not answered yet,
/// 501 if the database cannot keep keys.
pub(crate) fn begin(app: &App, head: &Parts) -> Result<Option<KeyedRequest>, Refusal> {
    if !is_asked_for(head) {
        let keys = app.services.keys.as_ref().filter(|_| !is_read(head));
        return Ok(keys.and_then(Keys::begin_own));
    }
    let mut values = head.headers.get_all(IDEMPOTENCY_KEY).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(Fault::invalid("the header Idempotency-Key is given twice").into());
    };
    let key = IdempotencyKey::from_header(value.as_bytes())?;
    let keys = app.services.keys.as_ref().ok_or_else(unsupported)?;
    Ok(Some(keys.begin(key)?))
}

/// Returns the refusal of a key on an envelope, whose parts have their own.
pub(crate) fn on_an_envelope() -> Refusal {
    Fault::invalid(
        "the header Idempotency-Key goes with each part of an envelope, not with the envelope",
    )
    .into()
}

fn unsupported() -> Fault {
    Fault::new(
        FaultClass::Unsupported,
        "0A000",
        "this database has no transactions, in which an Idempotency-Key and what was done under it could change together; give each row a key of its own and insert it with on_conflict=ignore",
    )
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::UnderWay(fault) => Self::new(StatusCode::CONFLICT, fault),
            Refused::Mismatch(fault) => Self::new(StatusCode::UNPROCESSABLE_ENTITY, fault),
            Refused::Failed(fault) => fault.into(),
        }
    }
}
