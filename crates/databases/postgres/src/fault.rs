//! Faults that carry the server's own error messages to the client.

use windrow_core::{Fault, FaultClass};

/// Adds the server's messages to a fault: those before the error, and the error itself.
pub(crate) fn with_error(fault: Fault, before: &[u8], error: &[u8]) -> Fault {
    if error.is_empty() {
        return fault;
    }
    let mut messages = Vec::with_capacity(before.len() + error.len() + 5);
    messages.extend_from_slice(before);
    messages.push(b'E');
    let length = u32::try_from(error.len() + 4).unwrap_or(u32::MAX);
    messages.extend_from_slice(&length.to_be_bytes());
    messages.extend_from_slice(error);
    fault.with_verbatim(messages)
}

/// Returns the fault of a statement whose columns have changed since they were reported to its
/// client, in the server's own words. The server reports this when values are bound.
pub(crate) fn other_columns() -> Fault {
    const WORDS: &str = "cached plan must not change result type";
    let body =
        format!("SERROR\0VERROR\0C0A000\0M{WORDS}\0Fplancache.c\0RRevalidateCachedQuery\0\0");
    let fault = Fault::new(FaultClass::Unsupported, "0A000", WORDS);
    with_error(fault, &[], body.as_bytes())
}
