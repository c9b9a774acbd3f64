//! A stream of anything, cut into messages: nothing panics, and nothing is read twice or beyond what is there.
//!
//! The codec is private to its crate, so its sources are compiled in here.

#![no_main]
#![allow(dead_code, unreachable_pub)]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;

#[path = "../../src/codec/mod.rs"]
mod codec;

use codec::answer;
use codec::frame::{Front, HEADER, front};
use codec::message::Message;

const LONGEST: usize = 1 << 16;

fuzz_target!(|bytes: &[u8]| {
    let mut rest = bytes;
    while let Ok(Front::Whole { tag, total }) = front(rest, LONGEST) {
        assert!((HEADER..=rest.len()).contains(&total));
        let (message, behind) = rest.split_at(total);
        read(tag, &message[HEADER..]);
        rest = behind;
    }
});

fn read(tag: u8, body: &[u8]) {
    match Message::read(tag, body) {
        Message::Parse(parse) => {
            assert_eq!(parse.name.len() + parse.text.len() + 4 + parse.types.len(), body.len());
            assert_eq!(parse.type_oids().len() * 4, parse.types.len());
        }
        Message::Bind(bind) => {
            let arguments = windrow_core::statement::Arguments::of(bind.values, bind.count);
            assert_eq!(arguments.unwrap().iter().count(), bind.count);
            if let (Some(formats), Some(results)) = (bind.formats(), bind.results(2)) {
                let _ = formats.is_binary(0);
                let mut out = BytesMut::new();
                answer::fields(&mut out, Some(body), &results);
                assert_eq!(out.len(), HEADER + body.len());
            }
        }
        _ => {}
    }
}
