//! Simple queries.

use std::sync::Arc;

use bytes::BytesMut;
use smallvec::smallvec;
use windrow_core::statement::{Arguments, Formats};
use windrow_core::{Call, Statement};
use windrow_sql::Effect;

use super::local;
use super::meaning::{Next, View};
use super::pending::{Ending, Pending, Said, Script};
use super::segment::Meaning;
use super::state::{End, Session};
use crate::codec::{answer, failure};
use crate::statements::{Entry, Simple};

impl Session {
    /// Deals with a simple query, which stands at the front of the inbox.
    pub(super) async fn simple(&mut self, total: usize) -> Result<(), End> {
        let Some(Simple { prepared, values }) = self.read_query(total) else {
            return self.relay("a malformed message").await;
        };
        let found = loop {
            match self.view().meaning(&Entry::new(Arc::clone(&prepared))) {
                Ok(meaning) => break Ok(meaning),
                Err(Next::Drain) => self.drain().await?,
                Err(Next::Describe(prepared)) => {
                    if let Err(reason) = Box::pin(self.describe(&prepared)).await {
                        break Err(reason);
                    }
                }
                Err(Next::Relay(_)) if self.has_deallocated(&prepared) => {
                    break Ok(Meaning::Local);
                }
                Err(Next::Relay(reason)) => break Err(reason),
                Err(Next::Go | Next::Local(..)) => break Err("not a write"),
            }
        };
        let meaning = match found {
            Ok(meaning) => meaning,
            Err(reason) => {
                // A session may stay on a server connection for long: not with a copy of its text.
                drop((prepared, values));
                return self.relay(reason).await;
            }
        };
        self.fresh = None;
        match meaning {
            Meaning::Call(statement) => self.submit_query(total, statement, values).await,
            Meaning::Local => {
                if prepared.effect() != Some(&Effect::Empty) {
                    self.drain().await?;
                }
                let mut text = BytesMut::new();
                match self.answer(&prepared).await {
                    Ok(reply) => reply.say(&mut text, &Formats::Text, true),
                    Err(fault) => {
                        // The server describes the row before it finds that there is no value.
                        if prepared.effect() == Some(&Effect::Lastval) {
                            let fields = local::fields(&prepared);
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

    fn view(&self) -> View<'_> {
        View {
            join: self.join,
            utf8: self.utf8,
            readings: &self.shared.readings,
            lane: self.source.as_ref().map(|source| &source.lane),
            fresh: self.fresh.as_ref(),
            under_way: !self.pending.is_empty(),
            in_segment: false,
            generated: self.values.last().is_some(),
            asks: self.asks,
        }
    }

    /// Reads the simple query at the front of the inbox. `None`: it is malformed.
    fn read_query(&self, total: usize) -> Option<Simple> {
        let (zero, text) = self.line.body(0, total).split_last()?;
        (*zero == 0 && !text.contains(&0)).then(|| self.readings_of_query(text))
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
        let call = Call {
            statement: Arc::clone(&statement),
            arguments,
            formats: Formats::Text,
            results: Formats::Text,
            fresh: true,
            origin: Some(text),
        };
        let script = Script {
            text: BytesMut::new(),
            calls: smallvec![Said {
                bound: 0,
                done: 0,
                op,
                fresh: None,
                portal: None,
            }],
            asked: Vec::new(),
        };
        let ending = Ending::Query(statement);
        self.submit(smallvec![call], script, ending, total).await
    }

    fn query_text(&self, total: usize) -> Option<Box<str>> {
        let (_, text) = self.line.body(0, total).split_last()?;
        std::str::from_utf8(text).ok().map(Box::from)
    }

    /// Answers the simple query at the front of the inbox.
    fn answer_query(&mut self, total: usize, text: BytesMut) {
        self.line.take(total);
        self.statements.set(b"", None);
        self.pending.push_back(Pending {
            receipt: None,
            script: Script {
                text,
                ..Script::default()
            },
            ending: Ending::Sync,
        });
    }
}
