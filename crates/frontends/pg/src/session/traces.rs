//! Traced writes.

use std::time::SystemTime;

use windrow_core::{Fault, SqlCall, TraceContext, TracedRequest, Unit};

use super::state::Session;

/// The request to trace writes, and the time of their arrival.
#[derive(Clone, Copy, Debug)]
pub(super) struct AskedTrace {
    came: SystemTime,
    /// The client's own span.
    caller: Option<TraceContext>,
}

impl AskedTrace {
    /// Returns the request to trace a session's calls; `None` if nothing is traced. A comment in
    /// the text has precedence over the session's setting, if the text was parsed for this
    /// execution.
    pub(super) fn of(session: &Session, calls: &[SqlCall]) -> Option<Self> {
        session.shared.tracer.as_ref()?;
        let text = calls.first().filter(|call| call.fresh);
        let text = text.and_then(|call| call.origin.as_ref());
        let set = session.own.traceparent.as_deref();
        Some(Self {
            came: SystemTime::now(),
            caller: text
                .and_then(|origin| TraceContext::of_comment(origin.as_str()))
                .or_else(|| TraceContext::parse(set?)),
        })
    }

    /// Begins the span of a unit that is about to be submitted, if it is sampled.
    pub(super) fn begin(self, session: &Session, unit: &Unit) -> Option<Box<TracedRequest>> {
        let tracer = session.shared.tracer.as_ref()?;
        let database = &session.who.identity.database;
        TracedRequest::of_statement(tracer, self.caller, self.came, database, unit)
    }
}

/// Ends the span of a refused unit.
pub(super) fn refused(traced: Option<Box<TracedRequest>>, fault: &Fault) {
    if let Some(traced) = traced {
        traced.fails(&fault.code);
        traced.end(false);
    }
}

/// Discards the span of a unit that is not submitted.
pub(super) fn discard(traced: Option<Box<TracedRequest>>) {
    if let Some(traced) = traced {
        traced.discard();
    }
}
