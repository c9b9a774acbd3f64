//! The answer of one call: its position among the messages to the client, and its results.

use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use windrow_core::{Fault, Formats, Op, Signature, Statement, WriteDone};

use crate::codec::{answer, failure};
use crate::statements::FixedTypes;

/// The position of a call's results.
#[derive(Clone, Debug)]
pub(crate) struct CallAnswer {
    /// The position of BindComplete of its portal.
    pub(crate) bound: usize,
    /// The position of its results.
    pub(crate) done: usize,
    /// The operation of the call.
    pub(crate) op: Op,
    /// The types of the call, if they are only known after its execution.
    pub(crate) fresh: Option<LateTypes>,
    /// The portal's name, if it has one: errors of its values contain it.
    pub(crate) portal: Option<Box<[u8]>>,
    /// The statement, if the call is part of a simple query.
    pub(crate) query: Option<Box<QueryStatement>>,
}

/// A statement of a simple query: its rows are described before them.
#[derive(Clone, Debug)]
pub(crate) struct QueryStatement {
    pub(crate) statement: Arc<Statement>,
    /// The characters of the query before the statement's text: positions in errors count them.
    pub(crate) skipped: u32,
}

/// The types of a statement that was parsed only for the call that uses it.
#[derive(Clone, Debug)]
pub(crate) struct LateTypes {
    /// The session's place for them.
    pub(crate) fixed: FixedTypes,
    /// The types, if nothing has changed since the statement was described.
    pub(crate) signature: Arc<Signature>,
}

impl CallAnswer {
    /// Writes what comes before the call's results, and fixes its types.
    pub(super) fn say_before(&self, text: &[u8], done: &WriteDone, out: &mut BytesMut) {
        let news = done
            .extra
            .as_ref()
            .and_then(|extra| extra.signature.as_ref());
        let Some(fresh) = &self.fresh else {
            return out.put_slice(text);
        };
        let news = news.map(|news| news.of_client(fresh.signature.parameters.len()));
        fresh.fixed.set(news.as_ref().unwrap_or(&fresh.signature));
        match news {
            Some(news) => answer::described_again(out, text, &fresh.signature, &news),
            None => out.put_slice(text),
        }
    }

    /// Writes the call's results. `is_undone`: the call's own transaction failed after it.
    pub(super) fn say(&self, done: &WriteDone, is_undone: bool, out: &mut BytesMut) {
        let extra = done.extra.as_ref();
        let messages = extra.map_or(&[][..], |extra| &extra.messages);
        let Some(query) = &self.query else {
            out.put_slice(messages);
            return answer::command_complete(out, self.op, done.rows);
        };
        // The server runs a statement completely before it describes the rows, so its notices come
        // first.
        let (notices, rows) = messages.split_at(notices(messages));
        out.put_slice(notices);
        let news = extra.and_then(|extra| extra.signature.as_ref());
        let signature = news.unwrap_or_else(|| query.statement.signature());
        if let Some(fields) = signature.fields.as_deref() {
            answer::fields(out, Some(fields), &Formats::Text);
        }
        out.put_slice(rows);
        if !is_undone {
            answer::command_complete(out, self.op, done.rows);
        }
    }
}

/// Writes the error of a call; `failed` is `None` if the error came after all calls.
pub(super) fn say_fault(fault: &Fault, failed: Option<&CallAnswer>, out: &mut BytesMut) {
    let portal = failed.and_then(|said| said.portal.as_deref());
    let query = failed.and_then(|said| said.query.as_ref());
    match query.map_or(0, |query| query.skipped) {
        0 => failure::of_portal(out, fault, portal),
        skipped => failure::moved(out, fault, skipped),
    }
}

/// Returns the number of bytes of the notices at the front of `messages`.
fn notices(messages: &[u8]) -> usize {
    let mut at = 0;
    while let Some([b'N', a, b, c, d]) = messages.get(at..at + 5) {
        let length = u32::from_be_bytes([*a, *b, *c, *d]);
        at += 1 + usize::try_from(length).unwrap_or_default();
    }
    at.min(messages.len())
}
