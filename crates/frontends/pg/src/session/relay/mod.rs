//! Relays everything that is not joined: message by message over a server connection, in both
//! directions at the same time.
//!
//! Rows, pieces of COPY data and errors are passed on as they arrive, and never held as a whole.
//! The relay only tracks which answers belong to which message, so that statements can be prepared
//! on any server connection, and what a statement leaves behind, so that the connection can be
//! given back.
//!
//! | module | content |
//! | --- | --- |
//! | here, `forward`, `answers` | [`Relay`]: the loop, and the messages of both directions |
//! | `ends`, `expect`, `unconfirmed` | the session, its server connection, the answers that are expected |
//! | `statements`, `renamed`, `unknown`, `failures` | the session's prepared statements there |
//! | `leftovers`, `judge`, `sequences`, `sequence_question` | the session's state there, and how the connection is given back |
//! | `followed_settings` | the SETs in force |
//! | `block_start` | BEGIN, sent before the first statement of a block |
//! | `read_aside` | queries of late transactions, which need no BEGIN |
//! | `defer` | answers that are sent before the server's |

mod answers;
mod block_start;
mod defer;
mod ends;
mod expect;
mod failures;
mod followed_settings;
mod forward;
mod judge;
mod leftovers;
mod portals;
mod read_aside;
mod renamed;
mod renames;
mod rewrite;
mod sequence_question;
mod sequences;
mod statements;
mod stay;
mod taking;
mod unconfirmed;
mod unknown;
mod used_sequences;

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use windrow_core::FaultClass;

use super::client_connection::HIGH;
use super::kept::{KeptStep, KeptWrites, statement_of};
use super::local::is_windrow_setting;
use super::state::{End, Session, UnsentBlock, shutdown};
use super::unsent_block::{self, BlockAnswer};
use super::{block_reasons, spool};
use crate::block_doubts::known;
use crate::pool::{GivenBack, Loan};
use crate::session_info::Interrupt;
use block_start::BlockStart;
use defer::Deferred;
use ends::{Ends, TO_SERVER, closed, lost, unconfirmed};
use leftovers::Leftovers;
use portals::Portals;
use read_aside::ReadAside;
use sequence_question::SequenceQuestion;
use statements::StatementsHere;

/// A session on a server connection.
struct Relay<'s> {
    ends: Ends<'s>,
    /// The session's prepared statements on the connection.
    here: StatementsHere,
    /// The state that the session may have left on it.
    left: Leftovers,
    /// Early answers.
    deferred: Deferred,
    /// The beginning of a block.
    block_start: BlockStart,
    /// A query of a block that needs no beginning.
    aside: ReadAside,
    /// The statements that are bound to its portals.
    portals: Portals,
    /// The question for values taken from sequences.
    question: SequenceQuestion,
    /// The number of messages of the client that are answered already.
    answered: usize,
    /// The bytes left of an incomplete message, from the client to the server.
    to_server: usize,
    /// The bytes left of an incomplete message, from the server to the client.
    to_client: usize,
    /// True while bytes from the server are not passed on.
    muted: bool,
    /// The body of ParameterDescription, until RowDescription arrives.
    parameters: Box<[u8]>,
    /// The reason why statements that could be joined are relayed.
    reason: &'static str,
    /// True once the server has closed the connection.
    has_ended: bool,
    /// True once a message of the session was passed on.
    has_begun: bool,
    /// True if replicas follow what lanes write.
    is_followed: bool,
}

/// Relays the messages in the session's inbox and those that follow, until the server connection is
/// given back. `answered`: the number of messages that were answered already. `reason`: why the
/// first one is relayed.
///
/// # Errors
/// The reason why the session ends.
pub(crate) async fn run(
    session: &mut Session,
    answered: usize,
    reason: &'static str,
) -> Result<(), End> {
    let loan = match taking::take(session).await? {
        Ok(loan) => loan,
        Err(fault) => return session.refuse(&fault).await,
    };
    let mut relay = Relay::new(session, loan, answered, reason);
    loop {
        match relay.serve().await {
            Ok(()) => match relay.give_back().await? {
                None => return Ok(()),
                Some(kept) => relay = kept,
            },
            Err(End::Left) => {
                relay.end().await;
                return Err(End::Left);
            }
            Err(end) => return Err(relay.last_words(end)),
        }
    }
}

impl<'s> Relay<'s> {
    /// Returns the relay of a session that has just got a connection.
    fn new(
        session: &'s mut Session,
        loan: Box<Loan>,
        answered: usize,
        reason: &'static str,
    ) -> Self {
        let is_followed = session.is_followed();
        let here = StatementsHere::new(session);
        let mut ends = Ends::new(session, loan);
        // The reason of a block that begins with the messages in the inbox.
        ends.block_doubt = known(reason);
        Self {
            here,
            is_followed,
            ends,
            left: Leftovers::default(),
            deferred: Deferred::default(),
            block_start: BlockStart::default(),
            aside: ReadAside::default(),
            portals: Portals::default(),
            question: SequenceQuestion::default(),
            answered,
            to_server: 0,
            to_client: 0,
            muted: false,
            parameters: Box::default(),
            reason,
            has_ended: false,
            has_begun: false,
        }
    }

    /// Gives the connection back. Returns the relay if the session has to keep it.
    async fn give_back(mut self) -> Result<Option<Self>, End> {
        if self.has_ended {
            self.ends
                .session
                .info
                .set_interrupt(Interrupt::Nothing)
                .await;
            return Ok(None);
        }
        self.ends.begin_questions().await?;
        let info = Arc::clone(&self.ends.session.info);
        let settings = self.ends.session.who.settings.clone();
        let sequences = self.left.drawn_from(&self.ends);
        let given = self
            .ends
            .loan
            .give_back(&settings, self.left.leftover(), &sequences);
        let given = given.await;
        info.set_pinned("", "");
        match given {
            GivenBack::Free(drawn) => {
                let values = &mut self.ends.session.values;
                if !values.note_drawn(&drawn) || self.left.sequences.has_others() {
                    values.note_unknown();
                }
                Ok(None)
            }
            GivenBack::Lost if self.left.is_replaceable() => Ok(None),
            GivenBack::Lost => Err(End::Fatal(lost())),
            GivenBack::Kept(loan, why) => {
                let mut relay = Self {
                    ends: Ends { loan, ..self.ends },
                    left: self.left.of_kept(),
                    ..self
                };
                relay.ends.end_questions().await;
                relay.left.pin(&mut relay.ends, why);
                Ok(Some(relay))
            }
        }
    }

    /// Gives the connection back after the client has left, if nothing is under way on it.
    async fn end(mut self) {
        let is_free = self.is_at_rest();
        let settings = self.ends.session.who.settings.clone();
        let leftover = self.left.leftover_at_end().filter(|_| is_free);
        let is_usable = self.ends.begin_questions().await.is_ok();
        let loan = self.ends.loan;
        let Some(leftover) = leftover.filter(|_| is_usable) else {
            return loan.wire.terminate().await;
        };
        // Values of sequences are not asked for any more.
        if let GivenBack::Kept(loan, _) = loan.give_back(&settings, leftover, &[]).await {
            loan.wire.terminate().await;
        }
    }
}

impl Relay<'_> {
    /// Returns true if all messages are answered, outside of a transaction.
    fn is_at_rest(&mut self) -> bool {
        self.ends.status == b'I' && self.is_quiet()
    }

    /// Returns true if all messages are answered.
    fn is_quiet(&mut self) -> bool {
        self.to_server == 0 && self.to_client == 0 && !self.has_ended && self.ends.is_quiet()
    }

    /// Works until the server connection can be given back.
    async fn serve(&mut self) -> Result<(), End> {
        let stop = self.ends.session.stop.clone();
        let mut stopped = std::pin::pin!(stop.cancelled());
        loop {
            self.work()?;
            if self.has_ended && self.left.can_lose_connection(&self.ends) {
                // The session goes on without the connection.
                return Ok(());
            }
            let is_busy = !self.ends.queue.is_empty();
            self.ends.session.info.set_busy(is_busy);
            if !is_busy && self.ends.out().is_empty() {
                // Until it is answered, a part of a text is kept: it has to be known what it did.
                self.ends.session.connection.settle();
            }
            if self.has_to_reach() {
                Box::pin(self.reach()).await?;
                continue;
            }
            if self.is_quiet() && self.left.has_to_judge_first(&self.ends) {
                Box::pin(self.left.judge(&mut self.ends)).await?;
                continue;
            }
            if self.is_quiet() && self.aside.asks(&self.ends, &self.left) {
                Box::pin(self.aside.ask(&mut self.ends, &mut self.left)).await?;
                continue;
            }
            if self.is_at_rest() && self.left.asks_for_channels(&mut self.ends) {
                continue;
            }
            if self.deferred.wants_lane(&self.ends.session.own) {
                Box::pin(self.deferred.find_lane(self.ends.session)).await;
                continue;
            }
            if self.is_quiet() && self.left.needs_look(&self.ends) {
                Box::pin(self.left.watch(&mut self.ends)).await?;
                continue;
            }
            if self.is_at_rest() && self.left.may_give_back(&mut self.ends) {
                if self.left.has_to_be_judged(&self.ends) {
                    Box::pin(self.left.judge(&mut self.ends)).await?;
                    continue;
                }
                let may_stay = self.left.may_stay() && !self.ends.session.connection.ended;
                if !may_stay || !Box::pin(stay::stay(&mut self.ends)).await? {
                    return Ok(());
                }
                continue;
            }
            if let Some(total) = self.ends.uncharged() {
                let shared = Arc::clone(&self.ends.session.shared);
                let memory = (&shared.long_messages, &shared.budget);
                let charged = self.ends.session.connection.charge(memory, total);
                charged.await.map_err(End::Fatal)?;
            }
            poll_fn(|cx| {
                let moved = self.poll_move(cx)?;
                self.release_buffers();
                let budget = &self.ends.session.shared.budget;
                let connection = &mut self.ends.session.connection;
                if let Poll::Ready(stalled) = connection.poll_stalled(budget, 0, cx) {
                    return Poll::Ready(Err(End::from(stalled)));
                }
                if moved {
                    return Poll::Ready(Ok(()));
                }
                if self.is_over() {
                    return Poll::Ready(Err(End::Left));
                }
                if !self.ends.queue.is_owed() {
                    return stopped
                        .as_mut()
                        .poll(cx)
                        .map(|()| Err(End::Fatal(shutdown())));
                }
                Poll::Pending
            })
            .await?;
        }
    }

    /// Passes on the available messages, in both directions.
    fn work(&mut self) -> Result<(), End> {
        loop {
            self.forward()?;
            let outstanding = self.ends.queue.len();
            self.deliver();
            // Messages that waited for an answer can go on.
            if self.ends.queue.len() == outstanding || self.ends.session.connection.inbox.is_empty()
            {
                break;
            }
        }
        if self.ends.session.connection.out.len() >= HIGH {
            return Ok(());
        }
        if self.to_client == 0 && self.ends.queue.has_passed_fatal() {
            // Whatever the client sends next is refused, and not executed elsewhere.
            return Err(End::EndedByServer);
        }
        if self.has_ended && !self.left.can_lose_connection(&self.ends) {
            // The rest of a message that broke off never arrives.
            let breaks_off = self.to_client > 0 && !self.muted;
            return Err(match breaks_off || self.ends.queue.has_passed_fatal() {
                true => End::EndedByServer,
                false => End::Fatal(closed()),
            });
        }
        Ok(())
    }

    /// Returns the reason why the session ends, with SQLSTATE 08007 if something that it sent may
    /// be committed without confirmation.
    fn last_words(&self, end: End) -> End {
        match end {
            End::Fatal(fault)
                if fault.class == FaultClass::Unavailable
                    && self
                        .ends
                        .queue
                        .unconfirmed
                        .may_be_committed(self.ends.status) =>
            {
                End::Fatal(unconfirmed())
            }
            end => end,
        }
    }

    /// Moves bytes between the sockets and the buffers. Returns true if any arrived.
    fn poll_move(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        let connection = &mut self.ends.session.connection;
        let was_high = connection.out.len() >= HIGH;
        let waited = self.ends.loan.wire.out().len() >= TO_SERVER;
        if let Poll::Ready(flushed) = connection.poll_flush(cx) {
            flushed?;
        }
        if let Poll::Ready(Err(error)) = self.ends.loan.wire.poll_send(cx) {
            // The server's last messages may still be readable.
            tracing::debug!(%error, "a server connection takes nothing any more");
            self.ends.loan.wire.out().clear();
        }
        connection.count_answers(&self.ends.session.shared.budget, 0);
        let mut came = (was_high && connection.out.len() < HIGH)
            || (waited && self.ends.loan.wire.out().len() < TO_SERVER);
        if connection.out.len() < HIGH
            && !self.has_ended
            && let Poll::Ready(received) = self.ends.loan.wire.poll_receive(cx)
        {
            self.has_ended = !received.is_ok_and(|bytes| bytes > 0);
            came = true;
        }
        if self.may_read()
            && let Poll::Ready(read) = self.ends.session.connection.poll_read(cx)
        {
            read?;
            came = true;
        }
        Ok(came)
    }

    /// Gives back the buffers that a silent client does not need, and the memory of a long message
    /// that was sent.
    fn release_buffers(&mut self) {
        self.ends.release_sent();
        if self.ends.queue.is_empty() && self.ends.session.connection.out.is_empty() {
            self.ends.session.connection.rest();
        }
    }

    /// Returns true if more may be read from the client.
    fn may_read(&mut self) -> bool {
        !self.ends.session.connection.ended
            && !self.ends.is_busy()
            && (self.ends.session.connection.inbox.len() < TO_SERVER || self.ends.needs_more())
    }

    /// Returns true if the client has left, and nothing that it sent is under way.
    fn is_over(&mut self) -> bool {
        // COPY data or a Sync that will never come is not waited for.
        self.ends.session.connection.ended
            && !self.ends.is_busy()
            && !self.ends.queue.is_owed()
            && !self.here.is_waiting()
    }

    /// Answers a statement about a block that the server does not know, or need not know yet.
    /// Returns false for any other message.
    fn answers_block(&mut self) -> bool {
        // The first message was examined before the connection was taken.
        let is_at_rest = self.has_begun && self.is_at_rest() && self.answered == 0;
        // The server sends no notifications within a block.
        is_at_rest
            && !self.left.is_listening()
            && matches!(
                unsent_block::answer(self.ends.session, !self.here.sql_prepares),
                BlockAnswer::Given
            )
    }

    /// Sends the beginning of a block that the server does not know yet, before the message at the
    /// front of the inbox. Returns false if that message must wait for the answer.
    fn begin_block(&mut self, tag: u8, total: usize) -> bool {
        let Some(mut block) = self.ends.session.unsent_block.take() else {
            return true;
        };
        let doubt = block_reasons::of(self.ends.session, &block, self.reason);
        self.ends.block_doubt = Some(doubt);
        let message = self.ends.message(tag, total);
        let (statement, is_query) = (self.ends.statement_of(&message), tag == b'Q');
        if is_query && statement.as_deref().is_some_and(unsent_block::undoes_block) {
            block.kept = KeptWrites::default();
        }
        let is_apart = statement.is_some_and(|cached| {
            let is_last = block.kept.has_late() && unsent_block::ends_block(&cached);
            let is_own = || is_windrow_setting(&cached) || cached.names_statements();
            is_last || is_query && is_own()
        });
        let (ends, here) = (&mut self.ends, &mut self.here);
        let goes_on = self.block_start.send(ends, here, &block, is_apart);
        self.note_kept(&block);
        goes_on
    }

    /// Notes the kept INSERTs that take values from sequences only when the server executes them.
    fn note_kept(&mut self, block: &UnsentBlock) {
        for step in block.kept.steps() {
            if let KeptStep::Write(write) = step
                && write.generates()
            {
                let statement = statement_of(&self.ends.session.shared.cache, &write.call);
                self.left.note(&mut self.ends, &statement.cached, None);
                self.left.note_executed(&mut self.ends, &statement.cached);
            }
        }
    }

    /// Returns true if nothing more is sent until the server has begun a block, because the first
    /// query or segment of the block was sent.
    fn waits_for_block(&self) -> bool {
        let is_beginning = self.ends.queue.is_beginning() || self.block_start.has_failed();
        is_beginning && self.ends.queue.is_owed()
    }

    /// Returns true if the next message waits until the database has the session's writes in the
    /// spool.
    fn has_to_reach(&self) -> bool {
        let front = self.ends.front();
        let is_unsent = self.ends.session.unsent_block.is_some();
        self.to_server == 0
            && !self.ends.queue.skipping
            && front.is_some_and(|(tag, _)| match tag {
                b'Q' | b'P' | b'B' | b'F' => true,
                b'D' | b'E' | b'C' => is_unsent,
                _ => false,
            })
            && spool::is_awaited(self.ends.session)
    }

    /// Waits until it has. A statement that its client cancels, or that has waited too long, is
    /// refused.
    async fn reach(&mut self) -> Result<(), End> {
        let reached = spool::reach(self.ends.session).await?;
        self.ends.let_cancel().await;
        match (reached, self.ends.front()) {
            (Ok(()), _) => Ok(()),
            (Err(fault), Some((tag, total))) if self.begin_block(tag, total) => {
                self.here.refuse(&mut self.ends, tag, total, fault);
                Ok(())
            }
            // The wait is repeated once the block has begun.
            (Err(_), Some(_)) => Ok(()),
            (Err(_), None) => Err(End::Fatal(lost())),
        }
    }
}
