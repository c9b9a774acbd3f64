//! Tests of the codec, also with arbitrary bytes.

use bytes::BytesMut;
use proptest::prelude::*;
use windrow_core::{Fault, Formats, Op};

use super::message::{Front, HEADER, Kind, Message, Violation, front};
use super::{answer, failure};

const LONGEST: usize = 1 << 20;

fn framed(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap();
    [&[tag], &length.to_be_bytes()[..], body].concat()
}

#[test]
fn a_message_is_found_whole_or_in_part() {
    let query = framed(b'Q', b"select 1\0");
    let total = query.len();
    assert_eq!(
        front(&query, LONGEST),
        Ok(Front::Whole { tag: b'Q', total })
    );
    let header = Some((b'Q', total));
    assert_eq!(
        front(&query[..total - 1], LONGEST),
        Ok(Front::Part { header })
    );
    assert_eq!(
        front(&query[..3], LONGEST),
        Ok(Front::Part { header: None })
    );
    assert_eq!(front(&[], LONGEST), Ok(Front::Part { header: None }));
}

#[test]
fn what_cannot_be_a_message_is_refused_by_its_first_bytes() {
    assert_eq!(front(b"p", LONGEST), Err(Violation::Tag(b'p')));
    assert_eq!(front(b"\0\0\0\0\x08", LONGEST), Err(Violation::Tag(0)));
    for (bytes, length) in [
        (b"Q\0\0\0\x03", 3),
        (b"Q\xff\xff\xff\xff", -1),
        (b"S\0\x01\0\0", 65536),
    ] {
        let violation = Violation::Length {
            tag: bytes[0],
            length,
        };
        assert_eq!(front(bytes, LONGEST), Err(violation));
        assert_eq!(violation.fault().code, "08P01");
    }
    let long = front(b"Q\x7f\xff\xff\xff", LONGEST).unwrap_err();
    assert!(long.to_string().contains("max_message"), "{long}");
    // COPY data is passed on in pieces.
    assert!(front(b"d\x7f\xff\xff\xff", LONGEST).is_ok());
}

#[test]
fn a_bind_is_read_to_its_last_byte() {
    let body = b"p\0s\0\0\x01\0\x01\0\x02\0\0\0\x01x\xff\xff\xff\xff\0\x02\0\0\0\x01";
    let Message::Bind(bind) = Message::read(b'B', body) else {
        panic!("not a Bind");
    };
    assert_eq!(
        (bind.portal, bind.statement, bind.count),
        (&b"p"[..], &b"s"[..], 2)
    );
    assert_eq!(bind.values, b"\0\0\0\x01x\xff\xff\xff\xff");
    assert_eq!(bind.formats(), Some(Formats::Binary));
    assert_eq!(bind.results(2), Some(Formats::Each([false, true].into())));
    assert_eq!(bind.results(3), None);
    for end in 0..body.len() {
        assert_eq!(
            Message::read(b'B', &body[..end]),
            Message::Other(b'B'),
            "{end}"
        );
    }
    let longer = [&body[..], b"x"].concat();
    assert_eq!(Message::read(b'B', &longer), Message::Other(b'B'));
}

#[test]
fn the_other_messages_are_read() {
    let Message::Parse(parse) = Message::read(b'P', b"s\0select $1\0\0\x01\0\0\0\x17") else {
        panic!("not a Parse");
    };
    assert_eq!((parse.name, parse.text), (&b"s"[..], &b"select $1"[..]));
    assert_eq!(parse.type_oids().collect::<Vec<_>>(), [23]);
    for (tag, body, message) in [
        (b'Q', &b"select 1\0"[..], Message::Query(b"select 1")),
        (b'D', b"Ss\0", Message::Describe(Kind::Statement, b"s")),
        (b'D', b"P\0", Message::Describe(Kind::Portal, b"")),
        (b'C', b"Pp\0", Message::Close(Kind::Portal, b"p")),
        (b'E', b"p\0\0\0\0\x05", Message::Execute(b"p", 5)),
        (b'S', b"", Message::Sync),
        (b'H', b"", Message::Flush),
        (b'X', b"", Message::Terminate),
        (b'D', b"Xs\0", Message::Other(b'D')),
        (b'Q', b"select 1", Message::Other(b'Q')),
        (b'Q', b"a\0b\0", Message::Other(b'Q')),
        (b'F', b"", Message::Other(b'F')),
    ] {
        assert_eq!(Message::read(tag, body), message);
    }
}

#[test]
fn formats_are_written_into_each_field() {
    let mut body = answer::one_field("a", true).to_vec();
    body[1] = 2;
    body.extend_from_slice(&answer::one_field("b", false)[2..]);
    let mut out = BytesMut::new();
    answer::fields(&mut out, Some(&body), &Formats::Each([false, true].into()));
    let differs: Vec<_> = (0..body.len())
        .filter(|at| out[HEADER + at] != body[*at])
        .collect();
    assert_eq!(differs, [body.len() - 1]);
    // A body that ends too early is left as it is.
    let mut out = BytesMut::new();
    answer::fields(&mut out, Some(&body[..body.len() - 3]), &Formats::Binary);
    assert_eq!(out.len(), HEADER + body.len() - 3);
}

#[test]
fn a_count_is_written_as_decimal() {
    for (rows, text) in [
        (0, "0"),
        (7, "7"),
        (10, "10"),
        (u64::MAX, "18446744073709551615"),
    ] {
        let mut out = BytesMut::new();
        answer::command_complete(&mut out, Op::Update, rows);
        assert_eq!(&out[HEADER..], format!("UPDATE {text}\0").as_bytes());
    }
}

#[test]
fn a_fault_without_the_servers_words_is_told_in_its_form() {
    let fault = Fault::unknown("who\0knows").with_hint(Some("look"));
    let mut out = BytesMut::new();
    failure::fault(&mut out, &fault);
    assert_eq!(
        &out[HEADER..],
        b"SERROR\0VERROR\0C08007\0Mwho knows\0Hlook\0\0"
    );
    let verbatim = fault.with_verbatim(*b"E\0\0\0\x05\0");
    let mut out = BytesMut::new();
    failure::fault(&mut out, &verbatim);
    assert_eq!(&out[..], b"E\0\0\0\x05\0");
}

proptest! {
    #[test]
    fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(Front::Whole { total, .. }) = front(&bytes, LONGEST) {
            prop_assert!(total <= bytes.len());
        }
        if let Some((tag, body)) = bytes.split_first() {
            drop(format!("{:?}", Message::read(*tag, body)));
        }
    }

    #[test]
    fn a_bind_comes_back_as_it_was_written(
        portal in "[a-z]{0,5}",
        statement in "[a-z]{0,5}",
        formats in prop::collection::vec(0u16..2, 0..4),
        values in prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 0..9)), 0..6),
        results in prop::collection::vec(0u16..2, 0..4),
    ) {
        let mut body = Vec::new();
        for name in [&portal, &statement] {
            body.extend_from_slice(name.as_bytes());
            body.push(0);
        }
        let list = |body: &mut Vec<u8>, codes: &[u16]| {
            body.extend_from_slice(&u16::try_from(codes.len()).unwrap().to_be_bytes());
            codes.iter().for_each(|code| body.extend_from_slice(&code.to_be_bytes()));
        };
        list(&mut body, &formats);
        body.extend_from_slice(&u16::try_from(values.len()).unwrap().to_be_bytes());
        for value in &values {
            match value {
                None => body.extend_from_slice(&[255; 4]),
                Some(value) => {
                    body.extend_from_slice(&u32::try_from(value.len()).unwrap().to_be_bytes());
                    body.extend_from_slice(value);
                }
            }
        }
        list(&mut body, &results);
        let Message::Bind(bind) = Message::read(b'B', &body) else {
            panic!("not a Bind");
        };
        prop_assert_eq!(bind.portal, portal.as_bytes());
        prop_assert_eq!(bind.statement, statement.as_bytes());
        let fits = formats.len() < 2 || formats.len() == values.len();
        prop_assert_eq!(bind.formats().is_some(), fits);
        let read = windrow_core::Arguments::of(bind.values, bind.count).unwrap();
        let read: Vec<_> = read.iter().map(|value| value.map(<[u8]>::to_vec)).collect();
        prop_assert_eq!(read, values);
    }
}
