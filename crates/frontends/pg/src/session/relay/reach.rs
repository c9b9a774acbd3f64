//! A session that has reads answered before the database has what it has in the spool: whatever
//! else it sends to its server connection waits for that.

use super::expect::What;
use super::rewrite;
use super::state::{Relay, lost};
use crate::codec::frame::Front;
use crate::session::local;
use crate::session::state::End;
use crate::session_info::Interrupt;
use crate::statements::CachedStatement;
use windrow_core::Fault;

impl Relay<'_> {
    /// True where the next message waits until the database has what the session has in the
    /// spool.
    pub(super) fn has_to_reach(&self) -> bool {
        let front = self.session.connection.front(0);
        let Ok(Front::Whole { tag, .. }) = front else {
            return false;
        };
        self.to_server == 0
            && !self.queue.skipping
            && matches!(tag, b'Q' | b'P' | b'B' | b'F')
            && self.session.waits_for_spool()
    }

    /// Waits for it. A statement whose client does not want to wait any more, or that has waited
    /// too long, is refused.
    pub(super) async fn reach(&mut self) -> Result<(), End> {
        let reached = self.session.reach().await?;
        let key = self.loan.wire.cancel_key();
        let info = &self.session.info;
        info.set_interrupt(Interrupt::Server(key)).await;
        match (reached, self.session.connection.front(0)) {
            (Ok(()), _) => {}
            (Err(fault), Ok(Front::Whole { tag, total })) => self.refuse_front(tag, total, fault),
            (Err(_), _) => return Err(End::Fatal(lost())),
        }
        Ok(())
    }

    /// Refuses the message at the front of the inbox, which brings or uses a statement.
    pub(super) fn refuse_front(&mut self, tag: u8, total: usize, fault: Fault) {
        let is_unnamed = self.session.connection.body(0, total).first() == Some(&0);
        self.session.connection.take(total);
        match tag {
            b'P' if is_unnamed => {
                self.open = true;
                self.fail_unnamed(fault);
            }
            b'P' | b'B' => {
                self.open = true;
                self.fail(fault);
            }
            _ => self.fail_query(fault),
        }
    }

    /// Answers a simple query with an error. The transaction fails as well, and the unnamed
    /// statement is removed as by any query.
    pub(super) fn fail_query(&mut self, fault: Fault) {
        self.remove_unnamed();
        rewrite::query(self.loan.wire.out(), b"windrow fails");
        let cached = self.session.simple_query(b"").cached;
        let what = What::Query(cached, Some(Box::new(fault)));
        self.queue.push(what, false);
    }

    /// Notes that the unnamed statement is removed, as by any simple query.
    pub(super) fn remove_unnamed(&mut self) {
        self.session.statements.set(b"", None);
        self.loan.names.unnamed = None;
        self.unfixed = None;
    }

    /// True where a statement asks what the session took from sequences, and that is not known
    /// before the spool is applied; then its client is told.
    pub(super) fn asks_for_spooled(&mut self, cached: &CachedStatement) -> bool {
        super::sequences::asks(cached) && self.session.values.asks_for_lost()
    }

    /// The error for it.
    pub(super) fn fail_spooled_query(&mut self) {
        self.fail_query(local::in_the_spool());
    }
}
