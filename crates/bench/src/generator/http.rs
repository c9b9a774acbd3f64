//! Requests over HTTP.

/// Where single readings go.
pub const ROWS: &str = "POST /v1/tables/readings/rows";

/// Digits of a body's length.
const DIGITS: usize = 8;

/// Appends a request. `target`: the method too, such as [`ROWS`]. `headers` have CR LF behind each.
pub fn request(
    out: &mut Vec<u8>,
    target: &str,
    content_type: &str,
    headers: &str,
    body: impl FnOnce(&mut Vec<u8>),
) {
    for part in [
        target,
        " HTTP/1.1\r\nHost: localhost\r\nContent-Type: ",
        content_type,
        "\r\n",
        headers,
        "Content-Length: ",
    ] {
        out.extend_from_slice(part.as_bytes());
    }
    let at = out.len();
    out.extend_from_slice(&[b'0'; DIGITS]);
    out.extend_from_slice(b"\r\n\r\n");
    let begin = out.len();
    body(out);
    let length = format!("{:0width$}", out.len() - begin, width = DIGITS);
    if let Some(place) = out.get_mut(at..at + DIGITS) {
        place.copy_from_slice(length.as_bytes().get(..DIGITS).unwrap_or(&[b'9'; DIGITS]));
    }
}
