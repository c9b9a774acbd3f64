//! What the server answered to the transactions of a round trip.

use std::ops::Range;

use super::wire::{Answer, DataRow, ServerError};

/// The answers of one transaction.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// One for each statement that ended well: the rows that its tag counts.
    pub(super) tags: Vec<u64>,
    /// The statement that failed, counted from 0; past the last one: the commit.
    pub(super) error: Option<(usize, ServerError)>,
    /// Statements that were parsed.
    pub(super) parsed: usize,
    /// The end of the transaction is known.
    pub(super) ready: bool,
    rows: Vec<Row>,
    bytes: Vec<u8>,
}

/// A row of a statement: where its columns are.
#[derive(Debug)]
struct Row {
    statement: usize,
    columns: Vec<Option<Range<usize>>>,
}

/// Takes the answers of several transactions in their order.
#[derive(Debug)]
pub(super) struct Listener {
    heard: Vec<Heard>,
    at: usize,
}

impl Listener {
    /// Expects so many transactions.
    pub(super) fn new(transactions: usize) -> Self {
        let mut heard = Vec::new();
        heard.resize_with(transactions, Heard::default);
        Self { heard, at: 0 }
    }

    /// Takes an answer.
    pub(super) fn hear(&mut self, answer: Answer<'_>) {
        let Some(heard) = self.heard.get_mut(self.at) else {
            return;
        };
        match answer {
            Answer::DataRow(row) => heard.keep(row),
            Answer::CommandComplete(tag) => heard.tags.push(tag.rows()),
            Answer::ParseComplete => heard.parsed += 1,
            Answer::EmptyQuery | Answer::PortalSuspended => heard.tags.push(0),
            Answer::Error(error) => heard.error = Some((heard.tags.len(), error)),
            Answer::Ready(_) => {
                heard.ready = true;
                self.at += 1;
            }
            _ => {}
        }
    }

    /// What was heard, a transaction each.
    pub(super) fn end(self) -> Vec<Heard> {
        self.heard
    }
}

impl Heard {
    fn keep(&mut self, row: DataRow<'_>) {
        let keep = |column: Option<&[u8]>| {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(column?);
            Some(start..self.bytes.len())
        };
        let columns = row.columns().map(keep).collect();
        self.rows.push(Row {
            statement: self.tags.len(),
            columns,
        });
    }

    /// The rows that a statement gave.
    pub(super) fn rows_of(
        &self,
        statement: usize,
    ) -> impl Iterator<Item = impl Iterator<Item = Option<&[u8]>>> {
        let from = self.rows.partition_point(|row| row.statement < statement);
        let rows = self.rows.get(from..).unwrap_or_default();
        rows.iter()
            .take_while(move |row| row.statement == statement)
            .map(|row| {
                let bytes = |range: &Range<usize>| self.bytes.get(range.clone());
                row.columns.iter().map(move |c| c.as_ref().and_then(bytes))
            })
    }
}
