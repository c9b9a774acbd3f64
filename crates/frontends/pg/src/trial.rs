//! Checks for arbitrary bytes: `./test fuzz` generates them, and every test run uses those that
//! were kept.

use bytes::BytesMut;
use windrow_core::Arguments;

use crate::admit;
use crate::codec::answer;
use crate::codec::message::{Front, HEADER, Message, front};

/// The longest message, in bytes.
const LONGEST: usize = 1 << 16;

/// Checks that a stream of messages is split at their ends, however it is cut on its way, and that
/// none is read beyond its end.
pub fn frames(bytes: &[u8]) {
    let mut rest = bytes;
    while let Ok(Front::Whole { tag, total }) = front(rest, LONGEST) {
        assert!((HEADER..=rest.len()).contains(&total));
        let (message, behind) = rest.split_at(total);
        for part in [1, HEADER - 1, HEADER, total - 1] {
            let cut = message.get(..part.min(total - 1)).unwrap_or_default();
            let header = (cut.len() >= HEADER).then_some((tag, total));
            assert_eq!(front(cut, LONGEST), Ok(Front::Part { header }));
        }
        read(tag, message.get(HEADER..).unwrap_or_default());
        rest = behind;
    }
}

/// Checks that all of a message is read.
fn read(tag: u8, body: &[u8]) {
    match Message::read(tag, body) {
        Message::Query(text) => assert_eq!([text, b"\0"].concat(), body),
        Message::Parse(parse) => {
            let count = u16::try_from(parse.type_oids().len()).unwrap_or_default();
            let written = [
                parse.name,
                b"\0",
                parse.text,
                b"\0",
                &count.to_be_bytes(),
                parse.types,
            ];
            assert_eq!(written.concat(), body);
        }
        Message::Bind(bind) => {
            let arguments = Arguments::of(bind.values, bind.count);
            assert_eq!(arguments.map(|all| all.iter().count()), Some(bind.count));
            if let (Some(_), Some(results)) = (bind.formats(), bind.results(2)) {
                let mut out = BytesMut::new();
                answer::fields(&mut out, Some(body), &results);
                assert_eq!(out.len(), HEADER + body.len());
            }
        }
        _ => {}
    }
}

/// Checks that the first packet of a connection is the same when it is written again.
pub fn startup(bytes: &[u8]) {
    admit::startup(bytes);
}

#[cfg(test)]
#[path = "../../../../fuzz/corpus.rs"]
mod corpus;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_chance_has_found() {
        corpus::each("frames", frames);
        corpus::each("startup", startup);
    }
}
