//! Simple queries.

use std::sync::Arc;

use bytes::BytesMut;
use smallvec::smallvec;
use windrow_calls::{Arguments, Formats, Origin, SqlCall, Statement};
use windrow_sql::Effect;

use super::describe::NotDescribed;
use super::local;
use super::meaning::{Next, View};
use super::pending::{CallAnswer, Ending, Pending, Script};
use super::segment::Meaning;
use super::state::{End, Session};
use crate::codec::{answer, failure};
use crate::statements::{Answer, NOT_LIFTED, Simple};

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
