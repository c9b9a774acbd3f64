//! The server's answers to the transactions of a round trip.

use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};
use windrow_core::{Fault, Signature};

use super::sent::{Sent, SentTransaction};
use crate::fault::with_error;
use windrow_pgwire::wire::{Answer, DataRow, ServerError};

/// Length of a message's header: one byte that names the message, and its length.
const HEADER: usize = 5;

/// Size of a transaction's messages, in bytes, up to which all answers share one buffer.
const SHARED: usize = 64 << 10;

/// The answers to one transaction.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    ended: Vec<Ended>,
    /// The place of the statement that failed, counted from 0, and its error. The place after the
    /// last statement is the commit.
    pub(crate) error: Option<(usize, ServerError)>,
    /// Number of statements that were parsed.
    pub(crate) parsed: usize,
    /// True if the server accepted the parameters of the statement that is under way or that
    /// failed.
    pub(crate) bound: bool,
    /// True if the end of the transaction is known.
    pub(crate) ready: bool,
    /// Complete messages: rows and notices.
    messages: Bytes,
    framed: Vec<Framed>,
}

/// A statement that succeeded.
#[derive(Debug)]
struct Ended {
    /// The row count in the command tag.
    rows: u64,
    /// The offset in `Answers.messages` at which the statement's messages end.
    end: usize,
    /// The length of [`Answers::framed`] when the statement ended.
    framed: usize,
    /// The types of the statement, if a Describe was sent after its Execute.
    types: Option<Signature>,
}

/// The answer of a set-based statement about one of its writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Framed {
    /// The place of the write in the statement, counted from 0.
    pub(crate) place: usize,
    /// True if the write was executed; false if its row was left out.
    pub(crate) done: bool,
    /// The value that the write took from a sequence.
    pub(crate) taken: Option<i64>,
    /// The range in `Answers.messages` that holds the write's own row.
    row: Range<usize>,
}

/// Assigns the server's messages to several transactions, in the order in which they were sent.
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

    /// Takes in one message.
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

    /// Records types of the statement that has just ended.
    fn typed(&mut self, note: impl FnOnce(&mut Option<Signature>)) {
        if let Some(ended) = self.now.ended.last_mut() {
            note(&mut ended.types);
        }
    }

    /// Keeps a notice of a client's single statement, and drops all others.
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

    /// Removes Windrow's own columns from the beginning of a row.
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

    /// Returns the answers to each transaction.
    pub(crate) fn end(mut self) -> Vec<Answers> {
        // The last transaction may be incomplete.
        self.now.messages = self.messages.freeze();
        self.answered.push(self.now);
        self.answered
            .resize_with(self.transactions.len(), Answers::default);
        self.answered
    }
}

impl Answers {
    /// Returns the number of statements that succeeded.
    pub(crate) fn statements(&self) -> usize {
        self.ended.len()
    }

    /// Returns the types of a statement, if a Describe was sent after its Execute.
    pub(crate) fn types(&self, statement: usize) -> Option<&Signature> {
        self.ended.get(statement)?.types.as_ref()
    }

    /// Returns the row count in the command tag of a statement.
    pub(crate) fn count(&self, statement: usize) -> u64 {
        self.ended.get(statement).map_or(0, |ended| ended.rows)
    }

    fn range(&self, statement: usize, of: impl Fn(&Ended) -> usize, whole: usize) -> Range<usize> {
        let before = statement.checked_sub(1).and_then(|at| self.ended.get(at));
        let start = before.map_or(0, &of);
        start..self.ended.get(statement).map_or(whole, &of)
    }

    /// Returns the rows and notices of a statement as complete messages. For the statement that
    /// failed, they are the ones before its error.
    pub(crate) fn messages(&self, statement: usize) -> Bytes {
        self.slice(self.range(statement, |ended| ended.end, self.messages.len()))
    }

    /// Returns a part of the messages. A part of a long buffer is copied, so that a client that is
    /// slow to read keeps only its own answer in memory and not those of the whole batch.
    fn slice(&self, range: Range<usize>) -> Bytes {
        match self.messages.get(range.clone()) {
            None | Some([]) => Bytes::new(),
            Some(part) if self.messages.len() > SHARED && part.len() < self.messages.len() => {
                Bytes::copy_from_slice(part)
            }
            Some(_) => self.messages.slice(range),
        }
    }

    /// Returns a fault that carries the server's own messages: BindComplete if the parameters were
    /// accepted, the notices of the failed statement, and its error.
    pub(crate) fn fault_verbatim(&self, error: ServerError, at: usize) -> Fault {
        let body = error.body.clone();
        let notices = self.messages(at);
        let before = match self.bound {
            true => [Fault::BIND_COMPLETE, &notices].concat(),
            false => notices.to_vec(),
        };
        with_error(Fault::from(error), &before, &body)
    }

    /// Returns the answers of a set-based statement about its writes.
    pub(crate) fn framed(&self, statement: usize) -> &[Framed] {
        let range = self.range(statement, |ended| ended.framed, self.framed.len());
        self.framed.get(range).unwrap_or_default()
    }

    /// Returns the row of a write in a set-based statement, without Windrow's own columns.
    pub(crate) fn own_row(&self, framed: &Framed) -> Option<DataRow<'_>> {
        let message = self.messages.get(framed.row.clone())?;
        DataRow::of(message.get(HEADER..)?)
    }

    /// Returns the row of a call as a complete message, or nothing if the call gave no row.
    pub(crate) fn row_of(&self, framed: &Framed) -> Bytes {
        self.slice(framed.row.clone())
    }

    /// Returns the rows of a statement.
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

/// Decodes a binary int4 or int8.
pub(crate) fn number(bytes: &[u8]) -> Option<i64> {
    match *bytes {
        [a, b, c, d] => Some(i64::from(i32::from_be_bytes([a, b, c, d]))),
        _ => Some(i64::from_be_bytes(bytes.try_into().ok()?)),
    }
}
