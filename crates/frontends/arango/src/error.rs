//! Errors in ArangoDB's form, with its numbers (`lib/Basics/errors.dat` of its source).

use http::StatusCode;
use windrow_core::{Fault, FaultClass};
use windrow_http::extension::object::RowError;
use windrow_http::extension::{PROTOCOL, Refusal, WholeAnswer, json, whole_json};

/// `ERROR_NOT_IMPLEMENTED`
pub(crate) const NOT_IMPLEMENTED: u16 = 9;
const FORBIDDEN: u16 = 11;
const INTERNAL: u16 = 4;
const CORRUPTED_JSON: u16 = 600;
/// `ERROR_ARANGO_CONFLICT`
pub(crate) const CONFLICT: u16 = 1200;
/// `ERROR_ARANGO_DOCUMENT_NOT_FOUND`
pub(crate) const NOT_FOUND: u16 = 1202;
const COLLECTION_NOT_FOUND: u16 = 1203;
/// `ERROR_ARANGO_COLLECTION_PARAMETER_MISSING`
pub(crate) const COLLECTION_MISSING: u16 = 1204;
/// `ERROR_ARANGO_DOCUMENT_HANDLE_BAD`
pub(crate) const HANDLE_BAD: u16 = 1205;
const ILLEGAL_NAME: u16 = 1208;
const UNIQUE: u16 = 1210;
const TOO_LARGE: u16 = 1216;
/// `ERROR_ARANGO_DOCUMENT_KEY_BAD`
pub(crate) const KEY_BAD: u16 = 1221;
/// `ERROR_ARANGO_DOCUMENT_KEY_MISSING`
pub(crate) const KEY_MISSING: u16 = 1226;
/// `ERROR_ARANGO_DOCUMENT_TYPE_INVALID`
pub(crate) const TYPE_INVALID: u16 = 1227;
/// `ERROR_VALIDATION_FAILED`
const VALIDATION: u16 = 1620;
/// `ERROR_QUEUE_FULL`
const QUEUE_FULL: u16 = 21003;

/// Why a request about documents is refused.
#[derive(Debug)]
pub(crate) struct Error {
    refusal: Refusal,
    /// ArangoDB's error number; `None` to derive it from the fault's class.
    number: Option<u16>,
}

impl Error {
    fn numbered(refusal: Refusal, number: u16) -> Self {
        Self {
            refusal,
            number: Some(number),
        }
    }

    pub(crate) fn fault(&self) -> &Fault {
        self.refusal.fault()
    }

    /// Returns ArangoDB's error number.
    pub(crate) fn number(&self) -> u16 {
        self.number
            .unwrap_or_else(|| number_of(self.fault(), self.refusal.status()))
    }

    /// Returns the HTTP status. It differs from the HTTP API in two cases: 400 for documents that a
    /// schema refuses, and 409 for conflicts after which the client may try again.
    pub(crate) fn status(&self) -> StatusCode {
        match (self.refusal.status(), self.fault().class) {
            (StatusCode::UNPROCESSABLE_ENTITY, _) => StatusCode::BAD_REQUEST,
            (_, FaultClass::Conflict) => StatusCode::CONFLICT,
            (status, _) => status,
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self {
            refusal,
            number: None,
        }
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        Refusal::from(fault).into()
    }
}

impl From<RowError> for Error {
    fn from(error: RowError) -> Self {
        Refusal::from(error).into()
    }
}

/// Returns the answer `{"error":true,"code":404,"errorNum":1202,"errorMessage":..,"sqlState":..}`:
/// ArangoDB's four fields, and the SQLSTATE of the HTTP API.
pub(crate) fn refuse(error: &Error) -> WholeAnswer {
    let status = error.status();
    let mut body = Vec::with_capacity(256);
    body.extend_from_slice(b"{\"error\":true,\"code\":");
    json::number(&mut body, u64::from(status.as_u16()));
    fields(&mut body, error);
    body.push(b'}');
    let mut answer = whole_json(status, body);
    error.refusal.add_headers(&mut answer);
    answer
}

/// Writes an error as an element of an array of results, which has no status of its own.
pub(crate) fn element(out: &mut Vec<u8>, error: &Error) {
    out.extend_from_slice(b"{\"error\":true");
    fields(out, error);
    out.push(b'}');
}

fn fields(out: &mut Vec<u8>, error: &Error) {
    let fault = error.fault();
    json::field(out, "errorNum");
    json::number(out, u64::from(error.number()));
    json::field(out, "errorMessage");
    match fault.detail() {
        Some(detail) => json::string(out, &format!("{} ({detail})", fault.message)),
        None => json::string(out, &fault.message),
    }
    json::field(out, "sqlState");
    json::string(out, &fault.code);
    if let Some(constraint) = fault.constraint() {
        json::field(out, "constraint");
        json::string(out, constraint);
    }
}

fn number_of(fault: &Fault, status: StatusCode) -> u16 {
    match fault.class {
        FaultClass::Invalid if fault.code == "22P02" => CORRUPTED_JSON,
        FaultClass::Invalid if fault.code == "42602" => ILLEGAL_NAME,
        FaultClass::Invalid if fault.code == PROTOCOL => status.as_u16(),
        FaultClass::Invalid => StatusCode::BAD_REQUEST.as_u16(),
        FaultClass::Unique => UNIQUE,
        FaultClass::NoTable => COLLECTION_NOT_FOUND,
        FaultClass::Value
        | FaultClass::NotNull
        | FaultClass::Check
        | FaultClass::NoColumn
        | FaultClass::ForeignKey => VALIDATION,
        FaultClass::Denied => FORBIDDEN,
        FaultClass::TooLarge => TOO_LARGE,
        FaultClass::Overloaded => QUEUE_FULL,
        FaultClass::Conflict => CONFLICT,
        FaultClass::Unavailable | FaultClass::Cancelled => status.as_u16(),
        FaultClass::Unknown => StatusCode::GATEWAY_TIMEOUT.as_u16(),
        FaultClass::Unsupported => NOT_IMPLEMENTED,
        FaultClass::Other => INTERNAL,
    }
}

/// Returns the error for a key that no document has.
pub(crate) fn not_found(key: &str) -> Error {
    let fault = Fault::new(
        FaultClass::Other,
        "02000",
        format!("document not found: no row has the _key {key:?}"),
    );
    Error::numbered(Refusal::new(StatusCode::NOT_FOUND, fault), NOT_FOUND)
}

/// Returns an error if no row had the key.
pub(crate) fn check_found(key: &str, rows: u64) -> Result<(), Error> {
    if rows == 0 {
        return Err(not_found(key));
    }
    Ok(())
}

/// Returns an error for an invalid request, with ArangoDB's number.
pub(crate) fn bad(number: u16, message: impl Into<Box<str>>) -> Error {
    Error::numbered(Fault::invalid(message).into(), number)
}

/// Returns an error for an invalid request for which ArangoDB has no number of its own.
pub(crate) fn invalid(message: impl Into<Box<str>>) -> Error {
    Fault::invalid(message).into()
}

/// Returns an error for a feature of ArangoDB that other databases may lack.
pub(crate) fn unsupported(message: impl Into<Box<str>>) -> Error {
    let fault = Fault::new(FaultClass::Unsupported, "0A000", message);
    let refusal = Refusal::new(StatusCode::NOT_IMPLEMENTED, fault);
    Error::numbered(refusal, NOT_IMPLEMENTED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(class: FaultClass) -> (u16, u16) {
        let error = Error::from(Fault::new(class, "00000", "x"));
        (error.status().as_u16(), error.number())
    }

    #[test]
    fn classes_have_the_numbers_that_clients_know() {
        for (class, told) in [
            (FaultClass::Unique, (409, 1210)),
            (FaultClass::NoTable, (404, 1203)),
            (FaultClass::NotNull, (400, 1620)),
            (FaultClass::Conflict, (409, 1200)),
            (FaultClass::Overloaded, (429, 21003)),
            (FaultClass::Unknown, (504, 504)),
        ] {
            assert_eq!(of(class), told, "{class:?}");
        }
        let lost = Refusal::protocol(StatusCode::METHOD_NOT_ALLOWED, "x");
        assert_eq!(Error::from(lost).number(), 405);
        assert_eq!(not_found("k").number(), 1202);
    }
}
