use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use proptest::collection::vec;
use proptest::prelude::*;
use tokio::io::{AsyncRead, ReadBuf};

use super::peer::message;
use crate::wire::answer::Answer;
use crate::wire::inbox::{self, Front, Inbox};

/// A stream that gives its bytes in pieces of the given sizes.
struct Pieces {
    bytes: Vec<u8>,
    sizes: Vec<usize>,
    at: usize,
}

impl AsyncRead for Pieces {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let size = self.sizes.pop().unwrap_or(usize::MAX).max(1);
        let size = size.min(buf.remaining()).min(self.bytes.len() - self.at);
        buf.put_slice(&self.bytes[self.at..self.at + size]);
        self.at += size;
        Poll::Ready(Ok(()))
    }
}

fn read_all(bytes: Vec<u8>, sizes: Vec<usize>) -> Vec<(u8, Vec<u8>)> {
    let mut stream = Pieces {
        bytes,
        sizes,
        at: 0,
    };
    let mut inbox = Inbox::new(inbox::MAX_MESSAGE_BYTES);
    let mut read = Vec::new();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        loop {
            while let Some((tag, body)) = inbox.next().unwrap() {
                read.push((tag, body.to_vec()));
            }
            if poll_fn(|cx| inbox.poll_fill(&mut stream, cx))
                .await
                .unwrap()
                == 0
            {
                return read;
            }
        }
    })
}

/// All that can be read out of an answer.
fn walk(answer: Answer<'_>) {
    match answer {
        Answer::DataRow(row) => {
            assert_eq!(row.columns().count(), row.columns().len());
            assert_eq!(row.get(row.columns().len()), None);
        }
        Answer::RowDescription(fields) => assert_eq!(fields.clone().count(), fields.len()),
        Answer::ParameterDescription(oids) => assert_eq!(oids.clone().count(), oids.len()),
        Answer::CommandComplete(tag) => assert!(tag.rows() == 0 || !tag.0.is_empty()),
        _ => {}
    }
}

fn data_row(columns: &[Option<Vec<u8>>]) -> Vec<u8> {
    let mut body = u16::try_from(columns.len()).unwrap().to_be_bytes().to_vec();
    for column in columns {
        let len = column
            .as_ref()
            .map_or(-1, |c| i32::try_from(c.len()).unwrap());
        body.extend(len.to_be_bytes());
        body.extend(column.iter().flatten());
    }
    body
}

proptest! {
    #[test]
    fn messages_come_out_as_they_went_in_however_they_are_cut(
        messages in vec((any::<u8>(), vec(any::<u8>(), 0..300)), 0..30),
        sizes in vec(1..200_usize, 0..60),
    ) {
        let bytes = messages.iter().flat_map(|(tag, body)| message(*tag, body)).collect();
        prop_assert_eq!(read_all(bytes, sizes), messages);
    }

    #[test]
    fn no_bytes_make_it_panic(tag: u8, body in vec(any::<u8>(), 0..200)) {
        if let Ok(answer) = Answer::parse(tag, &body) {
            walk(answer);
        }
    }

    #[test]
    fn a_message_cut_short_or_drawn_out_is_refused(columns in vec(proptest::option::of(vec(any::<u8>(), 1..9)), 1..6)) {
        let whole = data_row(&columns);
        let Ok(Answer::DataRow(row)) = Answer::parse(b'D', &whole) else {
            panic!("a whole row is refused");
        };
        let read: Vec<_> = row.columns().map(|c| c.map(<[u8]>::to_vec)).collect();
        prop_assert_eq!(&read, &columns);
        prop_assert!(Answer::parse(b'D', &whole[..whole.len() - 1]).is_err());
        prop_assert!(Answer::parse(b'D', &[&whole[..], &[0]].concat()).is_err());
    }

    #[test]
    fn only_lengths_that_the_protocol_allows_are_taken(length: i32, longest in 0..1_000_000_usize) {
        let header = [&[b'D'][..], &length.to_be_bytes()].concat();
        let allowed = length >= 4 && usize::try_from(length).unwrap() - 4 <= longest;
        prop_assert_eq!(inbox::front(&header, longest).is_ok(), allowed);
    }
}

#[test]
fn a_message_larger_than_the_buffer_is_put_together() {
    let large = vec![7; 3_000_000];
    let bytes = [message(b'd', &large), message(b'Z', b"I")].concat();
    assert_eq!(
        read_all(bytes, vec![]),
        [(b'd', large), (b'Z', b"I".to_vec())]
    );
}

#[test]
fn an_announced_length_costs_no_memory() {
    let mut header = vec![b'D'];
    header.extend(1_000_000_000_i32.to_be_bytes());
    header.extend([1; 1000]);
    assert_eq!(
        inbox::front(&header, inbox::MAX_MESSAGE_BYTES),
        Ok(Front::Part(1_000_000_001))
    );
    let mut inbox = Inbox::new(inbox::MAX_MESSAGE_BYTES);
    let mut stream = &header[..];
    let mut cx = Context::from_waker(std::task::Waker::noop());
    while !matches!(
        inbox.poll_fill(&mut stream, &mut cx),
        Poll::Ready(Ok(0)) | Poll::Pending
    ) {
        assert!(inbox.next().unwrap().is_none());
    }
    assert!(inbox.capacity() < 200_000, "{}", inbox.capacity());
}

#[test]
fn a_large_message_does_not_keep_its_memory() {
    let mut inbox = Inbox::new(inbox::MAX_MESSAGE_BYTES);
    let bytes = message(b'd', &vec![7; 5_000_000]);
    let mut stream = &bytes[..];
    let mut cx = Context::from_waker(std::task::Waker::noop());
    while inbox.next().unwrap().is_none() {
        assert!(matches!(inbox.poll_fill(&mut stream, &mut cx), Poll::Ready(Ok(n)) if n > 0));
    }
    assert!(inbox.capacity() > 5_000_000);
    let mut after = &message(b'Z', b"I")[..];
    assert!(matches!(
        inbox.poll_fill(&mut after, &mut cx),
        Poll::Ready(Ok(6))
    ));
    assert!(inbox.capacity() < 200_000, "{}", inbox.capacity());
    assert_eq!(inbox.next().unwrap(), Some((b'Z', &b"I"[..])));
}

#[test]
fn tags_tell_their_rows() {
    for (tag, rows) in [
        ("INSERT 0 5", 5),
        ("UPDATE 3", 3),
        ("COPY 18446744073709551615", u64::MAX),
        ("CREATE TABLE", 0),
        ("", 0),
    ] {
        let body = [tag.as_bytes(), &[0]].concat();
        let Ok(Answer::CommandComplete(parsed)) = Answer::parse(b'C', &body) else {
            panic!("{tag}");
        };
        assert_eq!((parsed.0, parsed.rows()), (tag, rows));
    }
}
