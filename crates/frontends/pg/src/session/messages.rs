//! Handles the messages of both protocols, as far as their statements can be joined.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use bytes::BytesMut;
use windrow_core::{Fault, Formats};
use windrow_sql::Effect;

use super::local::{self, Reply};
use super::meaning::{CHANGED, Next, View};
use super::pending::{AnswerEnd, Pending, Script};
use super::queries::QueryCalls;
use super::segment::{IN_BLOCK, Meaning, SegmentBlock};
use super::state::{End, Session};
use super::submit::NotDescribed;
use super::{queries, unsent_block, whole_block};
use crate::codec::message::{Front, Message, Parse};
use crate::codec::{answer, failure};
use crate::pool::Leftover;
use crate::statements::{Answer, CachedStatement, NOT_LIFTED, PreparedText, SimpleQuery};

impl Session {
    /// Handles Parse, Bind, Describe, Execute or Close.
    pub(super) async fn extended(&mut self, tag: u8, total: usize) -> Result<(), End> {
        if self.segment.bytes + total > self.shared.config.max_pending {
            return self.relay("more than max_pending bytes before Sync").await;
        }
        if self.segment.is_crowded() {
            return self.relay("many names before Sync").await;
        }
        if tag == b'P' {
            // A description that is reported must have been true at some time after the Parse.
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
                Next::Relay(_) if whole_block::is_expected(self, (tag, total)) => {}
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
        // A session may stay on a server connection for long, and must not hold a copy of its text
        // meanwhile.
        drop(answer);
        match reason.passing {
            Some(fault) => Box::pin(self.relay_for_now(reason.reason, &fault)).await,
            None => self.relay(reason.reason).await,
        }
    }

    /// Sends an error to the client. What follows up to the Sync is skipped, and the segment is not
    /// sent anywhere else.
    fn fail(&mut self, fault: &Fault, total: usize) -> Result<(), End> {
        failure::fault(&mut self.segment.script.text, fault);
        self.segment.failed = true;
        self.connection.take(self.segment.bytes + total);
        self.segment.bytes = 0;
        Ok(())
    }

    /// Returns the next step for a message, and adds the message to the segment. `answer`: the
    /// lane's answer to the question about it.
    fn look(&mut self, (tag, total): (u8, usize), answer: Option<&Answer>) -> Result<Next, Next> {
        let may_answer = self.may_answer();
        let Self {
            connection,
            segment,
            statements,
            ..
        } = self;
        let view = View {
            join: self.own.join,
            utf8: self.utf8,
            standard_strings: self.standard_strings,
            cache: &self.shared.cache,
            lane: self.source.as_ref().map(|source| &source.lane),
            answer,
            under_way: !self.pending.is_empty(),
            in_segment: !segment.calls.is_empty(),
            in_block: self.unsent_block.is_some(),
            late: self.own.late,
            may_answer,
            block: segment.block,
            generated: self.values.last().is_some(),
            asks: self.asks,
        };
        let message = Message::read(tag, connection.body(segment.bytes, total));
        let is_taken_back = message.uses_unnamed()
            && segment.has_no_unnamed()
            && self.pending.any(Pending::may_take_back);
        match is_taken_back {
            true => Err(Next::Drain),
            false => view.take(&message, segment, statements),
        }
    }

    /// Returns true if the types that the segment's statements are about to get permanently are
    /// correct.
    async fn check_types(&self) -> bool {
        let unfixed = self.segment.unfixed();
        let (Some(source), Some(since)) = (&self.source, self.segment.parsed_at) else {
            return unfixed.is_empty();
        };
        let kept = self.unsent_block.as_ref().map(|block| &block.kept);
        for prepared in unfixed {
            let Some(statement) = prepared.statement() else {
                continue;
            };
            if kept.is_some_and(|kept| kept.has_row_of(statement)) {
                continue;
            }
            let known = (&**prepared.cached.described_as(), statement);
            let asking = self.shared.cache.holds(&source.lane, known, since);
            if !Box::pin(asking).await.unwrap_or_default() {
                return false;
            }
        }
        true
    }

    /// Handles Flush.
    pub(super) async fn flush(&mut self, total: usize) -> Result<(), End> {
        let is_begun = !self.segment.calls.is_empty() || self.segment.block.is_some();
        if is_begun || self.segment.has_open_portal() {
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
        self.pending.push(Pending::new(script, AnswerEnd::Open));
        self.segment.answered = self.segment.messages;
        self.segment.bytes += total;
        Ok(())
    }

    /// Handles Sync.
    pub(super) async fn sync(&mut self, total: usize) -> Result<(), End> {
        if self.segment.has_open_portal() {
            return self.relay("a portal that is not executed").await;
        }
        let block = self.segment.block;
        let keeps = whole_block::may_keep(self);
        if block.is_some_and(|block| block != SegmentBlock::Committed) && !keeps {
            return self.relay(IN_BLOCK.0).await;
        }
        if !self.check_types().await {
            return self.relay(CHANGED).await;
        }
        if keeps {
            unsent_block::open(self);
        }
        let script = std::mem::take(&mut self.segment.script);
        let calls = std::mem::take(&mut self.segment.calls);
        let taken = self.segment.bytes + total;
        if calls.is_empty() {
            let mut pending = Pending::new(script, AnswerEnd::Sync);
            pending.status = unsent_block::status(self);
            self.pending.push(pending);
            self.segment.define(&mut self.statements);
            self.connection.take(taken);
            self.segment.clear();
            return Ok(());
        }
        self.submit(calls, script, AnswerEnd::Sync, taken).await
    }
    /// Handles a simple query at the front of the inbox.
    pub(super) async fn simple(&mut self, total: usize) -> Result<(), End> {
        if let Some(script) = queries::script(self, total) {
            return Box::pin(queries::submit(self, script, total)).await;
        }
        let Some(SimpleQuery { cached, values }) = self.read_query(total) else {
            return self.relay("a malformed message").await;
        };
        let found = Box::pin(self.meaning(&cached)).await?;
        let meaning = match found {
            Ok(meaning) => meaning,
            Err(NotDescribed { reason, passing }) => {
                // A session may stay on a server connection for long, and must not hold a copy of
                // its text meanwhile.
                drop((cached, values));
                return match passing {
                    Some(fault) => Box::pin(self.relay_for_now(reason, &fault)).await,
                    None => self.relay(reason).await,
                };
            }
        };
        match meaning {
            Meaning::Call(statement) => {
                let Some(one) = queries::one(self, statement, values, total) else {
                    return self.relay(queries::UNFIT).await;
                };
                let QueryCalls { calls, script } = one;
                self.submit(calls, script, AnswerEnd::Query, total).await
            }
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

    /// Returns the meaning of a statement of a simple query. Asks the lane if it is not known.
    ///
    /// # Errors
    /// Outside: the session ends. Inside: the reason why the query goes to a server connection.
    pub(super) async fn meaning(
        &mut self,
        cached: &Arc<CachedStatement>,
    ) -> Result<Result<Meaning, NotDescribed>, End> {
        let mut answer = None;
        Ok(loop {
            match self.view(answer.as_ref()).of_query(cached) {
                Ok(meaning) => break Ok(meaning),
                Err(Next::Drain) => self.drain().await?,
                Err(Next::Describe(cached)) => match Box::pin(self.describe(&cached)).await {
                    Ok(described) => answer = Some(described),
                    Err(not) => break Err(not),
                },
                Err(Next::Relay(_)) if self.may_answer() && self.has_deallocated(cached) => {
                    break Ok(Meaning::Local);
                }
                Err(Next::Relay(reason)) => break Err(NotDescribed::of(reason)),
                Err(Next::Whole) => break Err(NotDescribed::of(NOT_LIFTED)),
                Err(Next::Go | Next::Local(..)) => break Err(NotDescribed::of("not a write")),
            }
        })
    }

    /// Returns the session's own answer to a statement, once nothing of the session is under way.
    ///
    /// # Errors
    /// The fault of the statement.
    pub(super) async fn answer(&mut self, cached: &CachedStatement) -> Result<Reply, Fault> {
        if cached.effect() == Some(&Effect::Lastval) {
            Box::pin(self.look_for_last()).await;
        }
        self.reply(cached)
    }

    /// Answers a statement that needs no waiting.
    pub(crate) fn reply(&mut self, cached: &CachedStatement) -> Result<Reply, Fault> {
        if let Some(name) = cached.deallocates() {
            self.statements.set(name.as_bytes(), None);
            return Ok(Reply::Done("DEALLOCATE"));
        }
        match cached.effect() {
            Some(Effect::SetWindrow { name, value }) => {
                let Self {
                    own, own_default, ..
                } = self;
                let allowed = self.shared.allowed(&self.who.identity);
                own.set(name, value.as_deref(), own_default, allowed)?;
                let tag = if value.is_some() { "SET" } else { "RESET" };
                Ok(Reply::Done(tag))
            }
            Some(Effect::ShowWindrow { name }) => {
                let (name, value) = self.own.show(name)?;
                Ok(Reply::Text(name, value.into()))
            }
            Some(Effect::Lastval) if self.values.asks_for_lost_last() => Err(local::in_the_spool()),
            Some(Effect::Lastval) => match self.values.last() {
                Some(value) => Ok(Reply::Number("lastval", value)),
                None => Err(local::no_lastval()),
            },
            _ => Ok(Reply::Empty),
        }
    }

    /// Returns true if no server needs to know that a statement is removed.
    fn may_answer(&self) -> bool {
        self.unsent_block.is_none() || unsent_block::may_keep(self)
    }

    /// Returns true for DEALLOCATE of a statement that the server may not know, or not by that
    /// name.
    pub(super) fn has_deallocated(&self, cached: &CachedStatement) -> bool {
        let name = cached.deallocates();
        name.is_some_and(|name| self.statements.get(name.as_bytes()).is_some())
    }

    /// Checks that the sequence used last still exists, if the catalog has changed since that was
    /// known.
    async fn look_for_last(&mut self) {
        let Some(sequence) = self.values.last_sequence() else {
            return;
        };
        let epoch = self.shared.proofs.epoch(&self.who.identity.database);
        if self.epoch == epoch {
            return;
        }
        let Ok(mut loan) = self.shared.databases.pool.take(&self.who).await else {
            return;
        };
        let sql = format!("SELECT FROM pg_catalog.pg_class WHERE oid = {sequence}");
        let rows = loan.wire.simple(&sql).await;
        loan.give_back(&self.who.settings, Leftover::Nothing, &[])
            .await;
        if let Ok(Ok(rows)) = rows {
            self.epoch = epoch;
            if rows.is_empty() {
                self.values.forget_last();
            }
        }
    }

    /// Reads a text that the client prepares.
    pub(crate) fn prepared(&self, parse: &Parse<'_>) -> Arc<CachedStatement> {
        let text = PreparedText {
            text: parse.text,
            standard_strings: self.standard_strings,
            utf8: self.utf8,
            is_named: !parse.name.is_empty(),
        };
        let settings = [self.standard_strings, self.utf8, text.is_named];
        let cache = &self.shared.cache;
        let reads = || cache.prepared(text, parse.type_oids());
        self.connection.prepared(parse.text, settings, reads)
    }

    /// Reads a simple query's text.
    pub(crate) fn simple_query(&self, text: &[u8]) -> SimpleQuery {
        let cache = &self.shared.cache;
        // Replicas get a write even if its text is new.
        let is_eager = self.is_followed();
        let settings = (self.standard_strings, self.utf8);
        let reads = || cache.simple(text, settings, is_eager);
        self.connection
            .query(text, [settings.0, settings.1, is_eager], reads)
    }

    /// Returns true if the front of the inbox is such a statement, or messages about one.
    pub(crate) fn front_is(&self, such: fn(&CachedStatement) -> bool) -> bool {
        let Ok(Front::Whole { tag, total }) = self.connection.front(0) else {
            return false;
        };
        match Message::read(tag, self.connection.body(0, total)) {
            Message::Parse(parse) => {
                let (text, types) = (parse.text, parse.type_oids());
                such(&self.shared.cache.get(text, types, self.utf8))
            }
            Message::Bind(bind) => {
                let statement = self.statements.get(bind.statement);
                statement.is_some_and(|statement| such(&statement.cached))
            }
            _ if tag == b'Q' => {
                let text = self.connection.body(0, total).split_last();
                text.is_some_and(|(_, text)| such(&self.simple_query(text).cached))
            }
            _ => false,
        }
    }

    /// Answers the query or segment at the front of the inbox with an error, and drops it.
    ///
    /// # Errors
    /// The session ends.
    pub(super) async fn refuse(&mut self, fault: &Fault) -> Result<(), End> {
        self.segment.clear();
        self.shared.metrics.refusal(fault.class);
        failure::fault(&mut self.connection.out, fault);
        loop {
            match self.connection.front(0)? {
                Front::Whole { tag, total } => {
                    let body = self.connection.body(0, total);
                    if tag == b'Q' || (tag == b'P' && body.first() == Some(&0)) {
                        self.statements.set(b"", None);
                    }
                    self.connection.take(total);
                    match tag {
                        b'S' | b'Q' | b'F' => break,
                        b'X' => return Err(End::Left),
                        _ => {}
                    }
                }
                Front::Part { header } => {
                    if let Some((b'd', total)) = header {
                        self.connection.discard(total);
                    }
                    if self.connection.ended {
                        return Err(End::Left);
                    }
                    poll_fn(|cx| {
                        let _flushing: Poll<()> = self.connection.poll_flush(cx).map(drop);
                        self.connection.poll_read(cx)
                    })
                    .await?;
                }
            }
        }
        if let Some(block) = &mut self.unsent_block {
            block.has_failed = true;
        }
        let status = unsent_block::status(self);
        answer::ready(&mut self.connection.out, status);
        Ok(())
    }

    fn view<'a>(&'a self, answer: Option<&'a Answer>) -> View<'a> {
        View {
            join: self.own.join,
            utf8: self.utf8,
            standard_strings: self.standard_strings,
            cache: &self.shared.cache,
            lane: self.source.as_ref().map(|source| &source.lane),
            answer,
            under_way: !self.pending.is_empty(),
            in_segment: false,
            in_block: self.unsent_block.is_some(),
            late: self.own.late,
            may_answer: self.may_answer(),
            block: None,
            generated: self.values.last().is_some(),
            asks: self.asks,
        }
    }

    /// Reads the simple query at the front of the inbox; `None` if it is malformed.
    fn read_query(&self, total: usize) -> Option<SimpleQuery> {
        let (zero, text) = self.connection.body(0, total).split_last()?;
        (*zero == 0 && !text.contains(&0)).then(|| self.simple_query(text))
    }

    /// Answers the simple query at the front of the inbox.
    fn answer_query(&mut self, total: usize, text: BytesMut) {
        self.connection.take(total);
        self.statements.set(b"", None);
        let script = Script {
            text,
            ..Script::default()
        };
        let mut pending = Pending::new(script, AnswerEnd::Sync);
        pending.status = unsent_block::status(self);
        self.pending.push(pending);
    }
}
