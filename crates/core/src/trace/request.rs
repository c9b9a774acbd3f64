//! One request, from its beginning to its end.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;

use super::{Side, TraceContext, TraceSpan, TraceValue, Tracer};
use crate::name::TableName;
use crate::shape::Op;
use crate::sink::{Rung, Tally};
use crate::unit::Unit;

/// The most batches that a request's span links to.
const LINKS: usize = 32;

/// The handle of a traced request for the parts that work on it, which note their steps. Cheap to
/// clone.
#[derive(Clone)]
pub struct Trace(Arc<SharedRequest>);

struct SharedRequest {
    context: TraceContext,
    tracer: Tracer,
    notes: Mutex<Notes>,
}

/// The notes on a request up to now.
#[derive(Default)]
struct Notes {
    rows: usize,
    /// The operation and table of the first write; the flag is true if the writes are not all
    /// alike.
    first: Option<(Op, TableName)>,
    mixed: bool,
    /// The longest time that a unit has waited to leave.
    queued: Option<Duration>,
    in_database: Duration,
    batches: usize,
    rungs: [bool; Rung::ALL.len()],
    links: Vec<TraceContext>,
    /// The batch that landed last.
    last: Option<TraceContext>,
    waited_for_lock: bool,
    failed: usize,
    /// The SQLSTATE of the first failed unit.
    code: Option<Box<str>>,
}

impl Trace {
    /// Returns the identity of the request's span.
    pub fn context(&self) -> TraceContext {
        self.0.context
    }

    pub(super) fn tracer(&self) -> &Tracer {
        &self.0.tracer
    }

    /// Notes units that are submitted.
    pub fn submitted(&self, units: &[Unit]) {
        let mut notes = self.0.notes.lock();
        for write in units.iter().flat_map(Unit::writes) {
            notes.rows += 1;
            match &notes.first {
                None => notes.first = Some((write.op(), write.table().clone())),
                Some((op, table)) if (*op, table) == (write.op(), write.table()) => {}
                Some(_) => notes.mixed = true,
            }
        }
    }

    /// Notes that a batch with some of the units has landed, and how long they had waited when it
    /// left. Returns false if the batch was noted already: it may contain several portions of a
    /// long request.
    pub(super) fn landed(&self, batch: TraceContext, queued: Duration, tally: &Tally) -> bool {
        let mut notes = self.0.notes.lock();
        notes.queued = notes.queued.max(Some(queued));
        if notes.last.replace(batch) == Some(batch) {
            return false;
        }
        notes.in_database += tally.in_database;
        notes.batches += 1;
        for (noted, writes) in notes.rungs.iter_mut().zip(tally.rungs) {
            *noted |= writes > 0;
        }
        if notes.links.len() < LINKS {
            notes.links.push(batch);
        }
        true
    }

    /// Notes that a unit has failed. `code` is an SQLSTATE.
    pub fn failed(&self, code: &str) {
        let mut notes = self.0.notes.lock();
        notes.failed += 1;
        notes.code.get_or_insert_with(|| code.into());
    }

    /// Notes that a unit ran by itself, because it waited for a lock.
    pub fn waited_for_lock(&self) {
        self.0.notes.lock().waited_for_lock = true;
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Trace").field(&self.0.context).finish()
    }
}

/// A traced request, held by its frontend. If it is dropped before its end, its client has left.
#[derive(Debug)]
pub struct TracedRequest {
    trace: Trace,
    parent: Option<[u8; 8]>,
    began: SystemTime,
    name: Cow<'static, str>,
    attributes: Vec<(&'static str, TraceValue)>,
    ended: bool,
}

impl TracedRequest {
    /// Begins a traced request; `None` if the request is not sampled. `caller` is the client's own
    /// span.
    pub fn begin(tracer: &Tracer, caller: Option<TraceContext>) -> Option<Box<Self>> {
        let context = tracer.sample(caller)?;
        let shared = SharedRequest {
            context,
            tracer: tracer.clone(),
            notes: Mutex::default(),
        };
        Some(Box::new(Self {
            trace: Trace(Arc::new(shared)),
            parent: caller.map(|caller| caller.span),
            began: SystemTime::now(),
            name: "".into(),
            attributes: Vec::new(),
            ended: false,
        }))
    }

    /// Begins the traced request of an SQL client's unit that is about to be submitted; `None` if
    /// the request is not sampled. `came`: the time at which the unit arrived.
    pub fn of_statement(
        tracer: &Tracer,
        caller: Option<TraceContext>,
        came: SystemTime,
        database: &str,
        unit: &Unit,
    ) -> Option<Box<Self>> {
        let mut traced = Self::begin(tracer, caller)?;
        traced.came(came);
        traced.note("db.namespace", TraceValue::Text(database.to_owned().into()));
        traced.trace().submitted(std::slice::from_ref(unit));
        Some(traced)
    }

    /// Returns the handle for the parts that work on the request.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Sets the time of arrival, for a request that arrived before it was sampled.
    pub fn came(&mut self, at: SystemTime) {
        self.began = at;
    }

    /// Names the request; by default it has the name of its operation. Names are few: they contain
    /// nothing specific to one request.
    pub fn name(&mut self, name: impl Into<Cow<'static, str>>) {
        self.name = name.into();
    }

    /// Notes an attribute.
    pub fn note(&mut self, name: &'static str, value: TraceValue) {
        self.attributes.push((name, value));
    }

    /// Notes that the request, or a part of it, is refused. If the lane has reported failed units,
    /// the note has no effect.
    pub fn fails(&self, code: &str) {
        if self.trace.0.notes.lock().failed == 0 {
            self.trace.failed(code);
        }
    }

    /// Ends the request with its answer; `failed` is true if the answer blames Windrow.
    pub fn end(mut self, failed: bool) {
        self.finish(failed);
    }

    /// Drops the request, which is not to be traced after all.
    pub fn discard(mut self) {
        self.ended = true;
    }

    fn finish(&mut self, failed: bool) {
        self.ended = true;
        let notes = std::mem::take(&mut *self.trace.0.notes.lock());
        let mut span = TraceSpan {
            context: self.trace.context(),
            parent: self.parent,
            side: Side::Server,
            name: std::mem::take(&mut self.name),
            began: self.began,
            ended: SystemTime::now(),
            links: Vec::new(),
            links_left_out: notes.batches.saturating_sub(LINKS),
            attributes: std::mem::take(&mut self.attributes),
            failed: failed || notes.failed > 0,
        };
        notes.tell(&mut span);
        self.trace.tracer().take(span);
    }
}

impl Drop for TracedRequest {
    fn drop(&mut self) {
        if !self.ended {
            self.note("windrow.client_left", TraceValue::Flag(true));
            self.finish(true);
        }
    }
}

impl Notes {
    fn tell(self, span: &mut TraceSpan) {
        let same = self.first.filter(|_| !self.mixed);
        if span.name.is_empty() {
            span.name = match &same {
                Some((op, table)) => format!("{} {table}", op.as_str()).into(),
                None => "writes".into(),
            };
        }
        let mut tell = |name, value| span.attributes.push((name, value));
        if let Some((op, table)) = same {
            tell("db.operation.name", TraceValue::Text(op.as_str().into()));
            tell(
                "db.collection.name",
                TraceValue::Text(table.to_string().into()),
            );
        }
        tell("windrow.rows", TraceValue::Count(self.rows as u64));
        if self.batches > 0 {
            let seconds = self.in_database.as_secs_f64();
            tell("windrow.batches", TraceValue::Count(self.batches as u64));
            tell("windrow.database_seconds", TraceValue::Seconds(seconds));
        }
        if let Some(queued) = self.queued {
            tell(
                "windrow.queue_seconds",
                TraceValue::Seconds(queued.as_secs_f64()),
            );
        }
        let rungs = Rung::ALL.iter().zip(self.rungs);
        let rungs: Vec<&str> = rungs
            .filter(|one| one.1)
            .map(|one| one.0.as_str())
            .collect();
        if !rungs.is_empty() {
            tell("windrow.rung", TraceValue::Text(rungs.join(",").into()));
        }
        if self.waited_for_lock {
            tell("windrow.waited_for_lock", TraceValue::Flag(true));
        }
        if let Some(code) = self.code {
            tell("windrow.failed", TraceValue::Count(self.failed as u64));
            tell(
                "db.response.status_code",
                TraceValue::Text(code.into_string().into()),
            );
        }
        span.links = self.links;
    }
}

#[cfg(test)]
mod tests {
    use super::super::TracedBatch;
    use super::*;
    use crate::write::Write;

    fn begin(tracer: &Tracer) -> Box<TracedRequest> {
        TracedRequest::begin(tracer, None).unwrap()
    }

    fn told(span: &TraceSpan, name: &str) -> Option<TraceValue> {
        let mut all = span.attributes.iter();
        all.find(|one| one.0 == name).map(|one| one.1.clone())
    }

    #[tokio::test]
    async fn who_leaves_is_told_of_and_who_goes_another_way_is_not() {
        let (tracer, mut spans) = Tracer::channel(1.0, 4);
        begin(&tracer).discard();
        drop(begin(&tracer));
        let refused = begin(&tracer);
        refused.fails("53200");
        refused.end(false);
        let (left, refused) = (spans.try_recv().unwrap(), spans.try_recv().unwrap());
        assert_eq!(
            told(&left, "windrow.client_left"),
            Some(TraceValue::Flag(true))
        );
        let code = told(&refused, "db.response.status_code");
        assert_eq!(code, Some(TraceValue::Text("53200".into())));
        assert!(left.failed && refused.failed && spans.try_recv().is_err());
        assert_eq!((&*left.name, left.parent), ("writes", None));
    }

    #[tokio::test]
    async fn a_batch_links_to_some_of_many_requests_and_says_how_many_more() {
        let (tracer, mut spans) = Tracer::channel(1.0, 1000);
        let requests: Vec<_> = (0..200).map(|_| begin(&tracer)).collect();
        let wait = Duration::from_millis(3);
        // Three portions of each, some of them side by side.
        let portions = requests.iter().flat_map(|request| [request; 2]);
        let portions = portions.chain(&requests);
        let portions: Vec<_> = portions.map(|one| (one.trace().clone(), wait)).collect();
        let mut tally = Tally::default();
        tally.add(Rung::Fused, 399);
        tally.add(Rung::Isolated, 1);
        let batch = TracedBatch {
            lane: "default",
            database: "SQLite",
            took: wait,
            rows: 400,
            units: 400,
            failed: 1,
            again: 0,
            tally: &tally,
        };
        batch.landed(&portions);
        let span = spans.try_recv().unwrap();
        assert_eq!((span.links.len(), span.links_left_out), (128, 72));
        assert_eq!(
            told(&span, "windrow.rows_fused"),
            Some(TraceValue::Count(399))
        );
        assert!(told(&span, "windrow.rows_solo").is_none() && !span.failed);
        requests.into_iter().for_each(|request| request.end(false));
        let request = spans.try_recv().unwrap();
        assert_eq!(request.links, [span.context]);
        let rung = TraceValue::Text("fused,isolated".into());
        assert_eq!(told(&request, "windrow.rung"), Some(rung));
        assert_eq!(
            told(&request, "windrow.batches"),
            Some(TraceValue::Count(1))
        );
    }

    #[test]
    fn writes_that_are_not_alike_have_no_table() {
        use crate::shape::{Key, OnConflict, Returning, Shape, ShapeParts};
        let write = |table: &str| {
            let parts = ShapeParts {
                op: Op::Insert,
                table: TableName::bare(table),
                columns: Box::default(),
                key: Key::Primary,
                on_conflict: OnConflict::Error,
                returning: Returning::Nothing,
            };
            Write::new(Arc::new(Shape::new(parts)), Vec::new())
        };
        let (tracer, mut spans) = Tracer::channel(1.0, 4);
        for tables in [["t", "t"], ["t", "u"]] {
            let request = begin(&tracer);
            let units = tables.map(|table| Unit::one(write(table)));
            request.trace().submitted(&units);
            request.end(false);
        }
        let (alike, mixed) = (spans.try_recv().unwrap(), spans.try_recv().unwrap());
        assert_eq!((&*alike.name, &*mixed.name), ("insert t", "writes"));
        assert!(told(&mixed, "db.collection.name").is_none());
        assert_eq!(told(&mixed, "windrow.rows"), Some(TraceValue::Count(2)));
    }
}
