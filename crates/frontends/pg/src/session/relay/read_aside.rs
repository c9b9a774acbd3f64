//! Queries of a late transaction that the server does not know yet: they are executed outside of
//! it, so that the server still need not know the transaction.
//!
//! At READ COMMITTED, each query has a snapshot of its own, in a transaction or outside of it. So
//! this only applies to queries that are proven to write and lock nothing, and that do not ask when
//! their transaction began.

use std::sync::Arc;

use windrow_sql::Names;

use super::ends::{Ends, lost};
use super::leftovers::Leftovers;
use crate::codec::message::{Front, HEADER, Kind, Message};
use crate::session::state::{End, Session, UnsentBlock};
use crate::session::unsent_block;
use crate::statements::CachedStatement;

/// A query or segment of such a transaction.
#[derive(Default)]
pub(super) struct ReadAside {
    /// The names about whose code the catalog must be asked.
    wanted: Option<Arc<Names>>,
    /// True once the catalog was asked about its code.
    has_asked: bool,
    /// True from the first message that was passed on to ReadyForQuery.
    has_begun: bool,
    /// True once it is known that the rest of the query or segment only reads.
    reads: bool,
}

impl ReadAside {
    /// Returns true if something must be asked before the query at the front of the inbox may be
    /// executed outside of its transaction. Stays true until it was asked.
    pub(super) fn asks(&mut self, ends: &Ends<'_>, left: &Leftovers) -> bool {
        self.asks_isolation(ends, left) || self.unknown(ends, left).is_some()
    }

    /// Asks that. Nothing may be under way.
    ///
    /// # Errors
    /// The connection is lost.
    pub(super) async fn ask(
        &mut self,
        ends: &mut Ends<'_>,
        left: &mut Leftovers,
    ) -> Result<(), End> {
        if self.asks_isolation(ends, left) {
            ends.begin_questions().await?;
            let reads = ends.loan.reads_committed().await;
            ends.session.reads_committed = Some(reads.map_err(|_| End::Fatal(lost()))?);
            ends.end_questions().await;
        } else if let Some(names) = self.unknown(ends, left) {
            (self.wanted, self.has_asked) = (None, true);
            left.postpone(ends, &names);
            left.judge(ends).await?;
        }
        Ok(())
    }

    /// Returns true if the default isolation level must be asked for first.
    fn asks_isolation(&self, ends: &Ends<'_>, left: &Leftovers) -> bool {
        ends.session.reads_committed.is_none() && left.is_known() && self.query(ends).is_some()
    }

    /// Returns the names in the query at the front of the inbox, if it may be executed outside of
    /// its transaction and the catalog must be asked first about the code that they run.
    fn unknown(&mut self, ends: &Ends<'_>, left: &Leftovers) -> Option<Arc<Names>> {
        if self.wanted.is_none() && !self.has_asked {
            let query = self.query(ends);
            let query = query.filter(|cached| left.verdict(ends, cached).is_none());
            self.wanted = query.and_then(|cached| cached.names().cloned());
        }
        self.wanted.clone()
    }

    /// Returns the query at the front of the inbox, of which nothing was passed on, if its text
    /// allows executing it outside of its transaction.
    fn query(&self, ends: &Ends<'_>) -> Option<Arc<CachedStatement>> {
        let session = &*ends.session;
        let block = session.unsent_block.as_ref()?;
        if self.has_begun || ends.is_open || !is_late(session, block) {
            return None;
        }
        let (tag, total) = ends.front()?;
        let cached = ends.statement_of(&ends.message(tag, total))?;
        may_be_read(&cached, block).then_some(cached)
    }

    /// Returns true if the message at the front of the inbox is passed on without making the
    /// transaction known to the server.
    pub(super) fn takes(
        &mut self,
        ends: &Ends<'_>,
        left: &Leftovers,
        (tag, total): (u8, usize),
    ) -> bool {
        let session = &*ends.session;
        let Some(block) = &session.unsent_block else {
            return false;
        };
        if self.reads || (self.has_begun && ends.queue.skipping) {
            return true;
        }
        let is_taken = match tag {
            // These messages execute nothing, and none of them fails with its transaction.
            b'C' | b'H' | b'S' => session.own.late && block.keeps,
            _ if !is_late(session, block) => false,
            b'P' => true,
            b'D' => matches!(
                ends.message(tag, total),
                Message::Describe(Kind::Statement, _)
            ),
            b'Q' | b'B' => {
                self.reads = only_reads(ends, left, block);
                self.reads
            }
            _ => false,
        };
        self.has_begun |= is_taken;
        is_taken
    }

    /// Returns true if the next message waits until the query or segment before it is answered.
    pub(super) fn is_awaited(&self, ends: &Ends<'_>) -> bool {
        self.has_begun && ends.queue.is_owed()
    }

    /// Handles the end of the query or segment. Returns the transaction status for the client, if
    /// the server does not know the transaction.
    pub(super) fn ended(&mut self, ends: &mut Ends<'_>) -> Option<u8> {
        let ended = std::mem::take(self);
        let block = ends.session.unsent_block.as_mut()?;
        if ended.reads {
            block.kept.note_answered();
        }
        Some(unsent_block::status(ends.session))
    }

    /// Notes an error sent to the client: its transaction has failed, although the server does not
    /// know it.
    pub(super) fn failed(ends: &mut Ends<'_>) {
        if let Some(block) = &mut ends.session.unsent_block {
            block.has_failed = true;
        }
    }
}

/// Returns true if queries of a block may be executed outside of it.
fn is_late(session: &Session, block: &UnsentBlock) -> bool {
    session.own.late && block.keeps && !block.has_failed
}

/// Returns true if the messages in the inbox, up to the end of their query or segment, only read.
fn only_reads(ends: &Ends<'_>, left: &Leftovers, block: &UnsentBlock) -> bool {
    // Above READ COMMITTED, all queries of a transaction have the same snapshot.
    if ends.session.reads_committed != Some(true) || !left.is_known() {
        return false;
    }
    let (connection, mut at) = (&ends.session.connection, 0);
    while let Ok(Front::Whole { tag, total }) = connection.front(at) {
        let message = Message::read(tag, connection.body(at, total));
        let is_read = || {
            let cached = ends.statement_of(&message);
            cached.is_some_and(|cached| {
                may_be_read(&cached, block) && left.is_proven_to_show(ends, &cached)
            })
        };
        match &message {
            Message::Query(_) => return at == 0 && is_read(),
            Message::Sync => return total == HEADER,
            Message::Bind(bind) if bind.portal.is_empty() && is_read() => {}
            Message::Execute(b"", 0) | Message::Describe(..) | Message::Close(..) => {}
            // A Parse may give another meaning to a name that is bound after it.
            _ => return false,
        }
        at += total;
    }
    false
}

/// Returns true for a statement that its text allows executing outside of its block.
fn may_be_read(cached: &CachedStatement, block: &UnsentBlock) -> bool {
    cached.names().is_some_and(|names| {
        // No rollback takes back the value of a sequence. A kept row may still take the value.
        names.only_generates() && !block.kept.is_open()
            // It would not see kept writes.
            || names.only_queries() && !cached.may_freeze && !block.kept.has_writes()
    })
}
