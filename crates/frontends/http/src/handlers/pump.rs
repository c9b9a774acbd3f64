//! A body of many independent rows. The pump reads rows, submits them in portions to the lane or
//! the spool, and collects their outcomes, all at the same time and with limited memory. If the
//! lane falls behind, or the memory budget is full, the pump reads the socket more slowly, which
//! slows down the client.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http::StatusCode;
use tokio::time::timeout;
use windrow_core::intake::Receipt;
use windrow_core::{Budget, Fault, Outcomes, Permit, Unit, Units, Write};
use windrow_idempotency::Extent;

use crate::ack::Ack;
use crate::answers::expected::ExpectedAnswers;
use crate::answers::ledger::Ledger;
use crate::answers::{self, Answer, Refusal, Report};
use crate::bodies::Feed;
use crate::bodies::charge::Charge;
use crate::plan::Plan;
use crate::request::{RequestContext, Turn};
use crate::rows::object::RowError;
use crate::rows::{RowReceiver, RowStream};

/// The most rows submitted together.
const PORTION_ROWS: usize = 1000;
/// The bytes after which rows are submitted.
const PORTION_BYTES: usize = 256 << 10;
/// The most portions under way.
const MAX_PORTIONS: usize = 4;
/// The memory that is taken before rows are read: a portion, and some for the row that exceeds it.
const RESERVED_BYTES: usize = PORTION_BYTES + (64 << 10);
/// The bytes of an incomplete row that are not charged, because they fit into a connection's
/// buffers.
const FREE_CARRY_BYTES: usize = 32 << 10;
/// The length up to which bodies of known length get 429 if the budget is full; longer ones wait.
const SHORT_BODY_BYTES: u64 = 256 << 10;

/// Reads the whole body. An unreadable row gets its error in its place, and later rows are read.
/// After an error of the body itself, the answer contains the results so far and the error.
pub(crate) async fn run(
    request: &RequestContext<'_>,
    ack: Ack,
    plan: &Plan,
    rows: RowStream<'_>,
    first: Bytes,
    feed: &mut Feed<'_>,
) -> Result<Answer, Refusal> {
    let budget = request.app.budget().clone();
    // An envelope's body already holds memory, so it must not wait for more without a limit.
    let short = feed.is_held() || feed.length().is_some_and(|n| n <= SHORT_BODY_BYTES);
    let mut pump = Pump {
        request,
        ack,
        turn: None,
        feed,
        rows,
        portion: Portion::default(),
        under_way: VecDeque::with_capacity(MAX_PORTIONS),
        ledger: Ledger::new(plan.options.results, ack, budget.clone()),
        carry: Charge::new(budget.clone()),
        carried: 0,
        patient: !short,
        handed_over: false,
        unread: None,
        budget,
    };
    let mut early = pump.read(first).await.err();
    let last = pump.finish().await;
    early = early.or(last.err());
    if !pump.handed_over {
        // Not one row could be read: the first error says more than a list of all of them.
        early = pump.unread.take().or(early);
    }
    if early.is_none() {
        early = pump.end().await.err();
    }
    if early.is_none() && pump.turn.is_none() && ack == Ack::Spool {
        // A body without rows: nothing was submitted, but the answer has a place in the spool
        // nevertheless.
        request.turn(ack, false).await?.remember();
    }
    let status = match &early {
        // Nothing was submitted: answer like any other refused request.
        Some(refusal) if !pump.handed_over => return Err(refusal.clone()),
        Some(refusal) => refusal.status(),
        None if pump.ledger.errors() == 0 => ack.status(),
        None => StatusCode::MULTI_STATUS,
    };
    let mut answer = answers::chunked_json(status, Report::new(pump.ledger, early));
    answers::add_retry(&mut answer);
    Ok(answer)
}

struct Pump<'p, 'f> {
    request: &'p RequestContext<'p>,
    ack: Ack,
    /// Taken with the first portion, and held until all portions are answered.
    turn: Option<Turn<'p>>,
    feed: &'p mut Feed<'f>,
    rows: RowStream<'p>,
    portion: Portion,
    under_way: VecDeque<Sent>,
    ledger: Ledger,
    /// The memory of the incomplete row.
    carry: Charge,
    carried: usize,
    /// True if the pump waits while the budget is full.
    patient: bool,
    /// True once a row was submitted.
    handed_over: bool,
    /// The first unreadable row.
    unread: Option<Refusal>,
    budget: Budget,
}

/// Unreadable rows, each with the number of readable rows before it in its portion.
type Unread = Vec<(usize, RowError)>;

/// A portion under way.
struct Sent {
    answer: Awaited,
    unread: Unread,
    /// The expected answers, if they may be long.
    room: Option<Box<ExpectedAnswers>>,
}

/// The outcomes of a portion's readable rows.
enum Awaited {
    Lane(Receipt),
    /// The outcomes are known already.
    There(Outcomes),
}

impl Sent {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Outcomes> {
        match &mut self.answer {
            Awaited::Lane(receipt) => Pin::new(receipt).poll(cx),
            Awaited::There(outcomes) => Poll::Ready(std::mem::take(outcomes)),
        }
    }
}

/// Rows that were read and not submitted yet.
#[derive(Default)]
struct Portion {
    units: Vec<Unit>,
    unread: Unread,
    bytes: usize,
    permit: Option<Permit>,
}

impl RowReceiver for Portion {
    fn is_full(&self) -> bool {
        self.units.len() + self.unread.len() >= PORTION_ROWS || self.bytes >= PORTION_BYTES
    }

    fn take(&mut self, write: Write) {
        let unit = Unit::one(write);
        self.bytes += unit.bytes();
        self.units.push(unit);
    }

    fn refuse(&mut self, error: RowError) -> Result<(), RowError> {
        self.bytes += error.fault.bytes();
        self.unread.push((self.units.len(), error));
        Ok(())
    }
}

/// An event that wakes the pump.
enum Event {
    Chunk(Option<Bytes>),
    Settled(Outcomes, Box<Sent>),
    /// No bytes are available at this moment, and the lane can accept the rows read so far.
    Paused,
}

impl Portion {
    fn is_empty(&self) -> bool {
        self.units.is_empty() && self.unread.is_empty()
    }
}

/// Lets the lane send its next batch before more is read. A client that has just been answered runs
/// before the lane does, and reading a portion takes about as long as the database needs for one:
/// meanwhile the database would be idle.
async fn let_next_batch_leave() {
    tokio::task::yield_now().await;
}

impl Pump<'_, '_> {
    async fn read(&mut self, first: Bytes) -> Result<(), Refusal> {
        self.parse(first).await?;
        loop {
            match self.next().await? {
                Event::Chunk(Some(chunk)) => self.parse(chunk).await?,
                Event::Chunk(None) => break,
                Event::Settled(outcomes, sent) => {
                    self.settle(outcomes, *sent).await?;
                    let_next_batch_leave().await;
                }
                Event::Paused => self.hand_over().await?,
            }
        }
        self.reserve().await?;
        Ok(self.rows.finish(&mut self.portion)?)
    }

    /// Waits for the next event. If the sender pauses, its rows are submitted: none are held back
    /// to collect more.
    async fn next(&mut self) -> Result<Event, Refusal> {
        if self.portion.is_empty() {
            self.portion.permit = None;
        }
        self.feed.take_turns().await;
        std::future::poll_fn(|cx| {
            if let Poll::Ready(chunk) = self.feed.poll_chunk(cx) {
                return Poll::Ready(chunk.map(Event::Chunk));
            }
            if !self.portion.is_empty() && self.under_way.len() < MAX_PORTIONS {
                return Poll::Ready(Ok(Event::Paused));
            }
            if let Some(oldest) = self.under_way.front_mut()
                && let Poll::Ready(outcomes) = oldest.poll(cx)
                && let Some(sent) = self.under_way.pop_front()
            {
                return Poll::Ready(Ok(Event::Settled(outcomes, Box::new(sent))));
            }
            Poll::Pending
        })
        .await
    }

    async fn parse(&mut self, mut chunk: Bytes) -> Result<(), Refusal> {
        self.feed.pause();
        while !chunk.is_empty() {
            self.reserve().await?;
            let used = self.rows.push(&chunk, &mut self.portion)?;
            chunk.advance(used);
            if self.portion.is_full() {
                self.hand_over().await?;
            }
        }
        self.charge_carry()
    }

    /// Reserves memory before rows are read.
    async fn reserve(&mut self) -> Result<(), Refusal> {
        if self.portion.permit.is_none() {
            let wanted = RESERVED_BYTES.min(self.budget.total() / 2);
            let permit = if self.patient {
                self.take(wanted).await?
            } else {
                self.budget.try_take(wanted)?
            };
            self.portion.permit = Some(permit);
            // A body that has begun is not ended for lack of memory.
            self.patient = true;
        }
        Ok(())
    }

    /// Waits for memory: without a limit if this body holds none, for a while if it does, because
    /// bodies that hold memory and wait for more could be waiting for each other. (What the lane
    /// holds for this body is returned by itself.)
    async fn take(&self, bytes: usize) -> Result<Permit, Fault> {
        if self.carried == 0 && !self.ledger.holds_memory() && !self.feed.is_held() {
            return self.budget.take(bytes).await;
        }
        let wait = self.request.app.config.body_timeout;
        match timeout(wait, self.budget.take(bytes)).await {
            Ok(taken) => taken,
            Err(_) => self.budget.try_take(bytes),
        }
    }

    fn charge_carry(&mut self) -> Result<(), Refusal> {
        let held = self.rows.held();
        let due = if held > FREE_CARRY_BYTES { held } else { 0 };
        self.carry.add(due.saturating_sub(self.carried))?;
        self.carry.remove(self.carried.saturating_sub(due));
        self.carried = due;
        self.feed.holds(due > 0);
        Ok(())
    }

    /// Submits the portion. If too many are under way, waits until one of them is answered.
    async fn hand_over(&mut self) -> Result<(), Refusal> {
        self.feed.pause();
        let was_full = self.under_way.len() >= MAX_PORTIONS;
        while self.under_way.len() >= MAX_PORTIONS {
            self.settle_oldest().await?;
        }
        self.send_portion().await?;
        if was_full {
            let_next_batch_leave().await;
        }
        Ok(())
    }

    async fn send_portion(&mut self) -> Result<(), Refusal> {
        let mut portion = std::mem::take(&mut self.portion);
        if portion.is_empty() {
            return Ok(());
        }
        let unread = std::mem::take(&mut portion.unread);
        if let (None, Some((_, first))) = (&self.unread, unread.first()) {
            self.unread = Some(first.clone().into());
        }
        let room = self.room_for(&mut portion).await?;
        let answer = match portion.units.is_empty() {
            true => Awaited::There(Outcomes::new()),
            false => self.submit(portion).await?,
        };
        let room = room.map(Box::new);
        self.under_way.push_back(Sent {
            answer,
            unread,
            room,
        });
        Ok(())
    }

    /// Takes memory for the answers to a portion. No body holds some of it and waits for more: if
    /// there is none at once, the portions under way are answered first, and then counted with the
    /// results.
    async fn room_for(
        &mut self,
        portion: &mut Portion,
    ) -> Result<Option<ExpectedAnswers>, Refusal> {
        let app = self.request.app;
        let mut expected = app.usual_answers.of(&mut portion.units);
        if let Some(answers) = &mut expected {
            let room = app.budget().answers();
            while !self.under_way.is_empty() && !answers.try_take(room) {
                self.settle_oldest().await?;
            }
            if self.under_way.is_empty() {
                answers.take(room).await?;
            }
        }
        Ok(expected)
    }

    async fn submit(&mut self, portion: Portion) -> Result<Awaited, Refusal> {
        let held = portion.permit.unwrap_or_else(Permit::empty);
        let permit = self.cover(held, portion.bytes).await?;
        let count = portion.units.len();
        let turn = match self.turn.take() {
            Some(turn) => turn,
            None => self.request.turn(self.ack, false).await?,
        };
        let turn = self.turn.insert(turn);
        if self.request.key(self.ack).is_some() {
            let run = turn.run(portion.units, count, permit, Extent::More);
            let outcomes = Box::pin(run).await?;
            self.handed_over = true;
            return Ok(Awaited::There(outcomes));
        }
        let receipt = turn.submit(portion.units, count, permit).await?;
        self.handed_over = true;
        Ok(Awaited::Lane(receipt))
    }

    /// Returns memory for exactly what was read. A row may need more than was reserved. A body that
    /// waits for the difference must not hold the rest, or bodies could wait for each other
    /// forever.
    async fn cover(&self, mut held: Permit, bytes: usize) -> Result<Permit, Fault> {
        match self.budget.try_take(bytes.saturating_sub(held.bytes())) {
            Ok(more) => {
                held.merge(more);
                held.shrink_to(bytes);
                Ok(held)
            }
            Err(_) => {
                drop(held);
                self.take(bytes).await
            }
        }
    }

    async fn settle_oldest(&mut self) -> Result<(), Refusal> {
        let Some(mut oldest) = self.under_way.pop_front() else {
            return Ok(());
        };
        let outcomes = std::future::poll_fn(|cx| oldest.poll(cx)).await;
        self.settle(outcomes, oldest).await
    }

    async fn settle(&mut self, outcomes: Outcomes, sent: Sent) -> Result<(), Refusal> {
        let Sent { unread, room, .. } = sent;
        // Held until the answers are charged with all results.
        let _room = room.map(|room| room.known(self.budget.answers(), &outcomes));
        let outcomes = match &self.turn {
            Some(turn) => turn.settle(outcomes),
            None => outcomes,
        };
        let mut unread = unread.into_iter().peekable();
        for (at, outcome) in outcomes.into_iter().enumerate() {
            while let Some((_, error)) = unread.next_if(|(before, _)| *before <= at) {
                self.ledger.push(Err(error.into_fault().into()));
            }
            self.ledger.push(outcome);
        }
        unread.for_each(|(_, error)| self.ledger.push(Err(error.into_fault().into())));
        self.feed.pause();
        let wait = self.request.app.config.body_timeout;
        Ok(self.ledger.charge(wait).await?)
    }

    /// Submits the remaining rows and waits for all outcomes, whatever fails.
    async fn finish(&mut self) -> Result<(), Refusal> {
        let mut end = self.hand_over().await;
        self.request.handover.complete();
        while !self.under_way.is_empty() {
            end = end.and(self.settle_oldest().await);
        }
        end
    }

    /// Ends a request with a key: all of its rows were read and answered.
    async fn end(&mut self) -> Result<(), Refusal> {
        match &self.turn {
            Some(turn) if self.ack == Ack::Commit && self.request.key(self.ack).is_some() => {
                let nothing = Units::new();
                let run = turn.run(nothing, 0, Permit::empty(), Extent::Last);
                Box::pin(run).await.map(drop)
            }
            _ => Ok(()),
        }
    }
}
