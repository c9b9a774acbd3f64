//! The beginning, on the server connection, of a transaction block that its client has begun
//! already: BEGIN is sent before the first statement of the block, in the same round trip.
//!
//! The extended protocol carries it, without a Sync. If it fails, the server passes over what
//! follows, so that no statement of the block is ever executed outside of it. The client gets the
//! error as that of its statement, in a transaction that has failed. Nothing after the first query
//! or segment is sent before the server has begun the block.

use bytes::Bytes;
use windrow_sql::Reading;

use super::ends::Ends;
use super::expect::What;
use super::rewrite;
use super::statements::StatementsHere;
use crate::codec::answer;
use crate::session::state::UnsentBlock;
use crate::session::unsent_block::prepared;

/// Any name but the empty one: statements of a block's beginning are prepared under names of the
/// process.
const NAMED: &[u8] = b"windrow";

/// A text that leaves a failed transaction.
const FAILS: &[u8] = b"BEGIN; SELECT 1 OPERATOR(pg_catalog./) 0";

/// The beginning of a block on the server connection.
#[derive(Default)]
pub(super) struct BlockStart {
    /// True if the server has refused to begin the block, until it has ended the segment.
    has_failed: bool,
    /// The body of its error, while the client waits for no answer and so has not got the error.
    error: Option<Bytes>,
}

impl BlockStart {
    /// Sends what opens a block. `is_apart`: its answer has to come before the next message is
    /// sent. Returns false if the next message waits.
    pub(super) fn send(
        ends: &mut Ends<'_>,
        here: &mut StatementsHere,
        block: &UnsentBlock,
        is_apart: bool,
    ) -> bool {
        if block.has_failed {
            fail(ends);
            return false;
        }
        for cached in &block.opening {
            if let Reading::Apart(apart) = &cached.reading {
                ends.count(apart.reason);
            }
            let statement = prepared(cached);
            let name = match here.name_of(ends, &statement, NAMED) {
                Some(name) => name,
                None => {
                    let fixed = statement.fixed.clone();
                    here.prepare_again(ends, &statement, NAMED, true, fixed)
                }
            };
            rewrite::bind(ends.out(), b"", name.as_bytes(), &[0; 6]);
            ends.queue.push(What::Bind(None), true);
            rewrite::execute(ends.out());
            ends.queue.push(What::Opens, true);
        }
        if !block.has_portal {
            rewrite::close_portal(ends.out());
            ends.queue.push(What::Close(None), true);
        }
        ends.status = b'T';
        ends.is_open = !is_apart;
        if is_apart {
            sync(ends, true);
        }
        !is_apart
    }

    /// Returns true from the server's refusal to begin a block to the end of the segment.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Notes that the server has refused to begin the block: it passes over what follows. Returns
    /// false if its client waits for no answer: the error is kept for the next message.
    pub(super) fn failed(&mut self, ends: &mut Ends<'_>, body: &[u8]) -> bool {
        self.has_failed = true;
        // The statement may be gone, and others with it.
        ends.loan.names.clear_named();
        let is_awaited = ends.queue.is_awaited();
        self.error = (!is_awaited).then(|| Bytes::copy_from_slice(body));
        is_awaited
    }

    /// Gives the client an error that was kept, before the message at the front of the inbox is
    /// dealt with. Returns true if that was a query, and the error is the answer to it.
    pub(super) fn refuses(
        &mut self,
        ends: &mut Ends<'_>,
        here: &mut StatementsHere,
        total: usize,
    ) -> bool {
        let Some(error) = self.error.take() else {
            return false;
        };
        if !ends.queue.skipping {
            here.fail_named(ends, total, &error);
            return true;
        }
        let out = &mut ends.session.connection.out;
        answer::message(out, b'E', |out| out.extend_from_slice(&error));
        false
    }

    /// Lets the server end a segment of which it has passed over the simple query.
    pub(super) fn end_query(ends: &mut Ends<'_>) {
        ends.queue.skipping = false;
        sync(ends, false);
    }

    /// Notes the end of a cycle. Makes the transaction of a block that the server has refused to
    /// begin one that has failed. Returns false if there is none.
    pub(super) fn settle(&mut self, ends: &mut Ends<'_>, status: u8) -> bool {
        // If a later statement of the beginning was refused, the transaction has failed already.
        let is_missing = std::mem::take(&mut self.has_failed) && status == b'I';
        if is_missing {
            fail(ends);
        }
        is_missing
    }

    /// Takes a message that answers such a text. Returns `None` if it answers something else, and
    /// false if the text did not do what it should.
    pub(super) fn is_about_failing(ends: &mut Ends<'_>, tag: u8, body: &[u8]) -> Option<bool> {
        let front = ends.queue.front()?;
        if !matches!(front.what, What::FailsBlock) || matches!(tag, b'A' | b'N' | b'S') {
            return None;
        }
        if tag != b'Z' {
            return Some(true);
        }
        ends.queue.pop_if(|what| matches!(what, What::FailsBlock));
        Some(body == b"E")
    }
}

fn sync(ends: &mut Ends<'_>, is_muted: bool) {
    rewrite::sync(ends.out());
    ends.queue.push(What::Sync, is_muted);
}

fn fail(ends: &mut Ends<'_>) {
    ends.loan.names.unnamed = None;
    rewrite::query(ends.out(), FAILS);
    ends.queue.push(What::FailsBlock, true);
    ends.status = b'E';
}
