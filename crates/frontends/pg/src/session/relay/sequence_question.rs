//! The question for the values taken from sequences, sent after the end of a transaction block, in
//! the same write.
//!
//! The question is sent if another session waits for a server connection: once it is answered, this
//! one can be given back without a round trip. The question also removes the values from the
//! connection. If any part of it fails, its answer does not count, and [`Loan::give_back`] asks
//! again.
//!
//! [`Loan::give_back`]: crate::pool::Loan::give_back

use std::fmt::Write as _;
use std::iter;

use bytes::Bytes;
use smallvec::SmallVec;
use windrow_core::Generated;
use windrow_sql::BlockEffect;

use super::ends::Ends;
use super::expect::What;
use super::leftovers::Leftovers;
use super::rewrite;
use crate::codec::data_row;
use crate::pool::{Drawn, Names, StatementKey};
use crate::statements::{CachedStatement, FixedTypes};

/// Removes the values taken from sequences.
const DISCARD: &str = "DISCARD SEQUENCES";

/// The most sequences in one question.
const MAX_SEQUENCES: usize = 8;

/// The question for the values taken from sequences, of one loan of a server connection.
#[derive(Default)]
pub(super) struct SequenceQuestion {
    /// The number of statements of the query or segment that is being sent.
    statements: usize,
    /// True if the last of them ends a transaction block.
    ends_block: bool,
    /// The sequences in the question.
    sequences: SmallVec<[u32; 2]>,
    /// The answered values, as text: of `lastval()`, and of `currval()` of each sequence.
    values: SmallVec<[i64; 3]>,
    /// The names of the question's statements.
    keys: SmallVec<[StatementKey; 2]>,
    /// True once any part of a question has failed.
    has_failed: bool,
}

impl SequenceQuestion {
    /// Notes a statement that is sent for execution.
    pub(super) fn note(&mut self, cached: Option<&CachedStatement>) {
        let block = cached.and_then(CachedStatement::block);
        self.statements += 1;
        self.ends_block = block.is_some_and(|block| {
            matches!(block.effect, BlockEffect::Commits | BlockEffect::RollsBack)
        });
    }

    /// Sends the question after a query or segment, if that was a single statement that ends a
    /// transaction block, and another session waits for a connection. `settings`: the fingerprint
    /// of the settings under which statements are prepared.
    pub(super) fn follow(&mut self, ends: &mut Ends<'_>, left: &Leftovers, settings: u64) {
        let is_alone = std::mem::take(&mut self.statements) == 1;
        let may_follow = is_alone && self.ends_block && !self.has_failed;
        if !may_follow || !ends.loan.is_wanted() || ends.queue.skipping {
            return;
        }
        // A client that has sent more continues on the connection.
        if !ends.session.connection.inbox.is_empty() {
            return;
        }
        if let Some(sequences) = left.sequences_to_ask(ends)
            && sequences.len() <= MAX_SEQUENCES
        {
            self.send(ends, settings, sequences);
        }
    }

    fn send(&mut self, ends: &mut Ends<'_>, settings: u64, sequences: SmallVec<[u32; 2]>) {
        self.values.clear();
        self.keys.clear();
        for sql in [&*question(&sequences), DISCARD] {
            let key = (number(ends, sql), settings);
            let name = Names::name(key);
            self.keys.push(key);
            prepare(ends, key, &name, sql);
            rewrite::bind(ends.out(), b"", name.as_bytes(), &[0; 6]);
            rewrite::execute(ends.out());
        }
        self.sequences = sequences;
        rewrite::sync(ends.out());
        ends.queue.push(What::Values, true);
    }

    /// Handles an answer to the question. Returns `None` if the message answers another one. At the
    /// end of the answer, returns the values taken from sequences, if all of them are known.
    pub(super) fn take(
        &mut self,
        ends: &mut Ends<'_>,
        tag: u8,
        body: &[u8],
    ) -> Option<QuestionReply> {
        let front = ends.queue.front()?;
        if !matches!(front.what, What::Values) || matches!(tag, b'A' | b'N' | b'S') {
            return None;
        }
        match tag {
            b'D' => self.values = values(body),
            b'E' => {
                tracing::debug!("values of sequences are asked for again");
                self.has_failed = true;
                // One of the statements may be gone, or was not prepared.
                for key in self.keys.drain(..) {
                    ends.loan.names.remove(key);
                }
            }
            b'Z' => {
                ends.queue.pop_if(|what| matches!(what, What::Values));
                return Some(self.answered());
            }
            _ => {}
        }
        Some(QuestionReply::Part)
    }

    fn answered(&mut self) -> QuestionReply {
        let (last, current) = match self.values.split_first() {
            Some((last, current)) if current.len() == self.sequences.len() => (*last, current),
            _ => return QuestionReply::Part,
        };
        if self.has_failed {
            return QuestionReply::Part;
        }
        let both = self.sequences.iter().zip(current);
        let current = both.map(|(sequence, value)| Generated {
            sequence: *sequence,
            value: *value,
        });
        QuestionReply::Whole(Drawn {
            last: Some(last),
            current: current.collect(),
        })
    }
}

/// A message that answers the question.
pub(super) enum QuestionReply {
    /// A part of the answer, or the end of one that does not count.
    Part,
    /// The end of the answer, with the values taken from sequences.
    Whole(Drawn),
}

/// Returns SQL for `lastval()` and the values of `currval()`. The server refuses it if one of them
/// has no value.
fn question(sequences: &[u32]) -> String {
    let mut sql = "SELECT pg_catalog.lastval()".to_owned();
    for sequence in sequences {
        // Writing to a text cannot fail.
        let _written = write!(sql, ", pg_catalog.currval({sequence})");
    }
    sql
}

/// Returns the number that a text has in this process.
fn number(ends: &Ends<'_>, sql: &str) -> u64 {
    let cache = &ends.session.shared.cache;
    cache.get(sql.as_bytes(), iter::empty(), true).number
}

/// Prepares a text at the server, if it is not prepared there.
fn prepare(ends: &mut Ends<'_>, key: StatementKey, name: &str, sql: &str) {
    if ends.loan.names.fixed_types(key).is_some() {
        return;
    }
    // It may exist, from before a message that was skipped.
    rewrite::statement(ends.out(), b'C', name.as_bytes());
    rewrite::parse(ends.out(), name.as_bytes(), sql.as_bytes(), &[]);
    if let Some(oldest) = ends.loan.names.add(key, FixedTypes::default()) {
        rewrite::statement(ends.out(), b'C', Names::name(oldest).as_bytes());
    }
}

/// Reads the columns of a DataRow. Returns nothing if one of them is not a number.
fn values(body: &[u8]) -> SmallVec<[i64; 3]> {
    let columns = data_row::columns(Bytes::copy_from_slice(body)).unwrap_or_default();
    let number = |column: Option<Bytes>| std::str::from_utf8(&column?).ok()?.parse().ok();
    let numbers: Option<SmallVec<[i64; 3]>> = columns.into_iter().map(number).collect();
    numbers.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_from_a_row() {
        let row = b"\0\x02\0\0\0\x01\x37\0\0\0\x02-9";
        assert_eq!(values(row)[..], [7, -9]);
        for row in [
            &b"\0\x01\xff\xff\xff\xff"[..],
            b"\0\x01\0\0\0\x01x",
            b"\0\x01\0\0\0\x0512",
            b"",
        ] {
            assert!(values(row).is_empty(), "{row:?}");
        }
    }
}
