//! Messages of both protocols, as far as they can be joined.

use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;
use smallvec::smallvec;
use windrow_core::{Arguments, Fault, Formats, Origin, SqlCall, Statement};
use windrow_sql::Effect;

use super::local;
use super::meaning::{BEHIND, CHANGED, Next, View};
use super::pending::{CallAnswer, Ending, Pending, Script};
use super::segment::{Meaning, Portal, Segment};
use super::state::{End, Session};
use super::submit::NotDescribed;
use crate::codec::message::{Kind, Message};
use crate::codec::{answer, failure};
use crate::statements::{Answer, NOT_LIFTED, PreparedStatement, PreparedText, Simple};

impl Session {
    /// Deals with Parse, Bind, Describe, Execute or Close.
    pub(super) async fn extended(&mut self, tag: u8, total: usize) -> Result<(), End> {
        if self.segment.bytes + total > self.shared.config.max_pending {
            return self.relay("more than max_pending bytes before Sync").await;
        }
        if self.segment.is_crowded() {
            return self.relay("many names before Sync").await;
        }
        if tag == b'P' {
            // What is said of a statement must have been true at some time after it was parsed.
            self.segment.parsed_at.get_or_insert_with(Instant::now);
        }
        let mut answer = None;
        let reason = loop {
            let next = self.look((tag, total), answer.as_ref());
            match next.unwrap_or_else(|next| next) {
                Next::Go => {
                    self.segment.bytes += total;
                    return Ok(());
                }
                Next::Relay(reason) => break NotDescribed::of(reason),
                Next::Whole => break NotDescribed::of(NOT_LIFTED),
                Next::Drain => self.drain().await?,
                Next::Describe(cached) => match Box::pin(self.describe(&cached)).await {
                    Ok(described) => answer = Some(described),
                    Err(not) => break not,
                },
                Next::Local(local) => {
                    match self.answer(&local.cached).await {
                        Ok(reply) => {
                            reply.say(&mut self.segment.script.text, &local.results, false);
                            self.segment.messages += 1;
                            self.segment.did_local = true;
                        }
                        Err(fault) => return self.fail(&fault, total),
                    }
                    self.segment.bytes += total;
                    return Ok(());
                }
            }
        };
        // A session may stay on a server connection for long: not with a copy of its text.
        drop(answer);
        match reason.passing {
            Some(fault) => Box::pin(self.relay_for_now(reason.reason, &fault)).await,
            None => self.relay(reason.reason).await,
        }
    }

    /// Tells the client so. What follows up to the Sync is passed over, and the segment will not go
    /// anywhere else.
    fn fail(&mut self, fault: &Fault, total: usize) -> Result<(), End> {
        failure::fault(&mut self.segment.script.text, fault);
        self.segment.failed = true;
        self.connection.take(self.segment.bytes + total);
        self.segment.bytes = 0;
        Ok(())
    }

    /// Returns the next step for a message. `answer`: the lane's answer because of it.
    fn look(&mut self, (tag, total): (u8, usize), answer: Option<&Answer>) -> Result<Next, Next> {
        let lane = self.source.as_ref().map(|source| &source.lane);
        let Self {
            connection,
            segment,
            statements,
            ..
        } = self;
        let view = View {
            join: self.own.join,
            utf8: self.utf8,
            cache: &self.shared.cache,
            lane,
            answer,
            under_way: !self.pending.is_empty(),
            in_segment: !segment.calls.is_empty(),
            generated: self.values.last().is_some(),
            asks: self.asks,
        };
        let message = Message::read(tag, connection.body(segment.bytes, total));
        if message.uses_unnamed()
            && segment.has_no_unnamed()
            && self.pending.iter().any(Pending::may_take_back)
        {
            return Err(Next::Drain);
        }
        match message {
            Message::Parse(parse) => {
                let known = segment.statement(parse.name, statements).is_some();
                if !parse.name.is_empty() && !segment.calls.is_empty() {
                    return Err(Next::Relay(BEHIND));
                }
                if !parse.name.is_empty() && (known || statements.is_full()) {
                    return Err(Next::Relay("a statement of a name that is taken"));
                }
                let prepared = PreparedText {
                    text: parse.text,
                    standard_strings: self.standard_strings,
                    utf8: self.utf8,
                    is_named: !parse.name.is_empty(),
                };
                let cached = view.cache.prepared(prepared, parse.type_oids());
                let mut statement = PreparedStatement::new(cached);
                let mut meaning = view.of(&statement, statements);
                if let Err(Next::Whole) = meaning {
                    let whole = view.cache.whole(parse.text, parse.type_oids(), view.utf8);
                    statement = PreparedStatement::new(whole);
                    meaning = view.of(&statement, statements);
                }
                let meaning = meaning?;
                if let (Meaning::Call(joined), Some(lane)) = (&meaning, lane) {
                    statement.note(lane, joined);
                }
                segment.parse(parse.name, statement, statements);
            }
            Message::Bind(bind) => {
                let statement = segment.statement(bind.statement, statements);
                let statement = statement.ok_or(Next::Relay("an unknown statement"))?;
                let meaning = view.of(statement, statements)?;
                let cached = Arc::clone(&statement.cached);
                let fixed = &statement.fixed;
                let fresh = fixed.get().is_none().then(|| fixed.clone());
                if let (Meaning::Call(joined), Some(lane)) = (&meaning, lane)
                    && statement.noted(lane).is_none()
                    && let Some(statement) = segment.statement_mut(bind.statement, statements)
                {
                    statement.note(lane, joined);
                }
                segment.bind(&bind, (&cached, fresh), meaning)?;
            }
            Message::Describe(Kind::Statement, name) => {
                let statement = segment.statement(name, statements);
                let statement = statement.ok_or(Next::Relay("an unknown statement"))?;
                let meaning = view.of(statement, statements)?;
                let cached = Arc::clone(&statement.cached);
                segment.describe_statement(&cached, &meaning);
            }
            Message::Describe(Kind::Portal, name) => segment.describe_portal(name)?,
            Message::Execute(name, rows) => {
                return segment_execute(segment, name, rows, !self.pending.is_empty());
            }
            // The server passes over it where the call before it fails.
            Message::Close(Kind::Statement, [_, ..]) if !segment.calls.is_empty() => {
                return Err(Next::Relay(BEHIND));
            }
            Message::Close(kind, name) => segment.close(kind, name, statements)?,
            _ => return Err(Next::Relay("a malformed message")),
        }
        Ok(Next::Go)
    }

    /// Returns true if the types are right that the statements of the segment are about to get for
    /// good.
    async fn check_types(&self) -> bool {
        let unfixed = self.segment.unfixed();
        let (Some(source), Some(since)) = (&self.source, self.segment.parsed_at) else {
            return unfixed.is_empty();
        };
        for prepared in unfixed {
            let Some(statement) = prepared.statement() else {
                continue;
            };
            let known = (&**prepared.cached.described_as(), statement);
            let asking = self.shared.cache.holds(&source.lane, known, since);
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
        if self.segment.bytes + total > self.shared.config.max_pending {
            return self.relay("more than max_pending bytes before Sync").await;
        }
        if !self.check_types().await {
            return self.relay(CHANGED).await;
        }
        self.segment.fix();
        let script = std::mem::take(&mut self.segment.script);
        self.pending.push_back(Pending {
            awaited: None,
            script,
            ending: Ending::Open,
            traced: None,
            answer: None,
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
                awaited: None,
                script,
                ending: Ending::Sync,
                traced: None,
                answer: None,
            });
            self.segment.define(&mut self.statements);
            self.connection.take(taken);
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
            segment.use_up(name);
            segment.ask(binary);
            Ok(Next::Go)
        }
        Portal::Local(..) if did_call => {
            Err(Next::Relay("together with a question for the session"))
        }
        Portal::Local(..) if under_way => Err(Next::Drain),
        Portal::Local(local) if local.cached.deallocates().is_some() => {
            let cached = Arc::clone(&local.cached);
            segment.use_up(name);
            // Like all that defines statements: nothing changes before the Sync.
            segment.deallocate(cached.deallocates().unwrap_or_default().as_bytes());
            Ok(Next::Go)
        }
        Portal::Local(local) => {
            let local = local.clone();
            segment.use_up(name);
            Ok(Next::Local(local))
        }
    }
}

impl Session {
    /// Deals with a simple query, which stands at the front of the inbox.
    pub(super) async fn simple(&mut self, total: usize) -> Result<(), End> {
        let Some(Simple { cached, values }) = self.read_query(total) else {
            return self.relay("a malformed message").await;
        };
        let mut answer = None;
        let found = loop {
            match self.view(answer.as_ref()).of_query(&cached) {
                Ok(meaning) => break Ok(meaning),
                Err(Next::Drain) => self.drain().await?,
                Err(Next::Describe(cached)) => match Box::pin(self.describe(&cached)).await {
                    Ok(described) => answer = Some(described),
                    Err(not) => break Err(not),
                },
                Err(Next::Relay(_)) if self.has_deallocated(&cached) => {
                    break Ok(Meaning::Local);
                }
                Err(Next::Relay(reason)) => break Err(NotDescribed::of(reason)),
                Err(Next::Whole) => break Err(NotDescribed::of(NOT_LIFTED)),
                Err(Next::Go | Next::Local(..)) => break Err(NotDescribed::of("not a write")),
            }
        };
        let meaning = match found {
            Ok(meaning) => meaning,
            Err(NotDescribed { reason, passing }) => {
                // A session may stay on a server connection for long: not with a copy of its text.
                drop((cached, values, answer));
                return match passing {
                    Some(fault) => Box::pin(self.relay_for_now(reason, &fault)).await,
                    None => self.relay(reason).await,
                };
            }
        };
        drop(answer);
        match meaning {
            Meaning::Call(statement) => self.submit_query(total, statement, values).await,
            Meaning::Local => {
                if cached.effect() != Some(&Effect::Empty) {
                    self.drain().await?;
                }
                let mut text = BytesMut::new();
                match self.answer(&cached).await {
                    Ok(reply) => reply.say(&mut text, &Formats::Text, true),
                    Err(fault) => {
                        // The server describes the row before it finds that there is no value.
                        if cached.effect() == Some(&Effect::Lastval) {
                            let fields = local::fields(&cached);
                            answer::fields(&mut text, fields.as_deref(), &Formats::Text);
                        }
                        failure::fault(&mut text, &fault);
                    }
                }
                self.answer_query(total, text);
                Ok(())
            }
        }
    }

    fn view<'a>(&'a self, answer: Option<&'a Answer>) -> View<'a> {
        View {
            join: self.own.join,
            utf8: self.utf8,
            cache: &self.shared.cache,
            lane: self.source.as_ref().map(|source| &source.lane),
            answer,
            under_way: !self.pending.is_empty(),
            in_segment: false,
            generated: self.values.last().is_some(),
            asks: self.asks,
        }
    }

    /// Reads the simple query at the front of the inbox. `None`: it is malformed.
    fn read_query(&self, total: usize) -> Option<Simple> {
        let (zero, text) = self.connection.body(0, total).split_last()?;
        (*zero == 0 && !text.contains(&0)).then(|| self.simple_query(text))
    }

    async fn submit_query(
        &mut self,
        total: usize,
        statement: Arc<Statement>,
        values: Option<Box<[u8]>>,
    ) -> Result<(), End> {
        let count = statement.parameters().len();
        let values = values.unwrap_or_default();
        let (Some(arguments), Some(text)) = (Arguments::of(values, count), self.query_text(total))
        else {
            return self.relay("literals that do not fit").await;
        };
        let op = statement.parsed().op;
        let call = SqlCall {
            statement: Arc::clone(&statement),
            arguments,
            formats: Formats::Text,
            results: Formats::Text,
            fresh: true,
            origin: Some(Box::new(Origin { text, own: None })),
        };
        let script = Script {
            text: BytesMut::new(),
            calls: smallvec![CallAnswer {
                bound: 0,
                done: 0,
                op,
                fresh: None,
                portal: None,
            }],
            lastvals: Vec::new(),
            behind: None,
        };
        let ending = Ending::Query(statement);
        self.submit(smallvec![call], script, ending, total).await
    }

    fn query_text(&self, total: usize) -> Option<Arc<[u8]>> {
        let (_, text) = self.connection.body(0, total).split_last()?;
        std::str::from_utf8(text).is_ok().then(|| text.into())
    }

    /// Answers the simple query at the front of the inbox.
    fn answer_query(&mut self, total: usize, text: BytesMut) {
        self.connection.take(total);
        self.statements.set(b"", None);
        self.pending.push_back(Pending {
            awaited: None,
            script: Script {
                text,
                ..Script::default()
            },
            ending: Ending::Sync,
            traced: None,
            answer: None,
        });
    }
}
