//! The extended protocol, as far as its messages can be joined.

use std::sync::Arc;
use std::time::Instant;

use tokio_util::sync::CancellationToken;
use windrow_core::{Described, Fault, Op};
use windrow_sql::{Apart, Effect, Reading};

use super::engine::{End, Session};
use super::lane::Lane;
use super::pending::{Ending, Pending};
use super::readings::{Prepared, Readings};
use super::segment::{Elsewhere, Local, Meaning, Portal};
use super::statements::{Entry, Statements};
use crate::codec::failure;
use crate::codec::message::{Kind, Message};
use crate::presence::Interrupt;

/// What follows from a message.
pub(super) enum Next {
    /// The next one.
    Go,
    /// The segment goes to a server connection.
    Relay(&'static str),
    /// The lane is asked what a statement means, then the message is looked at again.
    Describe(Arc<Prepared>),
    /// What is under way has to end, then the message is looked at again.
    Drain,
    /// The session answers by itself.
    Local(Local),
}

impl From<Elsewhere> for Next {
    fn from(elsewhere: Elsewhere) -> Self {
        Self::Relay(elsewhere.0)
    }
}

impl Session {
    /// Deals with Parse, Bind, Describe, Execute or Close.
    pub(super) async fn extended(&mut self, tag: u8, total: usize) -> Result<(), End> {
        if self.segment.bytes + total > self.house.config.max_pending {
            return self.relay("more than max_pending bytes before Sync").await;
        }
        if self.segment.is_crowded() {
            return self.relay("many names before Sync").await;
        }
        if tag == b'P' {
            // What is said of a statement must have been true at some time after it was parsed.
            self.segment.parsed_at.get_or_insert_with(Instant::now);
        }
        loop {
            let next = self.look(tag, total).unwrap_or_else(|next| next);
            match next {
                Next::Go => break,
                Next::Relay(reason) => return self.relay(reason).await,
                Next::Drain => self.drain().await?,
                Next::Describe(prepared) => {
                    let described = Box::pin(self.describe(&prepared)).await;
                    drop(prepared);
                    if let Err(reason) = described {
                        return self.relay(reason).await;
                    }
                }
                Next::Local(local) => {
                    match self.answer(&local.prepared).await {
                        Ok(reply) => {
                            reply.say(&mut self.segment.script.text, &local.results, false);
                            self.segment.messages += 1;
                            self.segment.did_local = true;
                        }
                        Err(fault) => return self.fail(&fault, total),
                    }
                    break;
                }
            }
        }
        self.fresh = None;
        self.segment.bytes += total;
        Ok(())
    }

    /// Tells the client so. What follows up to the Sync is passed over, and the segment will not go
    /// anywhere else.
    fn fail(&mut self, fault: &Fault, total: usize) -> Result<(), End> {
        failure::fault(&mut self.segment.script.text, fault);
        self.segment.failed = true;
        self.line.take(self.segment.bytes + total);
        self.segment.bytes = 0;
        self.fresh = None;
        Ok(())
    }

    fn look(&mut self, tag: u8, total: usize) -> Result<Next, Next> {
        let lane = self.seat.as_ref().map(|seat| &seat.lane);
        let Self {
            line,
            segment,
            statements,
            fresh,
            ..
        } = self;
        let view = View {
            join: self.join,
            utf8: self.utf8,
            readings: &self.house.readings,
            lane,
            fresh: fresh.as_ref(),
            under_way: !self.pending.is_empty(),
            in_segment: !segment.calls.is_empty(),
            generated: self.values.last().is_some(),
            asks: self.asks,
        };
        match Message::read(tag, line.body(segment.bytes, total)) {
            Message::Parse(parse) => {
                let known = segment.statement(parse.name, statements).is_some();
                if !parse.name.is_empty() && !segment.calls.is_empty() {
                    return Err(Next::Relay(BEHIND));
                }
                if !parse.name.is_empty() && (known || statements.is_full()) {
                    return Err(Next::Relay("a statement of a name that is taken"));
                }
                let prepared = self
                    .house
                    .readings
                    .get(parse.text, parse.type_oids(), self.utf8);
                let entry = Entry::new(prepared);
                let meaning = view.of(&entry, statements)?;
                let entry = view.seen(entry, &meaning);
                segment.parse(parse.name, entry);
            }
            Message::Bind(bind) => {
                let entry = segment.statement(bind.statement, statements);
                let entry = entry.ok_or(Next::Relay("an unknown statement"))?;
                let meaning = view.of(entry, statements)?;
                let (prepared, stale) = (Arc::clone(&entry.prepared), view.is_stale(entry));
                let fresh = entry.told.get().is_none().then(|| entry.told.clone());
                if let (true, Meaning::Call(statement), Some(lane)) = (stale, &meaning, lane) {
                    let seen = (lane.number, Arc::clone(statement));
                    segment.see(bind.statement, seen, statements);
                }
                segment.bind(&bind, (&prepared, fresh), meaning)?;
            }
            Message::Describe(Kind::Statement, name) => {
                let entry = segment.statement(name, statements);
                let entry = entry.ok_or(Next::Relay("an unknown statement"))?;
                let meaning = view.of(entry, statements)?;
                let prepared = Arc::clone(&entry.prepared);
                segment.describe_statement(&prepared, &meaning);
            }
            Message::Describe(Kind::Portal, name) => segment.describe_portal(name)?,
            Message::Execute(name, rows) => {
                return segment_execute(segment, name, rows, !self.pending.is_empty());
            }
            // The server passes over it where the call before it fails.
            Message::Close(Kind::Statement, [_, ..]) if !segment.calls.is_empty() => {
                return Err(Next::Relay(BEHIND));
            }
            Message::Close(kind, name) => segment.close(kind, name)?,
            _ => return Err(Next::Relay("a malformed message")),
        }
        Ok(Next::Go)
    }

    /// Asks the lane what a statement means.
    ///
    /// # Errors
    /// Why it goes to a server connection.
    pub(super) async fn describe(&mut self, prepared: &Prepared) -> Result<(), &'static str> {
        let draft = prepared.draft().ok_or("not a write")?;
        self.sit().await.map_err(|fault| away(&fault))?;
        let Some(seat) = &self.seat else {
            return Err("its lane has ended");
        };
        let (presence, idle) = (&self.presence, self.pending.is_empty());
        let asked = CancellationToken::new();
        if idle {
            // Nothing else can be meant: this may wait for a table's lock.
            let interrupt = Interrupt::Waiting(asked.clone());
            presence.set_interrupt(interrupt).await;
        }
        let described = tokio::select! {
            described = seat.lane.describe(prepared.number, draft) => Some(described),
            () = asked.cancelled() => None,
        };
        if idle {
            presence.set_interrupt(seat.interrupt()).await;
        }
        let Some(described) = described else {
            self.called_back = true;
            return Err("cancelled before it was known");
        };
        if let Ok(Described::Apart(apart)) = &described {
            let database = &self.who.identity.database;
            self.house.bypass.learn(database, apart);
        }
        self.fresh = Some((
            seat.lane.number,
            prepared.number,
            described.map_err(|fault| away(&fault))?,
        ));
        Ok(())
    }

    /// Whether the types are true that the statements of the segment are about to get for good.
    async fn check_types(&self) -> bool {
        let unfixed = self.segment.unfixed();
        let (Some(seat), Some(since)) = (&self.seat, self.segment.parsed_at) else {
            return unfixed.is_empty();
        };
        for entry in unfixed {
            let Some((_, statement)) = &entry.seen else {
                continue;
            };
            let asking = seat.lane.holds(entry.prepared.number, statement, since);
            if !Box::pin(asking).await.unwrap_or_default() {
                return false;
            }
        }
        true
    }

    /// Deals with Flush.
    pub(super) async fn flush(&mut self, total: usize) -> Result<(), End> {
        if !self.segment.calls.is_empty() || self.segment.has_open_portal() {
            return self.relay("Flush before Sync").await;
        }
        if self.segment.bytes + total > self.house.config.max_pending {
            return self.relay("more than max_pending bytes before Sync").await;
        }
        if !self.check_types().await {
            return self.relay(CHANGED).await;
        }
        self.segment.fix();
        let script = std::mem::take(&mut self.segment.script);
        self.pending.push_back(Pending {
            receipt: None,
            script,
            ending: Ending::Open,
        });
        self.segment.answered = self.segment.messages;
        self.segment.bytes += total;
        Ok(())
    }

    /// Deals with Sync.
    pub(super) async fn sync(&mut self, total: usize) -> Result<(), End> {
        if self.segment.has_open_portal() {
            return self.relay("a portal that is not executed").await;
        }
        if !self.check_types().await {
            return self.relay(CHANGED).await;
        }
        let script = std::mem::take(&mut self.segment.script);
        let calls = std::mem::take(&mut self.segment.calls);
        let taken = self.segment.bytes + total;
        if calls.is_empty() {
            self.pending.push_back(Pending {
                receipt: None,
                script,
                ending: Ending::Sync,
            });
            self.segment.define(&mut self.statements);
            self.line.take(taken);
            self.segment.clear();
            return Ok(());
        }
        self.submit(calls, script, Ending::Sync, taken).await
    }
}

/// Why a lane's refusal sends a statement to a server connection.
fn away(fault: &Fault) -> &'static str {
    if *fault.message == *super::lane::ALONE {
        return super::lane::ALONE;
    }
    tracing::warn!(%fault, "a lane does not answer");
    "its lane does not answer"
}

fn segment_execute(
    segment: &mut super::segment::Segment,
    name: &[u8],
    rows: i32,
    under_way: bool,
) -> Result<Next, Next> {
    let (did_call, did_local) = (!segment.calls.is_empty(), segment.did_local);
    match segment.portal(name)? {
        Portal::Call(call) => {
            if did_local {
                return Err(Next::Relay("together with a question for the session"));
            }
            let limited = rows > 0
                && call
                    .as_ref()
                    .is_some_and(|(call, ..)| call.statement.fields().is_some());
            if limited {
                return Err(Next::Relay("a row limit"));
            }
            let call = call.take().ok_or(Next::Relay("a portal that was used"))?;
            segment.execute(name, call);
            Ok(Next::Go)
        }
        Portal::Local(local) if did_call && local.is_lastval() => {
            let binary = local.results.is_binary(0);
            segment.ask(binary);
            Ok(Next::Go)
        }
        Portal::Local(..) if did_call => {
            Err(Next::Relay("together with a question for the session"))
        }
        Portal::Local(..) if under_way => Err(Next::Drain),
        Portal::Local(local) => Ok(Next::Local(local.clone())),
    }
}

const CHANGED: &str = "a statement whose table was changed";
const BEHIND: &str = "statements prepared behind others";

/// A write that asks what was taken from a sequence.
const ASKS: Apart = Apart {
    reason: "what a sequence gave",
    effect: Effect::AsksForGenerated,
};

/// What a message is judged by.
pub(super) struct View<'a> {
    pub(super) join: bool,
    pub(super) utf8: bool,
    pub(super) readings: &'a Readings,
    pub(super) lane: Option<&'a Arc<Lane>>,
    pub(super) fresh: Option<&'a (u64, u64, Described)>,
    pub(super) under_way: bool,
    pub(super) in_segment: bool,
    pub(super) generated: bool,
    pub(super) asks: bool,
}

impl View<'_> {
    /// What a statement means in a session that has these.
    fn of(&self, entry: &Entry, statements: &Statements) -> Result<Meaning, Next> {
        let named = entry.prepared.deallocates.as_deref();
        match named.and_then(|name| statements.get(name.as_bytes())) {
            Some(_) => Ok(Meaning::Local),
            None => self.meaning(entry),
        }
    }

    /// What a statement means at this moment.
    pub(super) fn meaning(&self, entry: &Entry) -> Result<Meaning, Next> {
        let apart = match &entry.prepared.reading {
            Reading::Join(_) if !self.join => return Err(Next::Relay("windrow.join is off")),
            Reading::Join(_) if entry.prepared.asks() => &ASKS,
            // What it takes has to be known where it asks.
            Reading::Join(draft) if self.asks && draft.op == Op::Insert => {
                return Err(Next::Relay("what a sequence gave"));
            }
            Reading::Join(_) => return self.call(entry).map(Meaning::Call),
            Reading::Apart(apart) => apart,
        };
        match &apart.effect {
            Effect::Own { .. } | Effect::ShowOwn { .. } | Effect::Empty => Ok(Meaning::Local),
            // Once there is a value there always is one, so that the question cannot fail and undo
            // the calls before it.
            Effect::Lastval if self.in_segment && self.join && self.generated => Ok(Meaning::Local),
            Effect::Lastval | Effect::AsksForGenerated | Effect::Currval(_) if self.in_segment => {
                Err(Next::Relay("together with a question for the session"))
            }
            Effect::Lastval if self.join => Ok(Meaning::Local),
            // What is known is put in the question's place there.
            Effect::AsksForGenerated | Effect::Currval(_) if self.under_way => Err(Next::Drain),
            _ => Err(Next::Relay(apart.reason)),
        }
    }

    fn call(&self, entry: &Entry) -> Result<Arc<windrow_core::Statement>, Next> {
        let unknown = || Next::Describe(Arc::clone(&entry.prepared));
        let lane = self.lane.ok_or_else(unknown)?;
        if let Some((in_lane, statement)) = &entry.seen
            && *in_lane == lane.number
            && !statement.is_retired()
        {
            return Ok(Arc::clone(statement));
        }
        let statement = self.described(lane, &entry.prepared)?;
        let told = entry.told.get();
        let fits = |statement: &windrow_core::Statement| {
            told.is_none_or(|told| told.fits(statement.signature()))
        };
        if fits(&statement) {
            return Ok(statement);
        }
        // Others that parse it now are told other types. Here it stays what it was.
        let exact = entry.exact(self.readings, self.utf8);
        if exact.number == entry.prepared.number {
            return Err(Next::Relay(CHANGED));
        }
        let statement = self.described(lane, &exact)?;
        fits(&statement)
            .then_some(statement)
            .ok_or(Next::Relay(CHANGED))
    }

    /// What the lane says of a text.
    fn described(
        &self,
        lane: &Lane,
        prepared: &Arc<Prepared>,
    ) -> Result<Arc<windrow_core::Statement>, Next> {
        let number = prepared.number;
        let fresh = self
            .fresh
            .filter(|fresh| (fresh.0, fresh.1) == (lane.number, number));
        let described = fresh.map(|(.., described)| described.clone());
        match described.or_else(|| lane.known(number)) {
            Some(Described::Joined(statement)) => Ok(statement),
            Some(Described::Apart(apart)) => Err(Next::Relay(apart.phrase)),
            None => Err(Next::Describe(Arc::clone(prepared))),
        }
    }

    /// The entry with what it means.
    fn seen(&self, mut entry: Entry, meaning: &Meaning) -> Entry {
        if let (Meaning::Call(statement), Some(lane)) = (meaning, self.lane) {
            entry.seen = Some((lane.number, Arc::clone(statement)));
        }
        entry
    }

    /// True where an entry does not say what it means in the lane.
    fn is_stale(&self, entry: &Entry) -> bool {
        let number = self.lane.map(|lane| lane.number);
        !entry
            .seen
            .as_ref()
            .is_some_and(|(in_lane, statement)| Some(*in_lane) == number && !statement.is_retired())
    }
}
