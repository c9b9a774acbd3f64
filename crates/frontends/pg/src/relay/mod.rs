//! Everything that is not joined: message by message over a server connection, in both directions
//! at once.
//!
//! Nothing is understood that need not be: a row, a piece of COPY data, an error pass on as they
//! come, never held as a whole. What is understood: which answers belong to which message, so that
//! statements can be prepared on whatever server connection a session gets (`names`), and what a
//! statement leaves behind, so that the connection can be given back.

mod answers;
mod expect;
mod forward;
mod judge;
mod leave;
mod linger;
mod listen;
mod own;
mod query;
mod rewrite;
mod sequences;
mod statements;

use std::future::poll_fn;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio_util::sync::CancellationToken;
use windrow_core::{Fault, FaultClass};

use crate::codec::{answer, failure};
use crate::pool::Loan;
use crate::presence::{Interrupt, State};
use crate::session::{End, HIGH, Session, Told, charge, shutdown};
use expect::Queue;
use leave::Residue;

/// What waits to be sent to the server, in bytes: past it the client is read more slowly.
const TO_SERVER: usize = 64 * 1024;

/// Messages that wait for their answers: past it the client is read more slowly.
const OUTSTANDING: usize = 4096;

/// A session on a server connection.
struct Relay<'s> {
    session: &'s mut Session,
    loan: Box<Loan>,
    queue: Queue,
    /// What the last ReadyForQuery said: `I`, `T` or `E`.
    status: u8,
    /// Messages of the client whose answers it has already got.
    answered: usize,
    /// Bytes of a message that was begun: from the client to the server, and from the server to
    /// the client.
    to_server: usize,
    to_client: usize,
    /// True while the bytes from the server are not passed on.
    muted: bool,
    residue: Residue,
    /// Why statements come here that could be joined.
    reason: &'static str,
    /// A fingerprint of the session's settings, which its statements were read under.
    settings: u64,
    /// The server has closed the connection.
    ended: bool,
    /// Messages were passed on since the last Sync, and Parse of the unnamed statement among them.
    open: bool,
    unnamed_here: bool,
    /// The types of an unnamed statement whose client may use it in a later segment: asked for at
    /// Sync.
    untold: Option<Told>,
    /// The types of a statement that is being prepared again, which the next message waits for.
    awaited: Option<Told>,
    /// The body of ParameterDescription, until RowDescription is there.
    parameters: Box<[u8]>,
}

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
    let settings = fingerprint(session);
    let mut relay = Relay {
        session,
        loan,
        queue: Queue::default(),
        status: b'I',
        answered,
        to_server: 0,
        to_client: 0,
        muted: false,
        residue: Residue::default(),
        reason,
        settings,
        ended: false,
        open: false,
        unnamed_here: false,
        untold: None,
        awaited: None,
        parameters: Box::default(),
    };
    loop {
        match relay.serve().await {
            Ok(()) => match relay.leave().await? {
                None => return Ok(()),
                Some(kept) => relay = kept,
            },
            Err(End::Left) => {
                relay.farewell().await;
                return Err(End::Left);
            }
            Err(end) => return Err(end),
        }
    }
}

/// Numbers the settings, for statements that were read under them.
fn fingerprint(session: &Session) -> u64 {
    let set = &session.who.settings.set;
    match set.is_empty() {
        true => 0,
        false => foldhash::fast::FixedState::default().hash_one(set),
    }
}

/// Gets a server connection. The client may leave meanwhile.
async fn take(session: &mut Session) -> Result<Result<Box<Loan>, Fault>, End> {
    if std::mem::take(&mut session.called_back) {
        return Ok(Err(Fault::called_back()));
    }
    session.presence.set_state(State::Waiting);
    session.pass_gate().await?;
    let house = Arc::clone(&session.house);
    let who = session.who.clone();
    let taking = async { house.pool.take(&who).await };
    let mut taking = std::pin::pin!(taking);
    let stop = session.stop.clone();
    let mut stopped = std::pin::pin!(stop.cancelled());
    let asked = CancellationToken::new();
    let interrupt = Interrupt::Waiting(asked.clone());
    session.presence.set_interrupt(interrupt).await;
    let mut asked = std::pin::pin!(asked.cancelled());
    let taken = poll_fn(|cx| {
        // What was answered before goes out meanwhile.
        if let Poll::Ready(Err(error)) = session.line.poll_flush(cx) {
            return Poll::Ready(Err(End::from(error)));
        }
        if let Poll::Ready(taken) = taking.as_mut().poll(cx) {
            return Poll::Ready(Ok(taken));
        }
        if asked.as_mut().poll(cx).is_ready() {
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
            session.presence.set_interrupt(Interrupt::Server(key)).await;
            session.presence.set_state(State::Relaying);
            Ok(Ok(Box::new(loan)))
        }
        Err(fault) => Ok(Err(fault)),
    }
}

/// Tells the client that there is no server connection for it: an error for the query or segment,
/// which goes no further.
async fn refuse(session: &mut Session, fault: &Fault) -> Result<(), End> {
    use crate::codec::frame::Front;

    failure::fault(&mut session.line.out, fault);
    loop {
        match session.line.front(0)? {
            Front::Whole { tag, total } => {
                session.line.take(total);
                match tag {
                    b'S' | b'Q' | b'F' => break,
                    b'X' => return Err(End::Left),
                    _ => {}
                }
            }
            Front::Part { header } => {
                if let Some((b'd', total)) = header {
                    session.line.discard(total);
                }
                if session.line.ended {
                    return Err(End::Left);
                }
                poll_fn(|cx| {
                    let _flushing: Poll<()> = session.line.poll_flush(cx).map(drop);
                    session.line.poll_read(cx)
                })
                .await?;
            }
        }
    }
    answer::ready(&mut session.line.out, b'I');
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
            self.session.presence.set_busy(is_busy);
            if !is_busy && self.loan.wire.out().is_empty() {
                // Until it is answered, a text is kept: it has to be known what it did.
                self.session.line.settle();
            }
            if self.asks_what_is_heard() {
                continue;
            }
            if self.waits_to_be_told() {
                Box::pin(self.hear_of_sequences()).await?;
                continue;
            }
            if self.may_leave() {
                if self.has_to_be_judged() {
                    Box::pin(self.judge()).await?;
                    continue;
                }
                if !self.lingers() || !Box::pin(self.linger()).await? {
                    return Ok(());
                }
                continue;
            }
            if let Some((_, total)) = self.uncharged() {
                let house = Arc::clone(&self.session.house);
                let memory = (&house.long_messages, &house.budget);
                let charged = self.session.line.charge(memory, total);
                charged.await.map_err(End::Fatal)?;
            }
            poll_fn(|cx| {
                let moved = self.poll_move(cx)?;
                self.unburden();
                let budget = &self.session.house.budget;
                if self.session.line.poll_stalled(budget, 0, cx).is_ready() {
                    return Poll::Ready(Err(End::Fatal(charge::stalled())));
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
            if self.queue.len() == outstanding || self.session.line.inbox.is_empty() {
                break;
            }
        }
        if self.ended && self.loan.wire.received().is_empty() {
            if self.queue.was_told_the_end() {
                return Err(End::Told);
            }
            return Err(End::Fatal(Fault::new(
                FaultClass::Unavailable,
                "57P01",
                "terminating connection: the server closed the connection of this session",
            )));
        }
        Ok(())
    }

    /// Moves bytes between the sockets and the buffers. True if something came.
    fn poll_move(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        let line = &mut self.session.line;
        let was_high = line.out.len() >= HIGH;
        let waited = self.loan.wire.out().len() >= TO_SERVER;
        if let Poll::Ready(flushed) = line.poll_flush(cx) {
            flushed?;
        }
        if let Poll::Ready(Err(error)) = self.loan.wire.poll_send(cx) {
            // The server's last words may still be there to be read.
            tracing::debug!(%error, "a server connection takes nothing any more");
            self.loan.wire.out().clear();
        }
        let mut came = (was_high && line.out.len() < HIGH)
            || (waited && self.loan.wire.out().len() < TO_SERVER);
        if line.out.len() < HIGH
            && !self.ended
            && let Poll::Ready(received) = self.loan.wire.poll_receive(cx)
        {
            self.ended = !received.is_ok_and(|bytes| bytes > 0);
            came = true;
        }
        if self.may_read()
            && let Poll::Ready(read) = self.session.line.poll_read(cx)
        {
            read?;
            came = true;
        }
        Ok(came)
    }

    /// Gives back what a silent client does not need.
    fn unburden(&mut self) {
        if self.queue.is_empty() && self.session.line.out.is_empty() {
            self.session.line.rest();
        }
    }

    /// True where the client is read on.
    fn may_read(&mut self) -> bool {
        !self.session.line.ended
            && !self.is_busy()
            && (self.session.line.inbox.len() < TO_SERVER || self.needs_more())
    }

    /// True where nothing more of the client is taken in for the moment.
    fn is_busy(&mut self) -> bool {
        self.loan.wire.out().len() >= TO_SERVER || self.queue.len() >= OUTSTANDING
    }

    /// True where the client has left, and nothing that it asked for is under way.
    fn is_over(&mut self) -> bool {
        // COPY data or a Sync that will never come is not waited for.
        self.session.line.ended
            && !self.is_busy()
            && !self.queue.is_owed()
            && self.awaited.is_none()
    }

    /// True where everything that was asked is answered, outside of a transaction.
    fn is_at_rest(&mut self) -> bool {
        self.status == b'I' && self.is_quiet()
    }

    /// True where everything that was asked is answered.
    fn is_quiet(&mut self) -> bool {
        let idle = self.queue.is_empty() && self.to_server == 0 && self.to_client == 0;
        idle && !self.open
            && !self.ended
            && self.loan.wire.out().is_empty()
            && self.loan.wire.received().is_empty()
    }
}
