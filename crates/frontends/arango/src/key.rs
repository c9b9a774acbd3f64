//! Keys of documents.

use std::time::{SystemTime, UNIX_EPOCH};

use percent_encoding::percent_decode_str;

use crate::document::Document;
use crate::error::{Error, HANDLE_BAD, KEY_BAD, KEY_MISSING, bad};
use crate::request::DocumentRequest;

/// Bytes of the longest key, as in ArangoDB.
const MAX_KEY_BYTES: usize = 254;
/// Characters that a key may have besides letters and digits, as in ArangoDB.
const OTHERS: &[u8] = b"_-:.@()+,=;$!*'%";

/// Checks the key of a new document.
pub(crate) fn check(key: &str) -> Result<(), Error> {
    let known = |b: &u8| b.is_ascii_alphanumeric() || OTHERS.contains(b);
    if (1..=MAX_KEY_BYTES).contains(&key.len()) && key.as_bytes().iter().all(known) {
        return Ok(());
    }
    Err(bad(
        KEY_BAD,
        format!(
            "illegal document key: it must have 1 to {MAX_KEY_BYTES} bytes, letters, digits and {}",
            String::from_utf8_lossy(OTHERS)
        ),
    ))
}

/// Returns the key in a path.
pub(crate) fn of_path(raw: &str) -> Result<Box<str>, Error> {
    let key = percent_decode_str(raw).decode_utf8();
    key.map(|key| key.into_owned().into()).map_err(|_| {
        bad(
            KEY_BAD,
            format!("{raw:?} is not UTF-8 once its percent signs are read"),
        )
    })
}

/// Returns the key by which a document is found: its `_key`, or the key in its `_id`.
pub(crate) fn of_document(
    request: &DocumentRequest<'_>,
    document: &mut Document,
) -> Result<Box<str>, Error> {
    match (document.key.take(), document.id.take()) {
        (Some(key), _) => Ok(key),
        (None, Some(id)) => of_handle(request, &id),
        (None, None) => Err(bad(KEY_MISSING, "the document has no _key")),
    }
}

/// Returns the key in `COLLECTION/KEY` or in `KEY`.
pub(crate) fn of_handle(request: &DocumentRequest<'_>, handle: &str) -> Result<Box<str>, Error> {
    match handle.split_once('/') {
        None => Ok(handle.into()),
        Some((collection, key)) if collection == request.collection.name => Ok(key.into()),
        Some(_) => Err(bad(
            HANDLE_BAD,
            format!(
                "illegal document identifier: {handle:?} is not in the collection {:?}",
                request.collection.name
            ),
        )),
    }
}

/// Generates a unique key: a UUID of version 7 (RFC 9562, 5.7). It begins with the time, so that
/// new rows are near each other in an index, and it fits text columns and UUID columns.
pub(crate) fn generate() -> Box<str> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let millis = now.map_or(0, |now| now.as_millis()) & 0xffff_ffff_ffff;
    format_v7(millis, rand::random())
}

fn format_v7(millis: u128, random: u128) -> Box<str> {
    let low = random & 0x0fff_3fff_ffff_ffff_ffff | 0x7000_8000_0000_0000_0000;
    let hex = format!("{:032x}", millis << 80 | low);
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    [
        part(0, 8),
        part(8, 12),
        part(12, 16),
        part(16, 20),
        part(20, 32),
    ]
    .join("-")
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_keys_are_uuids_in_the_order_of_time() {
        let a = format_v7(0x0190_1234_5678, u128::MAX);
        assert_eq!(&*a, "01901234-5678-7fff-bfff-ffffffffffff");
        assert_eq!(&*format_v7(1, 0), "00000000-0001-7000-8000-000000000000");
        assert!(format_v7(1, u128::MAX) < format_v7(2, 0));
        assert_ne!(generate(), generate());
        check(&generate()).unwrap();
    }

    #[test]
    fn keys_are_those_of_arangodb() {
        for good in ["a", "A-1_x:.@()+,=;$!*'%", &"x".repeat(254)] {
            check(good).unwrap();
        }
        for bad in ["", "a/b", "a b", "ä", &"x".repeat(255)] {
            let error = check(bad).unwrap_err();
            assert_eq!(error.number(), KEY_BAD, "{bad}");
        }
        assert_eq!(&*of_path("a%2Cb,%20").unwrap(), "a,b, ");
        assert!(of_path("%FF").is_err());
    }
}
