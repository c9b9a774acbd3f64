//! What the server refuses, as its client is told: in the server's own messages.

use windrow_core::Fault;

/// Adds the server's messages to a fault: what came before the error, and the error itself.
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
