//! Writes ErrorResponse.

use bytes::{BufMut, BytesMut};
use windrow_core::Fault;

use super::answer::{message, text};
use super::message::HEADER;

/// Writes a fault: the server's own messages if there are some, otherwise an ErrorResponse made
/// from it.
pub(crate) fn fault(out: &mut BytesMut, fault: &Fault) {
    match fault.verbatim() {
        Some(messages) => {
            let words = messages.strip_prefix(Fault::BIND_COMPLETE);
            out.put_slice(words.unwrap_or(messages));
        }
        None => made(out, "ERROR", fault),
    }
}

/// Writes the fault of a call that was bound to a named portal: the server's messages about its
/// values contain the name.
pub(crate) fn of_portal(out: &mut BytesMut, said: &Fault, portal: Option<&[u8]>) {
    const UNNAMED: &[u8] = b"\0Wunnamed portal parameter";
    let place = said.verbatim().zip(portal).and_then(|(messages, portal)| {
        // Values are refused before any other message.
        let body = messages.strip_prefix(b"E")?.get(4..)?;
        Some((body, memchr::memmem::find(body, UNNAMED)?, portal))
    });
    let Some((body, place, portal)) = place else {
        return fault(out, said);
    };
    message(out, b'E', |out| {
        out.put_slice(body.get(..place).unwrap_or_default());
        out.put_slice(b"\0Wportal \"");
        out.put_slice(portal);
        out.put_slice(b"\" parameter");
        out.put_slice(body.get(place + UNNAMED.len()..).unwrap_or_default());
    });
}

/// Writes the fault of a statement that comes after this many characters of a longer text: the
/// server's position is converted to one in that text.
pub(crate) fn moved(out: &mut BytesMut, said: &Fault, skipped: u32) {
    let error = said.verbatim().and_then(|messages| {
        let place = error(messages)?;
        Some(messages.split_at(place))
    });
    let Some((before, error)) = error else {
        return fault(out, said);
    };
    out.put_slice(before.strip_prefix(Fault::BIND_COMPLETE).unwrap_or(before));
    message(out, b'E', |out| {
        let fields = error.get(HEADER..).unwrap_or_default().split(|b| *b == 0);
        for field in fields.take_while(|field| !field.is_empty()) {
            let position = field.strip_prefix(b"P").map(String::from_utf8_lossy);
            match position.and_then(|digits| digits.parse::<u32>().ok()) {
                Some(position) => {
                    let moved = position.saturating_add(skipped);
                    text(out, format!("P{moved}").as_bytes());
                }
                None => text(out, field),
            }
        }
        out.put_u8(0);
    });
}

/// Writes the fault of a statement that was answered before it was executed. `said`: the part of
/// its text that the client gets.
pub(crate) fn late(out: &mut BytesMut, late: &Fault, said: &[u8]) {
    let place = late.verbatim().and_then(|messages| {
        let place = error(messages)?;
        messages.get(place + HEADER..)
    });
    match place {
        Some(body) => with_text(out, body, said, false),
        None => fault(out, late),
    }
}

/// Writes an ErrorResponse about another text than the one that the client has just sent, so the
/// position becomes one in an internal query. `body`: of the server's error; `has_place`: true if
/// the server's position is one in this text.
pub(crate) fn with_text(out: &mut BytesMut, body: &[u8], said: &[u8], has_place: bool) {
    message(out, b'E', |out| {
        let mut fields = body
            .split(|byte| *byte == 0)
            .filter(|field| !field.is_empty());
        let has_internal = fields.clone().any(|field| field.starts_with(b"q"));
        let mut context = Vec::new();
        for field in fields.by_ref() {
            match field.split_first() {
                Some((b'P', place)) if has_place && !has_internal => {
                    out.put_u8(b'p');
                    text(out, place);
                }
                Some((b'P', _)) => {}
                Some((b'W', said)) => {
                    context.extend_from_slice(said);
                    context.push(b'\n');
                }
                _ => text(out, field),
            }
        }
        let said = String::from_utf8_lossy(said);
        if !has_internal {
            out.put_u8(b'q');
            text(out, said.as_bytes());
        }
        context.extend_from_slice(b"windrow.transactions: a statement that was answered before: ");
        context.extend_from_slice(said.as_bytes());
        out.put_u8(b'W');
        text(out, &context);
        out.put_u8(0);
    });
}

/// Returns the offset of the ErrorResponse, which is the last of several messages.
fn error(messages: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some([tag, a, b, c, d]) = messages.get(at..at + HEADER) {
        if *tag == b'E' {
            return Some(at);
        }
        let length = u32::from_be_bytes([*a, *b, *c, *d]);
        at = at.saturating_add(1 + usize::try_from(length).ok()?);
    }
    None
}

/// Writes an error that ends the connection.
pub(crate) fn fatal(out: &mut BytesMut, fault: &Fault) {
    made(out, "FATAL", fault);
}

/// Writes PostgreSQL's notice about a truncated name.
pub(crate) fn cut_name(out: &mut BytesMut, whole: &str, cut: &str) {
    let words = format!("identifier \"{whole}\" will be truncated to \"{cut}\"");
    message(out, b'N', |out| {
        for (field, value) in [
            (b'S', "NOTICE"),
            (b'V', "NOTICE"),
            (b'C', "42622"),
            (b'M', &words),
        ] {
            out.put_u8(field);
            text(out, value.as_bytes());
        }
        out.put_u8(0);
    });
}

fn made(out: &mut BytesMut, severity: &str, fault: &Fault) {
    let fields = [
        (b'S', Some(severity)),
        (b'V', Some(severity)),
        (b'C', Some(&*fault.code)),
        (b'M', Some(&*fault.message)),
        (b'D', fault.detail()),
        (b'H', fault.hint()),
        (b't', fault.table()),
        (b'c', fault.column()),
        (b'n', fault.constraint()),
    ];
    message(out, b'E', |out| {
        for (field, value) in fields {
            if let Some(value) = value {
                out.put_u8(field);
                // A zero byte would end the field early.
                match value.contains('\0') {
                    true => text(out, value.replace('\0', " ").as_bytes()),
                    false => text(out, value.as_bytes()),
                }
            }
        }
        out.put_u8(0);
    });
}
