//! The sessions of clients. A session reads messages and writes answers in their order. It submits
//! writes to a lane or to the spool, and relays everything else to a server connection.
//!
//! | module | what it does |
//! | --- | --- |
//! | here | the loop: reads messages, gives answers |
//! | `state` | what a session holds, and why it ends |
//! | `client_connection`, `last_read` | the client's connection, its buffers, memory for long messages; the last long text |
//! | `messages`, `segment` | simple queries; Parse, Bind, Describe, Execute, Close until Sync |
//! | `queries` | submits the writes of simple queries to the lane, those of one text together |
//! | `whole_block` | segments that contain a whole transaction block |
//! | `meaning` | decides if a statement is joined, relayed, or answered by the session itself |
//! | `submit` | submits units to the session's lane, or changes to a server connection |
//! | `rows`, `spool`, `keys` | rows that the spool answers, or that are executed once under a key |
//! | `pending`, `call_answer`, `expected_answer` | answers that wait for an outcome, and memory for long ones |
//! | `local`, `values` | answers of the session itself; values of sequences |
//! | `traces` | traced writes |
//! | `unsent_block` | a transaction block that the server does not know yet |
//! | `block_reasons` | the reasons why such a block needs a server connection |
//! | `keep`, `kept` | certain writes of such a block, answered at once and kept until COMMIT |
//! | `single_rows` | calls of several rows as calls of one row each |
//! | `computed` | the rows of certain writes |
//! | `relay` | everything that is not joined, over a server connection |

mod block_reasons;
mod call_answer;
mod client_connection;
mod computed;
mod expected_answer;
mod keep;
mod kept;
mod keys;
mod last_read;
mod local;
mod meaning;
mod messages;
mod pending;
mod queries;
mod relay;
mod rows;
mod segment;
mod single_rows;
mod spool;
mod state;
mod submit;
mod traces;
mod unsent_block;
mod values;
mod whole_block;

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::BufMut;
use tokio_util::sync::WaitForCancellationFuture;
use windrow_core::Fault;
use windrow_core::budget::SHORT;

use crate::admitted_client::AdmittedClient;
use crate::codec::message::{Front, HEADER, Violation};
use crate::codec::{answer, failure};
use crate::own::Allowed;
use crate::pool::Who;
use crate::session_info::{Interrupt, State};
use crate::shared::Shared;
use crate::statements::PreparedStatements;
use client_connection::{ClientConnection, HIGH};
use pending::PendingAnswers;
use segment::Segment;
use state::{End, NO_MEMORY, Session, UnsentBlock, no_memory, shutdown};
use values::Values;

/// The time in which a client may read the last messages.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs a session to its end. AuthenticationOk, ParameterStatus and BackendKeyData are sent
/// already; the session begins with ReadyForQuery.
pub(crate) fn run(client: AdmittedClient, shared: Arc<Shared>) -> impl Future<Output = ()> + Send {
    // Created outside of the future, which would otherwise contain both the client and the session.
    let mut session = Session::new(client, shared);
    async move {
        let end = session.serve().await;
        // Boxed, so that a session does not hold the memory of this rare call.
        Box::pin(session.leave(end, FAREWELL_TIMEOUT)).await;
    }
}

/// The most messages of one client handled in a row. Then other tasks run, and the sockets of other
/// clients are polled.
const TURN_MESSAGES: u16 = 1024;

impl Session {
    fn new(client: AdmittedClient, shared: Arc<Shared>) -> Self {
        Self {
            connection: ClientConnection::new(
                client.stream,
                client.received,
                shared.config.max_message,
            ),
            stop: client.info.admission.revoked.clone(),
            info: client.info,
            who: Who {
                identity: client.identity,
                settings: client.settings,
                application_name: client.application_name,
                credential: client.credential,
            },
            own: client.own.clone(),
            own_default: client.own,
            spooled: None,
            standard_strings: client.standard_strings,
            utf8: client.utf8,
            statements: PreparedStatements::default(),
            values: Values::default(),
            asks: false,
            reads_committed: None,
            epoch: 0,
            segment: Segment::default(),
            pending: PendingAnswers::default(),
            source: None,
            interest: None,
            unsent_block: None,
            cancel_requested: false,
            steps: 0,
            shared,
        }
    }

    /// Returns the features that the session may use.
    pub(crate) fn allowed(&self) -> Allowed<'_> {
        self.shared.allowed(&self.who.identity)
    }

    /// Resets Windrow's own settings to those at the start of the session.
    fn reset_own(&mut self) {
        self.own = self.own_default.clone();
    }

    /// Serves the client until something ends it.
    async fn serve(&mut self) -> End {
        self.connection.out.put_slice(answer::READY);
        let stop = self.stop.clone();
        let mut stopped = pin!(stop.cancelled());
        loop {
            match self.turn(stopped.as_mut()).await {
                Ok(()) => {}
                Err(end) => return end,
            }
        }
    }

    async fn turn(
        &mut self,
        mut stopped: Pin<&mut WaitForCancellationFuture<'_>>,
    ) -> Result<(), End> {
        while !self.is_full() {
            if !self.step().await? {
                break;
            }
            self.steps += 1;
            if self.steps == TURN_MESSAGES {
                self.steps = 0;
                tokio::task::yield_now().await;
            }
        }
        poll_fn(|cx| self.poll_wait(stopped.as_mut(), cx)).await
    }

    /// Waits while work is paused.
    pub(crate) async fn pass_gate(&self) -> Result<(), End> {
        let (gate, database) = (&self.shared.gate, &self.who.identity.database);
        if gate.is_open(database) {
            return Ok(());
        }
        let passing = Box::pin(async {
            tokio::select! {
                () = gate.pass(database) => Ok(()),
                () = self.stop.cancelled() => Err(End::Fatal(shutdown())),
            }
        });
        passing.await
    }

    /// Sends the last messages, and closes the connection.
    async fn leave(mut self, end: End, timeout: Duration) {
        self.pending = PendingAnswers::default();
        self.info.set_interrupt(Interrupt::Nothing).await;
        match end {
            End::Broken => return,
            // The client would not read the last messages either, and others need its memory.
            End::Unread => {
                tracing::info!(
                    client = self.info.pid,
                    "a client does not take its answers, for whose room others wait: its connection is closed"
                );
                return;
            }
            End::Left | End::EndedByServer => {}
            End::Fatal(fault) => {
                self.shared.metrics.refusal(fault.class);
                failure::fatal(&mut self.connection.out, &fault);
            }
        }
        self.connection.close(timeout).await;
    }

    /// Returns true if the client must read answers, or wait for some, before more is read from it.
    fn is_full(&self) -> bool {
        self.connection.out.len() >= HIGH || self.pending.is_full(&self.shared.budget)
    }

    /// Waits until an answer can be written or a message be read.
    fn poll_wait(
        &mut self,
        stopped: Pin<&mut WaitForCancellationFuture<'_>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), End>> {
        let was_full = self.is_full();
        self.connection.settle();
        let flushed = self.poll_say(cx)?;
        let part = self.segment.bytes;
        let budget = &self.shared.budget;
        if let Poll::Ready(stalled) = self.connection.poll_stalled(budget, part, cx) {
            return Poll::Ready(Err(End::from(stalled)));
        }
        if self.is_full() {
            return Poll::Pending;
        }
        if was_full {
            return Poll::Ready(Ok(()));
        }
        if !self.connection.ended && self.connection.poll_read(cx)?.is_ready() {
            if self.connection.ended
                && let Some(source) = &self.source
            {
                // The client has not sent Terminate, so it may be gone.
                source.lane.ports.intake.closed(source.id);
            }
            return Poll::Ready(Ok(()));
        }
        if !self.pending.is_empty() {
            return Poll::Pending;
        }
        if flushed {
            if self.connection.ended {
                return Poll::Ready(Err(End::Left));
            }
            self.info.set_state(State::Idle);
            self.connection.rest();
        }
        stopped.poll(cx).map(|()| Err(End::Fatal(shutdown())))
    }

    /// Handles the next message. Returns false if it has not arrived.
    async fn step(&mut self) -> Result<bool, End> {
        if self.unsent_block.is_some() && !keep::takes_front(self) {
            return Box::pin(unsent_block::step(self)).await;
        }
        let at = self.segment.bytes;
        let (tag, total) = match self.connection.front(at) {
            Ok(Front::Whole { tag, total }) => (tag, total),
            Ok(Front::Part { header }) => return Box::pin(self.part(header)).await,
            Err(violation) => return Box::pin(self.violated(violation)).await,
        };
        if self.segment.failed && !matches!(tag, b'S' | b'X') {
            self.connection.take(total);
            return Ok(true);
        }
        match tag {
            // A Sync with a body is an error, which the server reports in its own words.
            b'S' if total == HEADER || self.segment.failed => self.sync(total).await?,
            b'P' | b'B' | b'D' | b'E' | b'C' | b'H' if self.connection.needs_charge(at + total) => {
                return Box::pin(self.cover(tag, total)).await;
            }
            b'P' | b'B' | b'D' | b'E' | b'C' => self.extended(tag, total).await?,
            b'H' if total == HEADER => Box::pin(self.flush(total)).await?,
            b'Q' if at == 0 => self.simple(total).await?,
            b'X' => {
                self.connection.ended = true;
                return Ok(false);
            }
            // The rest of a COPY that failed.
            b'd' | b'c' | b'f' if at == 0 => self.connection.take(total),
            _ => {
                self.relay(
                    "a function call, messages without Sync, or a Sync or Flush with a body",
                )
                .await?;
            }
        }
        Ok(true)
    }

    /// Handles an invalid or too long message. It is skipped, and its query or segment fails.
    async fn violated(&mut self, violation: Violation) -> Result<bool, End> {
        self.drain().await?;
        let Violation::TooLong { tag, length, .. } = violation else {
            return Err(violation.into());
        };
        self.pass_over(tag, HEADER + length, &violation.fault());
        Ok(true)
    }

    /// Skips an incomplete message, and fails its query or segment.
    fn pass_over(&mut self, tag: u8, total: usize, fault: &Fault) {
        let before = std::mem::take(&mut self.segment.bytes);
        self.connection.take(before);
        self.connection.discard(total);
        if self.segment.failed {
            return;
        }
        if matches!(tag, b'P' | b'Q') {
            // A later Bind must not find the statement that this message would have replaced.
            self.statements.set(b"", None);
        }
        // Everything in a segment that fails is undone.
        self.segment.clear();
        failure::fault(&mut self.connection.out, fault);
        match tag {
            b'P' | b'B' | b'D' | b'E' | b'C' | b'H' => self.segment.failed = true,
            _ => self.connection.out.put_slice(answer::READY),
        }
    }

    /// Handles an incomplete message.
    async fn part(&mut self, header: Option<(u8, usize)>) -> Result<bool, End> {
        match header {
            Some((b'd', total)) if self.segment.bytes == 0 => {
                self.connection.discard(total);
                Ok(true)
            }
            Some((b'd', _)) => {
                // There it can be passed on in pieces.
                self.relay("COPY data without COPY").await?;
                Ok(true)
            }
            Some((tag, total)) if self.connection.needs_charge(self.segment.bytes + total) => {
                self.cover(tag, total).await
            }
            _ => Ok(false),
        }
    }

    /// Takes memory for everything up to the end of the current message. Returns true if the inbox
    /// must be examined again.
    async fn cover(&mut self, tag: u8, total: usize) -> Result<bool, End> {
        let (until, shared) = (self.segment.bytes + total, Arc::clone(&self.shared));
        let memory = (&shared.long_messages, &shared.budget);
        if self.connection.is_charged() {
            // No task may hold memory while it waits for more.
            if !self.connection.grow(memory, until) {
                self.relay_for_now(NO_MEMORY, &no_memory()).await?;
            }
        } else if let Err(fault) = self.connection.charge(memory, until).await {
            self.drain().await?;
            self.pass_over(tag, total, &fault);
        }
        Ok(true)
    }

    /// Writes and sends the answers that are ready, in order. Returns true if all of them have been
    /// sent.
    fn poll_say(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        loop {
            self.poll_answers(cx);
            let held_back = self.connection.out.len() >= HIGH;
            let flushed = self.connection.poll_flush(cx)?.is_ready();
            let behind = match held_back {
                true => self.pending.len() * SHORT,
                false => 0,
            };
            self.connection.count_answers(&self.shared.budget, behind);
            // Answers that were held back to save memory are examined again, because nothing else
            // would wake this task for them.
            if !held_back || self.connection.out.len() >= HIGH {
                return Ok(flushed);
            }
        }
    }

    fn poll_answers(&mut self, cx: &mut Context<'_>) {
        while self.connection.out.len() < HIGH
            && let Poll::Ready(Some((mut pending, outcome))) = self.pending.poll_next(cx)
        {
            if pending.is_of_spool() {
                spool::note_answered(self);
            }
            if let Some(answer) = pending.answer.take() {
                self.connection.keep_room(answer.known(outcome.as_ref()));
            }
            if let Some(outcome) = &outcome {
                self.info.count(outcome, pending.is_shared());
                pending.take_back(outcome, &mut self.statements);
            }
            if pending.leaves_failed_block(outcome.as_ref()) {
                self.unsent_block = Some(Box::new(UnsentBlock::failed()));
                pending.status = unsent_block::status(self);
            }
            let stopping = self.stop.is_cancelled();
            let (out, values) = (&mut self.connection.out, &mut self.values);
            pending.say(outcome, out, values, stopping);
        }
    }

    /// Waits until nothing is under way, so that the next statement sees all effects.
    async fn drain(&mut self) -> Result<(), End> {
        poll_fn(|cx| {
            self.poll_say(cx)?;
            if self.pending.is_empty() {
                return Poll::Ready(Ok(()));
            }
            let (budget, part) = (&self.shared.budget, self.segment.bytes);
            let stalled = self.connection.poll_stalled(budget, part, cx);
            stalled.map(|stalled| Err(End::from(stalled)))
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size<A, B, F: Future>(_: fn(A, B) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn a_silent_session_is_small() {
        let (future, state) = (size(run), size_of::<Session>());
        assert!(
            future <= 3144,
            "{future} bytes, of which {state} are its state"
        );
    }
}
