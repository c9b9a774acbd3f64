//! Messages of the extended protocol, appended to what is to be sent.

use bytes::BytesMut;
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;

/// Appends a statement and its execution. Its parameters are texts whose types the server chooses.
pub(super) fn push_statement(out: &mut BytesMut, sql: &str, parameters: &[&str]) {
    let appended = frontend::parse("", sql, [], out).is_ok()
        && frontend::bind(
            "",
            "",
            [],
            parameters,
            |value, out| {
                out.extend_from_slice(value.as_bytes());
                Ok(IsNull::No)
            },
            [],
            out,
        )
        .is_ok()
        && frontend::execute("", 0, out).is_ok();
    debug_assert!(appended, "neither names nor parameters hold a zero byte");
}
