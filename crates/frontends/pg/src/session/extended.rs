//! The extended protocol, as far as its messages can be joined.

use std::sync::Arc;
use std::time::Instant;

use windrow_core::Fault;

use super::meaning::{BEHIND, CHANGED, Next, View};
use super::pending::{Ending, Pending};
use super::segment::{Meaning, Portal, Segment};
use super::state::{End, Session};
use crate::codec::failure;
use crate::codec::message::{Kind, Message};
use crate::statements::Entry;

impl Session {
    /// Deals with Parse, Bind, Describe, Execute or Close.
    pub(super) async fn extended(&mut self, tag: u8, total: usize) -> Result<(), End> {
        if self.segment.bytes + total > self.shared.max_pending {
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
        let lane = self.source.as_ref().map(|source| &source.lane);
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
            readings: &self.shared.readings,
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
                    .shared
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
                let fresh = entry.fixed.get().is_none().then(|| entry.fixed.clone());
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

    /// Whether the types are true that the statements of the segment are about to get for good.
    async fn check_types(&self) -> bool {
        let unfixed = self.segment.unfixed();
        let (Some(source), Some(since)) = (&self.source, self.segment.parsed_at) else {
            return unfixed.is_empty();
        };
        for entry in unfixed {
            let Some((_, statement)) = &entry.seen else {
                continue;
            };
            let asking = source.lane.holds(entry.prepared.number, statement, since);
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
        if self.segment.bytes + total > self.shared.max_pending {
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

fn segment_execute(
    segment: &mut Segment,
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
