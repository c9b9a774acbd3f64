//! Messages of a client (PostgreSQL documentation, "Message Formats"). Everything is appended to a
//! buffer.

/// Version 3.0 of the protocol.
pub const PROTOCOL: u32 = 196_608;

/// The code that stands for a version in a CancelRequest.
const CANCEL: u32 = 80_877_102;

/// A message of any kind: the tag, the length, and what `body` appends.
pub fn message(out: &mut Vec<u8>, tag: u8, body: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    bare(out, body);
}

/// A message without a tag: the first one of a connection.
pub fn bare(out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    body(out);
    let length = u32::try_from(out.len() - start).unwrap_or(u32::MAX);
    if let Some(place) = out.get_mut(start..start + 4) {
        place.copy_from_slice(&length.to_be_bytes());
    }
}

/// StartupMessage.
pub fn startup(out: &mut Vec<u8>, parameters: &[(&str, &str)]) {
    bare(out, |body| {
        body.extend_from_slice(&PROTOCOL.to_be_bytes());
        for (name, value) in parameters {
            text(body, name);
            text(body, value);
        }
        body.push(0);
    });
}

/// CancelRequest with the body of a BackendKeyData.
pub fn cancel(out: &mut Vec<u8>, key: &[u8]) {
    bare(out, |body| {
        body.extend_from_slice(&CANCEL.to_be_bytes());
        body.extend_from_slice(key);
    });
}

/// Query.
pub fn query(out: &mut Vec<u8>, sql: &str) {
    message(out, b'Q', |body| text(body, sql));
}

/// Parse; `types`: the parameters' types, 0 for the server to decide.
pub fn parse(out: &mut Vec<u8>, name: &str, sql: &str, types: &[u32]) {
    message(out, b'P', |body| {
        text(body, name);
        text(body, sql);
        count(body, types.len());
        for oid in types {
            body.extend_from_slice(&oid.to_be_bytes());
        }
    });
}

/// Bind; formats: 1 is binary, none is all text, one is for all.
pub fn bind<V: AsRef<[u8]>>(
    out: &mut Vec<u8>,
    (portal, statement): (&str, &str),
    formats: &[u16],
    values: &[Option<V>],
    results: &[u16],
) {
    message(out, b'B', |body| {
        text(body, portal);
        text(body, statement);
        list(body, formats);
        count(body, values.len());
        for value in values {
            match value {
                None => body.extend_from_slice(&[255; 4]),
                Some(value) => {
                    let value = value.as_ref();
                    let length = u32::try_from(value.len()).unwrap_or(u32::MAX);
                    body.extend_from_slice(&length.to_be_bytes());
                    body.extend_from_slice(value);
                }
            }
        }
        list(body, results);
    });
}

/// Describe; `kind`: `S` for a statement, `P` for a portal.
pub fn describe(out: &mut Vec<u8>, kind: u8, name: &str) {
    named(out, b'D', kind, name);
}

/// Close; `kind` as for [`describe`].
pub fn close(out: &mut Vec<u8>, kind: u8, name: &str) {
    named(out, b'C', kind, name);
}

/// Execute; at most so many rows, 0 for all.
pub fn execute(out: &mut Vec<u8>, portal: &str, rows: u32) {
    message(out, b'E', |body| {
        text(body, portal);
        body.extend_from_slice(&rows.to_be_bytes());
    });
}

/// Flush.
pub fn flush(out: &mut Vec<u8>) {
    message(out, b'H', |_| ());
}

/// Sync.
pub fn sync(out: &mut Vec<u8>) {
    message(out, b'S', |_| ());
}

/// Terminate.
pub fn terminate(out: &mut Vec<u8>) {
    message(out, b'X', |_| ());
}

/// CopyData.
pub fn copy_data(out: &mut Vec<u8>, data: &[u8]) {
    message(out, b'd', |body| body.extend_from_slice(data));
}

/// CopyDone.
pub fn copy_done(out: &mut Vec<u8>) {
    message(out, b'c', |_| ());
}

/// CopyFail.
pub fn copy_fail(out: &mut Vec<u8>, why: &str) {
    message(out, b'f', |body| text(body, why));
}

fn named(out: &mut Vec<u8>, tag: u8, kind: u8, name: &str) {
    message(out, tag, |body| {
        body.push(kind);
        text(body, name);
    });
}

fn text(body: &mut Vec<u8>, text: &str) {
    body.extend_from_slice(text.as_bytes());
    body.push(0);
}

fn count(body: &mut Vec<u8>, n: usize) {
    body.extend_from_slice(&u16::try_from(n).unwrap_or(u16::MAX).to_be_bytes());
}

fn list(body: &mut Vec<u8>, formats: &[u16]) {
    count(body, formats.len());
    for format in formats {
        body.extend_from_slice(&format.to_be_bytes());
    }
}
