//! What the server answered to the transactions of a round trip.

use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};
use windrow_calls::Signature;
use windrow_core::Fault;

use super::sent::{Sent, SentTransaction};
use crate::fault::with_error;
use windrow_pgwire::wire::{Answer, DataRow, ServerError};

/// A message begins with a byte that names it, and its length.
const HEADER: usize = 5;

/// Messages of a transaction, in bytes, up to which all who are told of it share their memory.
const SHARED: usize = 64 << 10;

/// The answers of one transaction.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    ended: Vec<Ended>,
    /// The statement that failed, counted from 0; past the last one: the commit.
    pub(crate) error: Option<(usize, ServerError)>,
    /// Statements that were parsed.
    pub(crate) parsed: usize,
    /// The values of the statement that is under way, or that failed, were taken in.
    pub(crate) bound: bool,
    /// The end of the transaction is known.
    pub(crate) ready: bool,
    /// Whole messages: rows and notices.
    messages: Bytes,
    framed: Vec<Framed>,
}

/// A statement that ended well.
#[derive(Debug)]
struct Ended {
    /// The rows that its tag counts.
    rows: u64,
    /// Where its messages end.
    end: usize,
    /// How many rows of [`Answers::framed`] there are at its end.
    framed: usize,
    /// The types that it had, where they were asked for behind it.
    types: Option<Signature>,
}

/// The answer of a set-based statement about one of its writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Framed {
    /// Its place in the statement, counted from 0.
    pub(crate) place: usize,
    /// It took place.
    pub(crate) done: bool,
    /// What it took from a sequence.
    pub(crate) taken: Option<i64>,
    /// Where in the messages its own row is.
    row: Range<usize>,
}

/// Takes the answers of several transactions in their order.
#[derive(Debug)]
pub(crate) struct AnswerReader<'f> {
    transactions: &'f [SentTransaction],
    answered: Vec<Answers>,
    now: Answers,
    messages: BytesMut,
}

impl<'f> AnswerReader<'f> {
    /// Expects the answers to these transactions.
    pub(crate) fn new(transactions: &'f [SentTransaction]) -> Self {
        Self {
            transactions,
            answered: Vec::with_capacity(transactions.len()),
            now: Answers::default(),
            messages: BytesMut::new(),
        }
    }

    /// Takes an answer.
    pub(crate) fn take(&mut self, answer: Answer<'_>) {
        match answer {
            Answer::DataRow(row) => self.row(row),
            Answer::CommandComplete(tag) => self.ended(tag.rows()),
            Answer::ParseComplete => self.now.parsed += 1,
            Answer::BindComplete => self.now.bound = true,
            Answer::EmptyQuery | Answer::PortalSuspended => self.ended(0),
            Answer::Notice(body) => self.notice(body),
            Answer::ParameterDescription(oids) => self.typed(|types| {
                types.insert(Signature::default()).parameters = oids.collect();
            }),
            Answer::RowDescription(fields) => self.typed(|types| {
                if let Some(types) = types {
                    types.fields = Some(fields.body().into());
                }
            }),
            Answer::Error(error) => self.now.error = Some((self.now.ended.len(), error)),
            Answer::Ready(_) => {
                let mut answers = std::mem::take(&mut self.now);
                answers.ready = true;
                answers.messages = self.messages.split().freeze();
                self.answered.push(answers);
            }
            _ => {}
        }
    }

    fn sent(&self) -> Option<&'f Sent> {
        let transaction = self.transactions.get(self.answered.len())?;
        transaction.statements.get(self.now.ended.len())
    }

    fn ended(&mut self, rows: u64) {
        self.now.bound = false;
        self.now.ended.push(Ended {
            rows,
            end: self.messages.len(),
            framed: self.now.framed.len(),
            types: None,
        });
    }

    /// The types of the statement that has just ended.
    fn typed(&mut self, note: impl FnOnce(&mut Option<Signature>)) {
        if let Some(ended) = self.now.ended.last_mut() {
            note(&mut ended.types);
        }
    }

    /// Of what nobody asked for nobody is told.
    fn notice(&mut self, body: &[u8]) {
        if let Some(Sent::Single(_)) = self.sent() {
            self.message(b'N', body);
        }
    }

    fn row(&mut self, row: DataRow<'_>) {
        match self.sent() {
            Some(Sent::Set {
                heads: heads @ 1.., ..
            }) => self.framed(row, *heads),
            _ => self.message(b'D', row.body()),
        }
    }

    fn message(&mut self, tag: u8, body: &[u8]) {
        self.messages.reserve(HEADER + body.len());
        self.messages.put_u8(tag);
        self.messages.put_u32(length(body.len()));
        self.messages.put_slice(body);
    }

    /// Takes our own columns off the front of a row.
    fn framed(&mut self, row: DataRow<'_>, heads: u8) {
        let mut columns = row.columns();
        let place = columns.next().flatten().and_then(number);
        let done = columns.next().flatten().and_then(number);
        let taken = (heads > 2).then(|| columns.next().flatten().and_then(number));
        let (left, rest) = columns.rest();
        let start = self.messages.len();
        if left > 0 && done != Some(0) {
            self.messages.reserve(HEADER + 2 + rest.len());
            self.messages.put_u8(b'D');
            self.messages.put_u32(length(rest.len() + 2));
            self.messages.put_u16(left);
            self.messages.put_slice(rest);
        }
        let place = place.and_then(|place| usize::try_from(place).ok()?.checked_sub(1));
        self.now.framed.push(Framed {
            place: place.unwrap_or(usize::MAX),
            done: done != Some(0),
            taken: taken.flatten(),
            row: start..self.messages.len(),
        });
    }

    /// The answers, a transaction each.
    pub(crate) fn end(mut self) -> Vec<Answers> {
        // One that did not come to its end.
        self.now.messages = self.messages.freeze();
        self.answered.push(self.now);
        self.answered
            .resize_with(self.transactions.len(), Answers::default);
        self.answered
    }
}

impl Answers {
    /// How many statements ended well.
    pub(crate) fn statements(&self) -> usize {
        self.ended.len()
    }

    /// The types that a statement had, where they were asked for behind it.
    pub(crate) fn types(&self, statement: usize) -> Option<&Signature> {
        self.ended.get(statement)?.types.as_ref()
    }

    /// The rows that the tag of a statement counts.
    pub(crate) fn count(&self, statement: usize) -> u64 {
        self.ended.get(statement).map_or(0, |ended| ended.rows)
    }

    fn range(&self, statement: usize, of: impl Fn(&Ended) -> usize, whole: usize) -> Range<usize> {
        let before = statement.checked_sub(1).and_then(|at| self.ended.get(at));
        let start = before.map_or(0, &of);
        start..self.ended.get(statement).map_or(whole, &of)
    }

    /// The rows and notices of a statement, whole messages; of the one that failed: what came
    /// before its error.
    pub(crate) fn messages(&self, statement: usize) -> Bytes {
        self.slice(self.range(statement, |ended| ended.end, self.messages.len()))
    }

    /// A part of the messages. Long ones are taken apart: whoever waits for its client keeps its
    /// own answer, not those of all who were in the batch.
    fn slice(&self, range: Range<usize>) -> Bytes {
        match self.messages.get(range.clone()) {
            None | Some([]) => Bytes::new(),
            Some(part) if self.messages.len() > SHARED && part.len() < self.messages.len() => {
                Bytes::copy_from_slice(part)
            }
            Some(_) => self.messages.slice(range),
        }
    }

    /// A fault with the messages that the server sent: notices of the statement that failed, and
    /// its error; before them, that its values were taken in, where they were.
    pub(crate) fn fault_verbatim(&self, error: ServerError, at: usize) -> Fault {
        let body = error.body.clone();
        let notices = self.messages(at);
        let before = match self.bound {
            true => [Fault::BIND_COMPLETE, &notices].concat(),
            false => notices.to_vec(),
        };
        with_error(Fault::from(error), &before, &body)
    }

    /// The answers of a set-based statement about its writes.
    pub(crate) fn framed(&self, statement: usize) -> &[Framed] {
        let range = self.range(statement, |ended| ended.framed, self.framed.len());
        self.framed.get(range).unwrap_or_default()
    }

    /// The row of a write as the set-based statement gave it, without our own columns.
    pub(crate) fn own_row(&self, framed: &Framed) -> Option<DataRow<'_>> {
        let message = self.messages.get(framed.row.clone())?;
        DataRow::of(message.get(HEADER..)?)
    }

    /// The row of a call, a whole message; empty where it gives none.
    pub(crate) fn row_of(&self, framed: &Framed) -> Bytes {
        self.slice(framed.row.clone())
    }

    /// The rows that a statement gave.
    pub(crate) fn rows_of(&self, statement: usize) -> impl Iterator<Item = DataRow<'_>> {
        let range = self.range(statement, |ended| ended.end, self.messages.len());
        let mut rest = self.messages.get(range).unwrap_or_default();
        std::iter::from_fn(move || {
            let (header, behind) = rest.split_first_chunk::<HEADER>()?;
            let [_, length @ ..] = *header;
            let length = usize::try_from(u32::from_be_bytes(length)).ok()?;
            let (body, behind) = behind.split_at_checked(length.checked_sub(4)?)?;
            rest = behind;
            Some(body)
        })
        .filter_map(DataRow::of)
    }
}

fn length(body: usize) -> u32 {
    u32::try_from(body + 4).unwrap_or(u32::MAX)
}

/// A binary int4 or int8.
pub(crate) fn number(bytes: &[u8]) -> Option<i64> {
    match *bytes {
        [a, b, c, d] => Some(i64::from(i32::from_be_bytes([a, b, c, d]))),
        _ => Some(i64::from_be_bytes(bytes.try_into().ok()?)),
    }
}
