//! The kind of a body, by its headers.

use http::header::{CONTENT_ENCODING, CONTENT_TYPE, TRANSFER_ENCODING};
use http::{HeaderMap, StatusCode};

use crate::answers::Refusal;

/// The kinds of bodies that contain rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyKind {
    /// An object or an array.
    Json,
    /// One object in each line.
    Ndjson,
    /// Lines of fields after a header line.
    Csv,
}

const ACCEPTED: &str =
    "application/json, application/x-ndjson (also application/ndjson, application/jsonl), text/csv";

/// The content type of a page's form, and of `curl -d`.
const FORM: &str = "application/x-www-form-urlencoded";

/// Returns the kind, from `Content-Type`. Without one, as in parts of an envelope, the kind is
/// JSON.
pub(crate) fn of(headers: &HeaderMap) -> Result<BodyKind, Refusal> {
    check_encoding(headers)?;
    let Some(value) = headers.get(CONTENT_TYPE) else {
        return Ok(BodyKind::Json);
    };
    // The common case first, without parsing parameters.
    if value.as_bytes() == b"application/json" {
        return Ok(BodyKind::Json);
    }
    let text = String::from_utf8_lossy(value.as_bytes());
    let mut parts = text.split(';');
    let kind = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
    for parameter in parts {
        check_charset(parameter)?;
    }
    match kind.as_str() {
        "application/json" => Ok(BodyKind::Json),
        FORM => Err(unsupported(format!(
            "the content type {FORM}, which curl sends with -d, is not accepted; use curl --json, or send one of {ACCEPTED}"
        ))),
        "application/x-ndjson" | "application/ndjson" | "application/jsonl" => Ok(BodyKind::Ndjson),
        "text/csv" => Ok(BodyKind::Csv),
        _ => Err(wrong_type(&kind)),
    }
}

/// The encodings that can be unpacked.
const ENCODINGS: [&[u8]; 3] = [b"identity", b"gzip", b"x-gzip"];

/// Refuses a body with an unknown encoding, or with several.
///
/// # Errors
/// 415 for such a body.
pub fn check_encoding(headers: &HeaderMap) -> Result<(), Refusal> {
    let mut named = headers.get_all(CONTENT_ENCODING).iter();
    let is_known = |v: &http::HeaderValue| {
        let known = |encoding: &&[u8]| v.as_bytes().eq_ignore_ascii_case(encoding);
        ENCODINGS.iter().any(known)
    };
    match (named.next(), named.next()) {
        (None, _) => Ok(()),
        (Some(encoding), None) if is_known(encoding) => Ok(()),
        _ => Err(unsupported(
            "this Content-Encoding is not known: pack the body once by gzip, or send it as it is (identity)"
                .to_owned(),
        )),
    }
}

/// Refuses a body with another transfer coding than chunks (RFC 9112, 6.1), which is not supported.
pub(crate) fn check_coding(headers: &HeaderMap) -> Result<(), Refusal> {
    let mut named = headers.get_all(TRANSFER_ENCODING).iter();
    let is_chunked = |v: &http::HeaderValue| v.as_bytes().eq_ignore_ascii_case(b"chunked");
    match (named.next(), named.next()) {
        (None, _) => Ok(()),
        (Some(coding), None) if is_chunked(coding) => Ok(()),
        _ => Err(Refusal::protocol(
            StatusCode::NOT_IMPLEMENTED,
            "this Transfer-Encoding is not known: send chunked alone; a body is packed by Content-Encoding: gzip",
        )),
    }
}

/// Returns the refusal of a content type.
pub(crate) fn wrong_type(kind: &str) -> Refusal {
    unsupported(format!(
        "the content type {kind:?} is not accepted; send one of {ACCEPTED}"
    ))
}

/// Returns the refusal of a body without a content type.
pub(crate) fn missing() -> Refusal {
    unsupported(format!(
        "the header Content-Type is missing; send one of {ACCEPTED}"
    ))
}

/// Checks that the body is JSON, for requests that accept nothing else.
///
/// # Errors
/// 415 for anything else.
pub fn only_json(headers: &HeaderMap) -> Result<(), Refusal> {
    match of(headers)? {
        BodyKind::Json => Ok(()),
        BodyKind::Ndjson | BodyKind::Csv => Err(unsupported(
            "only application/json is accepted here".to_owned(),
        )),
    }
}

fn check_charset(parameter: &str) -> Result<(), Refusal> {
    let Some((name, value)) = parameter.split_once('=') else {
        return Ok(());
    };
    let value = value.trim().trim_matches('"').to_ascii_lowercase();
    let known = matches!(value.as_str(), "utf-8" | "utf8" | "us-ascii");
    if name.trim().eq_ignore_ascii_case("charset") && !known {
        return Err(unsupported(format!(
            "the charset {value:?} is not accepted; send utf-8"
        )));
    }
    Ok(())
}

/// Returns a refusal with status 415.
pub(crate) fn unsupported(message: String) -> Refusal {
    Refusal::protocol(StatusCode::UNSUPPORTED_MEDIA_TYPE, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(value: &str) -> Result<BodyKind, StatusCode> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, value.parse().unwrap());
        of(&headers).map_err(|refusal| refusal.status())
    }

    #[test]
    fn names_have_no_case_and_parameters_are_read() {
        assert_eq!(of(&HeaderMap::new()).unwrap(), BodyKind::Json);
        assert_eq!(kind("Application/JSON; charset=UTF-8"), Ok(BodyKind::Json));
        assert_eq!(kind("application/jsonl"), Ok(BodyKind::Ndjson));
        assert_eq!(
            kind("text/csv; header=present; charset=\"utf-8\""),
            Ok(BodyKind::Csv)
        );
        let refused = Err(StatusCode::UNSUPPORTED_MEDIA_TYPE);
        assert_eq!(kind("application/x-www-form-urlencoded"), refused);
        assert_eq!(kind("application/json; charset=latin1"), refused);
        assert_eq!(kind("text/plain"), refused);
        assert_eq!(
            kind("multipart/form-data; boundary=x"),
            refused,
            "an envelope goes to paths of its own"
        );
    }

    #[test]
    fn gzip_is_the_only_packing() {
        let mut headers = HeaderMap::new();
        for known in ["gzip", "GZIP", "x-gzip", "identity"] {
            headers.insert(CONTENT_ENCODING, known.parse().unwrap());
            assert_eq!(of(&headers).unwrap(), BodyKind::Json, "{known}");
        }
        for unknown in ["br", "gzip, gzip", "zstd"] {
            headers.insert(CONTENT_ENCODING, unknown.parse().unwrap());
            let refusal = of(&headers).unwrap_err();
            assert!(refusal.fault().message.contains("gzip"), "{unknown}");
        }
        headers.insert(CONTENT_ENCODING, "gzip".parse().unwrap());
        headers.append(CONTENT_ENCODING, "gzip".parse().unwrap());
        assert!(of(&headers).is_err(), "packed twice");
    }
}
