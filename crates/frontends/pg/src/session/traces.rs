//! Writes that are traced.

use std::time::SystemTime;

use windrow_core::trace::TraceValue;
use windrow_core::{Fault, SqlCall, TraceContext, TracedRequest, Unit};

use super::state::Session;

/// The wish to trace writes, and since when they are here.
#[derive(Clone, Copy, Debug)]
pub(super) struct AskedTrace {
    came: SystemTime,
    /// The client's own span.
    caller: Option<TraceContext>,
}

impl AskedTrace {
    /// Returns the wish to trace a session's calls; `None` if nothing is traced. A comment of the
    /// text counts more than the session's setting, if the text was parsed for this execution.
    pub(super) fn of(session: &Session, calls: &[SqlCall]) -> Option<Self> {
        session.shared.tracer.as_ref()?;
        let text = calls.first().filter(|call| call.fresh);
        let text = text.and_then(|call| call.origin.as_ref());
        let set = session.own.traceparent.as_deref();
        Some(Self {
            came: SystemTime::now(),
            caller: text
                .and_then(|origin| of_comment(origin.as_str()))
                .or_else(|| TraceContext::parse(set?)),
        })
    }

    /// Begins the span of a unit that is about to be handed over, if it is to be collected.
    pub(super) fn begin(self, session: &Session, unit: &Unit) -> Option<Box<TracedRequest>> {
        let tracer = session.shared.tracer.as_ref()?;
        let mut traced = TracedRequest::begin(tracer, self.caller)?;
        traced.came(self.came);
        let database = session.who.identity.database.to_string();
        traced.note("db.namespace", TraceValue::Text(database.into()));
        traced.trace().submitted(std::slice::from_ref(unit));
        Some(traced)
    }
}

/// Ends the span of what is refused.
pub(super) fn refused(traced: Option<Box<TracedRequest>>, fault: &Fault) {
    if let Some(traced) = traced {
        traced.fails(&fault.code);
        traced.end(false);
    }
}

/// Forgets the span of what goes another way.
pub(super) fn discard(traced: Option<Box<TracedRequest>>) {
    if let Some(traced) = traced {
        traced.discard();
    }
}

/// Returns the span in a comment after a statement, or else before it, in the form of sqlcommenter:
/// `/*traceparent='00-..'*/`. A quoted text that ends like one cannot stand there.
fn of_comment(text: &str) -> Option<TraceContext> {
    let text = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == ';');
    let behind = text.strip_suffix("*/");
    let behind = behind.and_then(|text| text.rsplit_once("/*"));
    let before = text.strip_prefix("/*");
    let before = before.and_then(|text| text.split_once("*/"));
    let comments = [
        behind.map(|(_, comment)| comment),
        before.map(|(comment, _)| comment),
    ];
    comments.into_iter().flatten().find_map(|comment| {
        let (_, value) = comment.split_once("traceparent='")?;
        TraceContext::parse(value.split_once('\'')?.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_comment_behind_or_before_the_statement_names_the_span() {
        for text in [
            format!("insert into t values (1) /*traceparent='{PARENT}'*/"),
            format!("insert into t values (1) /* a='b',traceparent='{PARENT}',c='d' */ ; "),
            format!("/*traceparent='{PARENT}'*/ insert into t values (1)"),
            format!("/* x */ insert into t values (1) /*traceparent='{PARENT}'*/;"),
        ] {
            let found = of_comment(&text).map(|context| context.to_string());
            assert_eq!(found.as_deref(), Some(PARENT), "{text}");
        }
    }

    #[test]
    fn nothing_else_does() {
        for text in [
            "insert into t values (1)".to_owned(),
            format!("insert into t values ('/*traceparent=''{PARENT}''*/')"),
            format!("insert /*traceparent='{PARENT}'*/ into t values (1)"),
            "insert into t values (1) /*traceparent='00-1-2-3'*/".to_owned(),
            "insert into t values (1) /*traceparent='00".to_owned(),
            "*/".to_owned(),
            "/*/".to_owned(),
            String::new(),
        ] {
            assert_eq!(of_comment(&text), None, "{text}");
        }
    }
}
