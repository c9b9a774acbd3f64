//! Everything that is not joined: message by message over a server connection, in both directions
//! at once.
//!
//! Nothing is understood that need not be: a row, a piece of COPY data, an error pass on as they
//! come, never held as a whole. What is understood: which answers belong to which message, so that
//! statements can be prepared on whatever server connection a session gets (`names`), and what a
//! statement leaves behind, so that the connection can be given back.

mod answers;
mod defer;
mod deferred;
mod expect;
mod forward;
mod give_back;
mod judge;
mod listen;
mod portals;
mod preparation;
mod preparing;
mod query;
mod reach;
mod renamed;
mod renames;
mod rewrite;
mod sequences;
mod server_state;
mod state;
mod statements;
mod stay;
mod unconfirmed;
mod used_sequences;

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio_util::sync::CancellationToken;
use windrow_core::{Fault, FaultClass};

use super::client_connection::HIGH;
use super::state::{End, Session, shutdown};
use crate::codec::{answer, failure};
use crate::pool::Loan;
use crate::session_info::{Interrupt, State};
use state::{Relay, TO_SERVER, closed, unconfirmed};

/// Relays what is in the session's inbox and what follows, until nothing of the session is left on
/// the server connection. `answered`: so many messages were answered already. `reason`: why the
/// first one comes here.
///
/// # Errors
/// Why the session ends.
pub(crate) async fn run(
    session: &mut Session,
    answered: usize,
    reason: &'static str,
) -> Result<(), End> {
    let loan = match take(session).await? {
        Ok(loan) => loan,
        Err(fault) => return refuse(session, &fault).await,
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

/// Gets a server connection. The client may leave meanwhile.
async fn take(session: &mut Session) -> Result<Result<Box<Loan>, Fault>, End> {
    if std::mem::take(&mut session.cancel_requested) {
        return Ok(Err(Fault::called_back()));
    }
    session.info.set_state(State::Waiting);
    session.pass_gate().await?;
    let shared = Arc::clone(&session.shared);
    let who = session.who.clone();
    let taking = async { shared.databases.pool.take(&who).await };
    let mut taking = std::pin::pin!(taking);
    let stop = session.stop.clone();
    let mut stopped = std::pin::pin!(stop.cancelled());
    let cancelled = CancellationToken::new();
    let interrupt = Interrupt::Waiting(cancelled.clone());
    session.info.set_interrupt(interrupt).await;
    let mut cancelled = std::pin::pin!(cancelled.cancelled());
    let taken = poll_fn(|cx| {
        // What was answered before goes out meanwhile.
        if let Poll::Ready(Err(error)) = session.connection.poll_flush(cx) {
            return Poll::Ready(Err(End::from(error)));
        }
        if let Poll::Ready(stalled) = session.connection.poll_stalled(&shared.budget, 0, cx) {
            return Poll::Ready(Err(End::from(stalled)));
        }
        if let Poll::Ready(taken) = taking.as_mut().poll(cx) {
            return Poll::Ready(Ok(taken));
        }
        if cancelled.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(Err(Fault::called_back())));
        }
        let stopped = stopped.as_mut().poll(cx);
        stopped.map(|()| Err(End::Fatal(shutdown())))
    })
    .await?;
    match taken {
        Ok(mut loan) => {
            loan.wire.take_over();
            let key = loan.wire.cancel_key();
            session.info.set_interrupt(Interrupt::Server(key)).await;
            session.info.set_state(State::Relaying);
            Ok(Ok(Box::new(loan)))
        }
        Err(fault) => Ok(Err(fault)),
    }
}

/// Tells the client that there is no server connection for it: an error for the query or segment,
/// which goes no further.
pub(crate) async fn refuse(session: &mut Session, fault: &Fault) -> Result<(), End> {
    use crate::codec::frame::Front;

    failure::fault(&mut session.connection.out, fault);
    loop {
        match session.connection.front(0)? {
            Front::Whole { tag, total } => {
                let body = session.connection.body(0, total);
                if tag == b'Q' || (tag == b'P' && body.first() == Some(&0)) {
                    session.statements.set(b"", None);
                }
                session.connection.take(total);
                match tag {
                    b'S' | b'Q' | b'F' => break,
                    b'X' => return Err(End::Left),
                    _ => {}
                }
            }
            Front::Part { header } => {
                if let Some((b'd', total)) = header {
                    session.connection.discard(total);
                }
                if session.connection.ended {
                    return Err(End::Left);
                }
                poll_fn(|cx| {
                    let _flushing: Poll<()> = session.connection.poll_flush(cx).map(drop);
                    session.connection.poll_read(cx)
                })
                .await?;
            }
        }
    }
    answer::ready(&mut session.connection.out, b'I');
    Ok(())
}

impl Relay<'_> {
    /// Works until the server connection was given back.
    async fn serve(&mut self) -> Result<(), End> {
        let stop = self.session.stop.clone();
        let mut stopped = std::pin::pin!(stop.cancelled());
        loop {
            self.work()?;
            let is_busy = !self.queue.is_empty();
            self.session.info.set_busy(is_busy);
            if !is_busy && self.loan.wire.out().is_empty() {
                // Until it is answered, a text is kept: it has to be known what it did.
                self.session.connection.settle();
            }
            if self.has_to_reach() {
                Box::pin(self.reach()).await?;
                continue;
            }
            if self.judges_first() {
                Box::pin(self.judge()).await?;
                continue;
            }
            if self.asks_for_channels() {
                continue;
            }
            if self.wants_lane() {
                Box::pin(self.find_lane()).await;
                continue;
            }
            if self.waits_for_look() {
                Box::pin(self.look()).await?;
                continue;
            }
            if self.may_give_back() {
                if self.has_to_be_judged() {
                    Box::pin(self.judge()).await?;
                    continue;
                }
                if !self.may_stay() || !Box::pin(self.stay()).await? {
                    return Ok(());
                }
                continue;
            }
            if let Some((_, total)) = self.uncharged() {
                let shared = Arc::clone(&self.session.shared);
                let memory = (&shared.long_messages, &shared.budget);
                let charged = self.session.connection.charge(memory, total);
                charged.await.map_err(End::Fatal)?;
            }
            poll_fn(|cx| {
                let moved = self.poll_move(cx)?;
                self.release_buffers();
                let budget = &self.session.shared.budget;
                let connection = &mut self.session.connection;
                if let Poll::Ready(stalled) = connection.poll_stalled(budget, 0, cx) {
                    return Poll::Ready(Err(End::from(stalled)));
                }
                if moved {
                    return Poll::Ready(Ok(()));
                }
                if self.is_over() {
                    return Poll::Ready(Err(End::Left));
                }
                if !self.queue.is_owed() {
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

    /// Passes on what is there, in both directions.
    fn work(&mut self) -> Result<(), End> {
        loop {
            self.forward()?;
            let outstanding = self.queue.len();
            self.deliver();
            // What waited for an answer can go on.
            if self.queue.len() == outstanding || self.session.connection.inbox.is_empty() {
                break;
            }
        }
        // What is left of a message that broke off is never completed.
        if self.ended && self.session.connection.out.len() < HIGH {
            let breaks_off = self.to_client > 0 && !self.muted;
            if breaks_off || self.queue.has_passed_fatal() {
                return Err(End::EndedByServer);
            }
            return Err(End::Fatal(closed()));
        }
        Ok(())
    }

    /// Returns why the session ends, with SQLSTATE 08007 if something that it sent may be committed
    /// without the server's word.
    fn last_words(&self, end: End) -> End {
        match end {
            End::Fatal(fault)
                if fault.class == FaultClass::Unavailable
                    && self.queue.unconfirmed.may_be_committed(self.status) =>
            {
                End::Fatal(unconfirmed())
            }
            end => end,
        }
    }

    /// Moves bytes between the sockets and the buffers. True if something came.
    fn poll_move(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        let connection = &mut self.session.connection;
        let was_high = connection.out.len() >= HIGH;
        let waited = self.loan.wire.out().len() >= TO_SERVER;
        if let Poll::Ready(flushed) = connection.poll_flush(cx) {
            flushed?;
        }
        if let Poll::Ready(Err(error)) = self.loan.wire.poll_send(cx) {
            // The server's last words may still be there to be read.
            tracing::debug!(%error, "a server connection takes nothing any more");
            self.loan.wire.out().clear();
        }
        connection.count_answers(&self.session.shared.budget, 0);
        let mut came = (was_high && connection.out.len() < HIGH)
            || (waited && self.loan.wire.out().len() < TO_SERVER);
        if connection.out.len() < HIGH
            && !self.ended
            && let Poll::Ready(received) = self.loan.wire.poll_receive(cx)
        {
            self.ended = !received.is_ok_and(|bytes| bytes > 0);
            came = true;
        }
        if self.may_read()
            && let Poll::Ready(read) = self.session.connection.poll_read(cx)
        {
            read?;
            came = true;
        }
        Ok(came)
    }

    /// Gives back what a silent client does not need.
    fn release_buffers(&mut self) {
        if self.queue.is_empty() && self.session.connection.out.is_empty() {
            self.session.connection.rest();
        }
    }

    /// True where the client is read on.
    fn may_read(&mut self) -> bool {
        !self.session.connection.ended
            && !self.is_busy()
            && (self.session.connection.inbox.len() < TO_SERVER || self.needs_more())
    }

    /// True where the client has left, and nothing that it asked for is under way.
    fn is_over(&mut self) -> bool {
        // COPY data or a Sync that will never come is not waited for.
        self.session.connection.ended
            && !self.is_busy()
            && !self.queue.is_owed()
            && self.awaited.is_none()
    }
}
