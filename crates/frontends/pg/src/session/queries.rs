//! Simple queries of writes: each is submitted to the lane as one unit.
//!
//! A query of several writes is one transaction of the server, with BEGIN and COMMIT around them or
//! without. Each of its writes is read as if it had been sent by itself. If one of them cannot be
//! joined, the query goes to a server connection unchanged.

use std::num::NonZeroUsize;
use std::sync::Arc;

use smallvec::SmallVec;
use windrow_core::{Arguments, Formats, Origin, SqlCall, Statement};
use windrow_sql::{Reading, write_script};

use super::call_answer::{CallAnswer, QueryStatement};
use super::pending::{AnswerEnd, Script};
use super::segment::Meaning;
use super::state::{End, Session};
use super::submit::NotDescribed;
use super::whole_block;
use crate::codec::answer;
use crate::statements::SimpleQuery;

/// The reason for which a query goes to a server connection although its writes can be joined.
pub(super) const UNFIT: &str = "literals that do not fit";

/// A query of several writes.
pub(super) struct QueryScript {
    /// The tags of BEGIN and COMMIT around the writes.
    block: Option<[&'static str; 2]>,
    writes: Vec<QueryWrite>,
}

/// A write of a query.
struct QueryWrite {
    /// The write's own text.
    text: Arc<[u8]>,
    /// The characters of the query before the text.
    skipped: u32,
    query: SimpleQuery,
}

/// The calls of a query, and the answers around their results.
#[derive(Default)]
pub(super) struct QueryCalls {
    pub(super) calls: SmallVec<[SqlCall; 1]>,
    pub(super) script: Script,
}

impl QueryCalls {
    /// Adds a write. Returns `None` if the values are not those of the statement.
    fn add(
        &mut self,
        statement: Arc<Statement>,
        values: Option<Box<[u8]>>,
        (text, skipped): (Arc<[u8]>, u32),
    ) -> Option<()> {
        let values = values.unwrap_or_default();
        let place = self.script.text.len();
        self.script.calls.push(CallAnswer {
            bound: place,
            done: place,
            op: statement.parsed().op,
            fresh: None,
            portal: None,
            query: Some(Box::new(QueryStatement {
                statement: Arc::clone(&statement),
                skipped,
            })),
        });
        self.calls.push(SqlCall {
            arguments: Arguments::of(values, statement.parameters().len())?,
            statement,
            formats: Formats::Text,
            results: Formats::Text,
            fresh: true,
            origin: Some(Box::new(Origin { text, own: None })),
        });
        Some(())
    }
}

/// Returns the call of the query at the front of the inbox, which consists of one write; `None` if
/// the values do not match the statement.
pub(super) fn one(
    session: &Session,
    statement: Arc<Statement>,
    values: Option<Box<[u8]>>,
    total: usize,
) -> Option<QueryCalls> {
    let mut calls = QueryCalls::default();
    let text = text(session, total)?.as_bytes().into();
    calls.add(statement, values, (text, 0))?;
    Some(calls)
}

/// Returns the text of the query at the front of the inbox, in UTF-8.
fn text(session: &Session, total: usize) -> Option<&str> {
    let (_, text) = session.connection.body(0, total).split_last()?;
    std::str::from_utf8(text).ok()
}

/// Reads the query at the front of the inbox. Returns `None` if it is not one of several writes.
pub(super) fn script(session: &Session, total: usize) -> Option<QueryScript> {
    let text = text(session, total)?;
    let (_, behind) = text.split_at(memchr::memchr(b';', text.as_bytes())?);
    let is_end = |c: char| c == ';' || c.is_ascii_whitespace();
    let is_short = total <= session.shared.config.max_pending;
    if behind.chars().all(is_end) || !is_short || !whole_block::may_join(session) {
        return None;
    }
    // In other encodings a semicolon may be part of a longer character.
    let is_known = session.utf8 || text.is_ascii();
    let is_text = session.connection.body(0, total).ends_with(b"\0") && !text.contains('\0');
    let script = write_script(text, session.standard_strings).filter(|_| is_known && is_text)?;
    let (mut at, mut skipped) = (0, 0_u32);
    let writes = script.writes.into_iter().map(|place| {
        let count = text.get(at..place.start)?.chars().count();
        skipped = skipped.checked_add(u32::try_from(count).ok()?)?;
        at = place.start;
        let own = text.get(place)?.as_bytes();
        Some(QueryWrite {
            text: own.into(),
            skipped,
            query: session.simple_query(own),
        })
    });
    Some(QueryScript {
        block: script.block,
        writes: writes.collect::<Option<_>>()?,
    })
}

/// Submits the writes of a query to the lane as one unit. If one of them cannot be joined, the
/// query goes to a server connection.
///
/// # Errors
/// The session ends.
pub(super) async fn submit(
    session: &mut Session,
    QueryScript { block, writes }: QueryScript,
    total: usize,
) -> Result<(), End> {
    if let Some(reason) = reason(&writes) {
        drop(writes);
        return session.relay(reason).await;
    }
    let mut calls = QueryCalls::default();
    let mut added = Some(());
    if let Some([begin, _]) = block {
        answer::complete(&mut calls.script.text, begin);
    }
    for QueryWrite {
        text,
        skipped,
        query,
    } in writes
    {
        let found = session.meaning(&query.cached).await?;
        let not = match found {
            Ok(Meaning::Call(statement)) => {
                let add = calls.add(statement, query.values, (text, skipped));
                added = added.and(add);
                continue;
            }
            Ok(Meaning::Local) => NotDescribed::of("together with a question for the session"),
            Err(not) => not,
        };
        drop((calls, query));
        return match not.passing {
            Some(fault) => session.relay_for_now(not.reason, &fault).await,
            None => session.relay(not.reason).await,
        };
    }
    if let Some([_, commit]) = block {
        calls.script.commit = NonZeroUsize::new(calls.script.text.len());
        answer::complete(&mut calls.script.text, commit);
    }
    let QueryCalls { calls, script } = calls;
    match added {
        Some(()) => session.submit(calls, script, AnswerEnd::Query, total).await,
        None => session.relay(UNFIT).await,
    }
}

/// Returns the reason for which one of the writes cannot be joined, as far as it can be seen
/// without the lane.
fn reason(writes: &[QueryWrite]) -> Option<&'static str> {
    let unclear = writes
        .iter()
        .find_map(|write| match &write.query.cached.reading {
            Reading::Apart(apart) => Some(apart.reason),
            Reading::Join(_) => None,
        });
    // All statements of a query have the same time.
    let has_time = |write: &QueryWrite| {
        let parsed = write.query.cached.parsed();
        let mut functions = parsed.into_iter().flat_map(|parsed| &*parsed.functions);
        functions.any(|function| &*function.table == "statement_timestamp")
    };
    let has_several_times = writes.len() > 1 && writes.iter().any(has_time);
    unclear.or_else(|| {
        has_several_times.then_some("statement_timestamp() in one of several statements")
    })
}
