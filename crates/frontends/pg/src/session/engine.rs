//! A session: its state and its loop.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::BufMut;
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};
use windrow_core::{Described, Fault, FaultClass};

use super::Client;
use super::charge;
use super::lane::Wish;
use super::line::{HIGH, Line};
use super::pending::Pending;
use super::seat::Seat;
use super::segment::Segment;
use super::statements::Statements;
use super::values::Values;
use crate::client::Settings;
use crate::codec::frame::{Front, HEADER, Violation};
use crate::codec::{answer, failure};
use crate::house::House;
use crate::pool::Who;
use crate::presence::{Interrupt, Presence, State};
use crate::relay;

/// Units of one client that are under way at once. One that pipelines more is read more slowly.
const UNDER_WAY: usize = 128;

/// One client's session.
pub(crate) struct Session {
    pub(crate) house: Arc<House>,
    pub(crate) presence: Arc<Presence>,
    pub(crate) line: Line,
    /// Who the client is, and under which settings it works.
    pub(crate) who: Who,
    /// `windrow.join`, and what it was at the start.
    pub(crate) join: bool,
    pub(crate) join_default: bool,
    pub(crate) standard_strings: bool,
    pub(crate) utf8: bool,
    pub(crate) statements: Statements,
    pub(crate) values: Values,
    /// It has asked what sequences gave in a way that only its server connection can answer: what
    /// takes from them goes there from now on, and it keeps the connection.
    pub(crate) asks: bool,
    /// The state of the catalog in which the sequence that it used last was there.
    pub(super) epoch: u64,
    pub(super) segment: Segment,
    pub(super) pending: VecDeque<Pending>,
    pub(super) seat: Option<Seat>,
    /// The lane that it wants to be in.
    pub(super) wish: Option<Arc<Wish>>,
    /// What a lane has just said of a statement, by their numbers: found even where the lane does
    /// not keep it.
    pub(super) fresh: Option<(u64, u64, Described)>,
    /// True once what the client is about to have executed is not to be: it asked for that while a
    /// lane described it.
    pub(crate) called_back: bool,
    /// Cancelled when the house stops, or the client would not be let in any more.
    pub(crate) stop: CancellationToken,
}

/// Why a session ends.
#[derive(Debug)]
pub(crate) enum End {
    /// The client has left.
    Left,
    /// The client cannot be reached any more.
    Broken,
    /// The client is told why.
    Fatal(Fault),
    /// The client was told why by its server.
    Told,
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        tracing::debug!(%error, "a client is gone");
        Self::Broken
    }
}

impl From<Violation> for End {
    fn from(violation: Violation) -> Self {
        Self::Fatal(violation.fault())
    }
}

impl Session {
    pub(super) fn new(client: Client, house: Arc<House>) -> Self {
        Self {
            line: Line::new(client.stream, client.received, house.config.max_message),
            stop: client.presence.warrant.revoked.clone(),
            presence: client.presence,
            who: Who {
                identity: client.identity,
                settings: client.settings,
                application_name: client.application_name,
                credential: client.credential,
            },
            join: client.join,
            join_default: client.join,
            standard_strings: client.standard_strings,
            utf8: client.utf8,
            statements: Statements::default(),
            values: Values::default(),
            asks: false,
            epoch: 0,
            segment: Segment::default(),
            pending: VecDeque::new(),
            seat: None,
            wish: None,
            fresh: None,
            called_back: false,
            house,
        }
    }

    /// Serves the client until something ends it.
    pub(super) async fn serve(&mut self) -> End {
        self.line.out.put_slice(answer::READY);
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
        }
        poll_fn(|cx| self.poll_wait(stopped.as_mut(), cx)).await
    }

    /// Says the last words.
    pub(super) async fn leave(mut self, end: End, patience: Duration) {
        self.pending.clear();
        self.presence.set_interrupt(Interrupt::Nothing).await;
        match end {
            End::Broken => return,
            End::Left | End::Told => {}
            End::Fatal(fault) => failure::fatal(&mut self.line.out, &fault),
        }
        self.line.close(patience).await;
    }

    /// True where the client has to take answers, or to wait for some, before more of it is read.
    fn is_full(&self) -> bool {
        self.pending.len() >= UNDER_WAY || self.line.out.len() >= HIGH
    }

    /// Waits until there is something to do: an answer to be given, or a message to be read.
    fn poll_wait(
        &mut self,
        stopped: Pin<&mut WaitForCancellationFuture<'_>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), End>> {
        let was_full = self.is_full();
        self.line.settle();
        let flushed = self.poll_say(cx)?;
        let part = self.segment.bytes;
        if self
            .line
            .poll_stalled(&self.house.budget, part, cx)
            .is_ready()
        {
            return Poll::Ready(Err(End::Fatal(charge::stalled())));
        }
        if self.is_full() {
            return Poll::Pending;
        }
        if was_full {
            return Poll::Ready(Ok(()));
        }
        if !self.line.ended && self.line.poll_read(cx)?.is_ready() {
            if self.line.ended
                && let Some(seat) = &self.seat
            {
                // It has not said good-bye: whoever was to be told may be gone.
                seat.lane.door.intake.closed(seat.source);
            }
            return Poll::Ready(Ok(()));
        }
        if !self.pending.is_empty() {
            return Poll::Pending;
        }
        if flushed {
            if self.line.ended {
                return Poll::Ready(Err(End::Left));
            }
            self.presence.set_state(State::Idle);
            self.line.rest();
        }
        stopped.poll(cx).map(|()| Err(End::Fatal(shutdown())))
    }

    /// Says what can be said, in order, and sends it. True if all of that has left.
    fn poll_say(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        loop {
            self.poll_answers(cx);
            let held_back = self.line.out.len() >= HIGH;
            let flushed = self.line.poll_flush(cx)?.is_ready();
            // What was held back for the sake of memory is looked at again, or nobody would wake
            // this up for it.
            if !held_back || self.line.out.len() >= HIGH {
                return Ok(flushed);
            }
        }
    }

    fn poll_answers(&mut self, cx: &mut Context<'_>) {
        while let Some(front) = self.pending.front_mut()
            && self.line.out.len() < HIGH
        {
            let outcome =
                match &mut front.receipt {
                    None => None,
                    Some(receipt) => match Pin::new(receipt).poll(cx) {
                        Poll::Pending => return,
                        Poll::Ready(mut outcomes) => Some(outcomes.pop().unwrap_or_else(|| {
                            Err(Fault::internal("a unit was not answered").into())
                        })),
                    },
                };
            if let Some(pending) = self.pending.pop_front() {
                let stopping = self.stop.is_cancelled();
                pending.say(outcome, &mut self.line.out, &mut self.values, stopping);
            }
        }
    }

    /// Waits until nothing is under way any more, so that what comes next sees all of it.
    pub(super) async fn drain(&mut self) -> Result<(), End> {
        poll_fn(|cx| {
            self.poll_say(cx)?;
            match self.pending.is_empty() {
                true => Poll::Ready(Ok(())),
                false => Poll::Pending,
            }
        })
        .await
    }

    /// Waits while work is held back.
    pub(crate) async fn pass_gate(&self) -> Result<(), End> {
        let (gate, database) = (&self.house.gate, &self.who.identity.database);
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

    /// Deals with the next message, if it is there. False: it is not.
    async fn step(&mut self) -> Result<bool, End> {
        let at = self.segment.bytes;
        let (tag, total) = match self.line.front(at) {
            Ok(Front::Whole { tag, total }) => (tag, total),
            Ok(Front::Part { header }) => return Box::pin(self.part(header)).await,
            Err(violation) => return Box::pin(self.violated(violation)).await,
        };
        if self.segment.failed && !matches!(tag, b'S' | b'X') {
            self.line.take(total);
            return Ok(true);
        }
        match tag {
            b'S' => self.sync(total).await?,
            b'P' | b'B' | b'D' | b'E' | b'C' | b'H' if self.line.needs_charge(at + total) => {
                return Box::pin(self.cover(tag, total)).await;
            }
            b'P' | b'B' | b'D' | b'E' | b'C' => self.extended(tag, total).await?,
            b'H' => Box::pin(self.flush(total)).await?,
            b'Q' if at == 0 => self.simple(total).await?,
            b'X' => {
                self.line.ended = true;
                return Ok(false);
            }
            // What is left of a COPY that failed.
            b'd' | b'c' | b'f' if at == 0 => self.line.take(total),
            _ => {
                self.relay("a function call, or messages without Sync")
                    .await?;
            }
        }
        Ok(true)
    }

    /// Deals with what is no message, or too long a one. That one is passed over, and what it
    /// belongs to fails.
    async fn violated(&mut self, violation: Violation) -> Result<bool, End> {
        self.drain().await?;
        let Violation::TooLong { tag, length, .. } = violation else {
            return Err(violation.into());
        };
        self.pass_over(tag, HEADER + length, &violation.fault());
        Ok(true)
    }

    /// Passes over a message of which a part is there; what it belongs to fails.
    fn pass_over(&mut self, tag: u8, total: usize, fault: &Fault) {
        let before = std::mem::take(&mut self.segment.bytes);
        self.line.take(before);
        self.line.discard(total);
        if self.segment.failed {
            return;
        }
        // All of a segment that fails is undone.
        self.segment.clear();
        failure::fault(&mut self.line.out, fault);
        match tag {
            b'P' | b'B' | b'D' | b'E' | b'C' | b'H' => self.segment.failed = true,
            _ => self.line.out.put_slice(answer::READY),
        }
    }

    /// A part of a message is there.
    async fn part(&mut self, header: Option<(u8, usize)>) -> Result<bool, End> {
        match header {
            Some((b'd', total)) if self.segment.bytes == 0 => {
                self.line.discard(total);
                Ok(true)
            }
            Some((b'd', _)) => {
                // A piece at a time may be passed on there.
                self.relay("COPY data without COPY").await?;
                Ok(true)
            }
            Some((tag, total)) if self.line.needs_charge(self.segment.bytes + total) => {
                self.cover(tag, total).await
            }
            _ => Ok(false),
        }
    }

    /// Takes memory for all up to the end of the message at hand. True: the inbox is to be looked
    /// at again.
    async fn cover(&mut self, tag: u8, total: usize) -> Result<bool, End> {
        let (until, house) = (self.segment.bytes + total, Arc::clone(&self.house));
        let memory = (&house.long_messages, &house.budget);
        if self.line.is_charged() {
            // Nobody holds some memory and waits for more.
            if !self.line.grow(memory, until) {
                self.relay("more than the memory budget holds").await?;
            }
        } else if let Err(fault) = self.line.charge(memory, until).await {
            self.drain().await?;
            self.pass_over(tag, total, &fault);
        }
        Ok(true)
    }

    /// Goes over to a server connection with what is in the inbox, until nothing of the session is
    /// left there.
    pub(super) async fn relay(&mut self, reason: &'static str) -> Result<(), End> {
        self.drain().await?;
        let answered = self.segment.answered;
        self.segment.clear();
        let settings = self.who.settings.clone();
        let end = Box::pin(relay::run(self, answered, reason)).await;
        self.after_relay(&settings).await;
        end
    }

    async fn after_relay(&mut self, before: &Settings) {
        if self.who.settings != *before {
            self.seat = None;
        }
        let interrupt = match &self.seat {
            Some(seat) => seat.interrupt(),
            None => Interrupt::Nothing,
        };
        self.presence.set_interrupt(interrupt).await;
    }
}

/// What a client is told when Windrow stops.
pub(crate) fn shutdown() -> Fault {
    Fault::new(
        FaultClass::Unavailable,
        "57P01",
        "terminating connection due to administrator command",
    )
}
