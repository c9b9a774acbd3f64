//! One request with its context, and the submission of its writes to the lane or the spool.

use std::borrow::Cow;
use std::sync::Arc;

use http::request::Parts;
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};
use windrow_core::intake::{Receipt, Units};
use windrow_core::shape::ShapeParts;
use windrow_core::{
    AnswerPermit, Budget, Dones, Fault, FaultClass, Intake, Op, Outcomes, Permit, SpoolPlace,
    Spooling, Trace, Unit, UnitOutcome, Write, WriteDone,
};
use windrow_idempotency::{Extent, KeyedRequest, without_mark};

use crate::ack::Ack;
use crate::answers::Refusal;
use crate::answers::expected::ExpectedAnswers;
use crate::app::App;
use crate::handover::Handover;
use crate::idempotency;
use crate::plan::Plan;
use crate::query::{self, Options};
use crate::rights::Rights;
use crate::source::{SPOOL_TIMEOUT, Way, WayPass, WriteSource};

/// The code of a request that has waited too long for the database to apply the spool: SQLSTATE
/// 55000, object not in prerequisite state.
const BEHIND: &str = "55000";

/// One request with its context, without its body.
pub struct RequestContext<'a> {
    /// State that all requests share.
    pub app: &'a App,
    /// The request's head.
    pub head: &'a Parts,
    query: Cow<'a, str>,
    /// The place in the spool that the database must reach first.
    after: Option<SpoolPlace>,
    source: &'a WriteSource,
    /// The executor for requests with a key; `None` without one.
    key: Option<KeyedRequest>,
    /// Set once the request has submitted its writes.
    pub(crate) handover: &'a Handover,
    /// The request's trace; `None` if it is not traced.
    trace: Option<&'a Trace>,
    /// The place after all writes of the request that the spool has accepted.
    place: Mutex<Option<Arc<SpoolPlace>>>,
    /// Memory for its answer.
    room: Mutex<AnswerPermit>,
    /// The rights of the token that the request shows; `None` if it may do everything.
    rights: Option<Arc<Rights>>,
}

impl<'a> RequestContext<'a> {
    /// Prepares a request.
    ///
    /// # Errors
    /// 400 for a parameter `after` that is not a place in a spool; those of a key.
    pub(crate) fn new(
        app: &'a App,
        head: &'a Parts,
        source: &'a WriteSource,
        handover: &'a Handover,
        trace: Option<&'a Trace>,
        rights: Option<Arc<Rights>>,
    ) -> Result<Self, Refusal> {
        let (query, after) = query::take_after(head.uri.query().unwrap_or_default())?;
        Ok(Self {
            app,
            head,
            query,
            after,
            source,
            key: idempotency::begin(app, head)?,
            handover,
            trace,
            place: Mutex::default(),
            room: Mutex::default(),
            rights,
        })
    }

    /// Returns the raw parameters without `after`; empty if there are none.
    pub fn query(&self) -> &str {
        &self.query
    }

    /// Returns the plan of requests like this one, for a raw table name and a tag that stands for
    /// the parameters. A caller's own tag must be one that no query of a URL can have.
    ///
    /// # Errors
    /// 400 for an invalid name, 403 for a table of the database itself and for an operation that
    /// the request's token does not allow.
    pub fn plan(
        &self,
        op: Op,
        table: &str,
        tag: &str,
        options: impl FnOnce() -> Options,
    ) -> Result<Arc<Plan>, Refusal> {
        let plans = &self.app.plans;
        self.allowed(plans.get_with(op, table, tag, || Ok(options()))?)
    }

    /// Returns the plan for the parameters of this request, as [`RequestContext::plan`] does.
    pub(crate) fn own_plan(&self, op: Op, table: &str) -> Result<Arc<Plan>, Refusal> {
        self.allowed(self.app.plans.get(op, table, &self.query)?)
    }

    fn allowed(&self, plan: Arc<Plan>) -> Result<Arc<Plan>, Refusal> {
        self.check_rows(plan.parts())?;
        Ok(plan)
    }

    /// Checks that the request's token allows a write or a read of rows.
    ///
    /// # Errors
    /// As [`Rights::check_rows`].
    pub(crate) fn check_rows(&self, shape: &ShapeParts) -> Result<(), Fault> {
        let rights = self.rights.as_ref();
        rights.map_or(Ok(()), |rights| rights.check_rows(shape))
    }

    /// Returns the rights of the request's token; `None` if it may do everything.
    pub(crate) fn rights(&self) -> Option<&Arc<Rights>> {
        self.rights.as_ref()
    }

    /// Returns the source of the request's writes.
    pub(crate) fn source(&self) -> &'a WriteSource {
        self.source
    }

    /// Returns the request's trace; `None` if it is not traced.
    pub(crate) fn trace(&self) -> Option<&'a Trace> {
        self.trace
    }

    /// Returns the place after all writes of this request that the spool has accepted; `None` if
    /// there are none.
    pub(crate) fn place(&self) -> Option<Arc<SpoolPlace>> {
        self.place.lock().clone()
    }

    /// Takes memory for the answers to units that are about to be submitted; `None` if they are
    /// short.
    ///
    /// # Errors
    /// As [`ExpectedAnswers::take`].
    async fn room_for(&self, units: &mut [Unit]) -> Result<Option<ExpectedAnswers>, Fault> {
        let mut expected = self.app.usual_answers.of(units);
        if let Some(answers) = &mut expected {
            answers.take(self.app.budget().answers()).await?;
        }
        Ok(expected)
    }

    /// Keeps the memory of answers until the request is answered.
    fn answered(&self, expected: Option<ExpectedAnswers>, outcomes: &Outcomes) {
        if let Some(expected) = expected {
            let permit = expected.known(self.app.budget().answers(), outcomes);
            self.room.lock().merge(permit);
        }
    }

    /// Takes the permit for the answer.
    pub(crate) fn take_room(&self) -> AnswerPermit {
        std::mem::take(&mut *self.room.lock())
    }

    /// True if a part of the request was executed before.
    pub(crate) fn is_replayed(&self) -> bool {
        self.key.as_ref().is_some_and(KeyedRequest::is_replayed)
    }

    /// Returns the executor of the request, if it has a key. Writes that the spool accepts need no
    /// key of the gateway.
    pub(crate) fn key(&self, ack: Ack) -> Option<&KeyedRequest> {
        let key = self.key.as_ref();
        key.filter(|key| ack == Ack::Commit || !key.is_own())
    }

    /// Waits until the request may submit writes. Requests of the same client that went another way
    /// must be answered first. The database must have applied the client's writes in the spool
    /// (unless all of this request's operations are reads that need not wait) and the place that
    /// the request names. Cancel safe.
    ///
    /// # Errors
    /// 400 for a place that is not of this spool; 503 if it is not reached in [`SPOOL_TIMEOUT`] or
    /// nothing more will be applied: nothing was submitted.
    pub(crate) async fn turn(&self, ack: Ack, reads: bool) -> Result<Turn<'_>, Refusal> {
        let spool = self.app.services.spool.as_deref();
        let missing = match (spool, &self.after, ack) {
            (None, Some(_), _) => Some("the parameter after"),
            (None, None, Ack::Spool) => Some("ack=spool"),
            _ => None,
        };
        if let Some(what) = missing {
            return Err(self.app.no_spool(what).into());
        }
        if let Some((spool, after)) = spool.zip(self.after.as_ref()) {
            self.applied(spool, after).await?;
        }
        let free = reads && !self.app.config.read_your_writes;
        let pass = self.source.pass(self.way(ack, reads), free).await;
        if ack == Ack::Commit
            && !free
            && let Some(place) = self.source.place()
            && let Some(spool) = spool
        {
            self.applied(spool, &place).await?;
            self.source.has_reached(&place);
        }
        Ok(Turn {
            request: self,
            ack,
            pass,
        })
    }

    /// Returns the way of requests with this acknowledgement. Reads with a key of their own are
    /// executed once, which needs a write.
    fn way(&self, ack: Ack, reads: bool) -> Way {
        match ack {
            Ack::Spool => Way::Spool,
            Ack::Commit if reads && self.key(ack).is_none() && self.has_reads() => Way::Reads,
            Ack::Commit => Way::Lane,
        }
    }

    fn has_reads(&self) -> bool {
        self.app.services.reads.is_some()
    }

    /// Waits until the database has everything before a place.
    async fn applied(&self, spool: &dyn Spooling, place: &SpoolPlace) -> Result<(), Refusal> {
        let begun = Instant::now();
        let applied = timeout(self.source.time_left(), spool.applied(place)).await;
        self.source.has_waited(begun.elapsed());
        match applied {
            Ok(applied) => Ok(applied?),
            // Nothing was handed over, so the code is not that of an unknown outcome.
            Err(_) => {
                let text = place.behind(spool, "request", SPOOL_TIMEOUT);
                let text = format!("{text}. Send it again later");
                Err(Fault::new(FaultClass::Unavailable, BEHIND, text).into())
            }
        }
    }

    /// Submits one unit and waits for its outcome. `held`: memory that was taken for it before.
    ///
    /// # Errors
    /// Those of [`RequestContext::turn`]; the unit's own fault is its outcome.
    pub(crate) async fn submit_one(
        &self,
        ack: Ack,
        mut unit: Unit,
        held: Permit,
    ) -> Result<UnitOutcome, Refusal> {
        let turn = self.turn(ack, unit.ops().all(|op| op == Op::Get)).await?;
        if ack == Ack::Spool && unit.writes().is_empty() {
            turn.remember();
            return Ok(Ok(Dones::new()));
        }
        let room = self.room_for(std::slice::from_mut(&mut unit)).await?;
        let permit = cover(held, unit.bytes(), self.app.budget())?;
        let writes = unit.writes().len();
        let mut outcomes = turn.run([unit], writes, permit, Extent::Alone).await?;
        self.answered(room, &outcomes);
        let outcome = outcomes.pop();
        Ok(
            outcome
                .unwrap_or_else(|| Err(Fault::internal("the lane did not answer a unit").into())),
        )
    }

    /// Submits one write, and returns its result. `held`: memory that was taken for it before.
    ///
    /// # Errors
    /// The reason why it failed or was not submitted.
    pub async fn write(&self, ack: Ack, write: Write, held: Permit) -> Result<WriteDone, Refusal> {
        Ok(done_of(
            self.submit_one(ack, Unit::one(write), held).await?,
        )?)
    }

    /// Submits writes at once, as units of one write each, which keep their order. `permit` covers
    /// them. If `extent` says that more of this request follows, the next part of an envelope
    /// waits.
    ///
    /// # Errors
    /// The reason why none of them was submitted.
    pub async fn outcomes_of(
        &self,
        ack: Ack,
        writes: Vec<Write>,
        permit: Permit,
        extent: Extent,
    ) -> Result<Outcomes, Refusal> {
        if writes.is_empty() {
            return Ok(Outcomes::new());
        }
        let reads = writes.iter().all(|write| write.shape.op == Op::Get);
        let turn = self.turn(ack, reads).await?;
        let mut units: Vec<Unit> = writes.into_iter().map(Unit::one).collect();
        let count = units.len();
        let room = self.room_for(&mut units).await?;
        let outcomes = turn.run(units, count, permit, extent).await?;
        self.answered(room, &outcomes);
        Ok(outcomes)
    }
}

/// A request's turn to submit writes. While it is held, no request of the same client goes another
/// way, so it is held until all of its writes are answered.
pub(crate) struct Turn<'r> {
    request: &'r RequestContext<'r>,
    ack: Ack,
    pass: WayPass<'r>,
}

impl Turn<'_> {
    fn intake(&self) -> &Intake {
        let services = &self.request.app.services;
        match self.pass.way() {
            Way::Lane => None,
            Way::Spool => services.spool.as_deref().map(Spooling::intake),
            Way::Reads => services.reads.as_ref(),
        }
        .unwrap_or(&services.intake)
    }

    /// Submits units with this number of writes, and returns their outcomes. The next part of an
    /// envelope may begin if nothing more of this request follows.
    ///
    /// # Errors
    /// Those of [`Turn::submit`], and of the request's key.
    pub(crate) async fn run(
        &self,
        units: impl Into<Units>,
        writes: usize,
        permit: Permit,
        extent: Extent,
    ) -> Result<Outcomes, Refusal> {
        let handover = self.request.handover;
        if let Some(key) = self.request.key(self.ack) {
            let units = units.into();
            self.note(&units);
            let outcomes = Box::pin(self.run_keyed(key, units, writes, permit, extent)).await?;
            if extent != Extent::More {
                handover.complete();
            }
            return Ok(outcomes);
        }
        let receipt = self.submit(units, writes, permit).await?;
        if extent != Extent::More {
            handover.complete();
        }
        Ok(self.settle(receipt.await))
    }

    /// Executes units once, otherwise as [`Turn::run`].
    async fn run_keyed(
        &self,
        key: &KeyedRequest,
        units: Units,
        writes: usize,
        permit: Permit,
        extent: Extent,
    ) -> Result<Outcomes, Refusal> {
        if self.ack == Ack::Commit {
            let metrics = &self.request.app.services.metrics;
            metrics.handed_over(self.ack, writes as u64);
            let source = self.request.source.id(Way::Lane);
            return Ok(key.commit(source, units, permit, extent).await?);
        }
        let units = key.spooled(units, extent)?;
        let bytes = units.iter().map(Unit::bytes).sum();
        let permit = cover(permit, bytes, self.request.app.budget())?;
        let receipt = self.hand_over(units, writes, permit, None).await?;
        let outcomes = receipt.await.into_iter().map(without_mark).collect();
        Ok(self.settle(outcomes))
    }

    /// Submits units with this number of writes.
    ///
    /// # Errors
    /// [`FaultClass::Cancelled`] once the lane or the spool has shut down.
    pub(crate) async fn submit(
        &self,
        units: impl Into<Units>,
        writes: usize,
        permit: Permit,
    ) -> Result<Receipt, Fault> {
        let units = units.into();
        self.note(&units);
        self.hand_over(units, writes, permit, self.request.trace)
            .await
    }

    /// Notes the submitted units, if the request is traced.
    fn note(&self, units: &Units) {
        if let Some(trace) = self.request.trace {
            trace.submitted(units);
        }
    }

    async fn hand_over(
        &self,
        units: Units,
        writes: usize,
        permit: Permit,
        trace: Option<&Trace>,
    ) -> Result<Receipt, Fault> {
        let source = self.request.source.id(self.pass.way());
        let submitted = self.intake().submit_traced(source, units, permit, trace);
        let receipt = submitted.await?;
        let metrics = &self.request.app.services.metrics;
        metrics.handed_over(self.ack, writes as u64);
        Ok(receipt)
    }

    /// Completes the outcomes of units. Each write that the spool has accepted counts as one row.
    pub(crate) fn settle(&self, mut outcomes: Outcomes) -> Outcomes {
        if self.ack == Ack::Spool {
            let dones = outcomes.iter_mut().flatten().flatten();
            dones.for_each(|done| *done = WriteDone::rows(1));
            // Even if the outcome is unknown: the spool may have the write.
            self.remember();
        }
        outcomes
    }

    /// Notes the current end of the spool, which is after all writes of the request.
    pub(crate) fn remember(&self) {
        let Some(spool) = &self.request.app.services.spool else {
            return;
        };
        let place = Arc::new(spool.end());
        self.request.source.has_spooled(&place);
        *self.request.place.lock() = Some(place);
    }
}

/// Returns the result of a unit of one write.
///
/// # Errors
/// The reason why it failed.
pub fn done_of(outcome: UnitOutcome) -> Result<WriteDone, Fault> {
    match outcome {
        Ok(dones) => Ok(dones.into_iter().next().unwrap_or_default()),
        Err(failed) => Err(failed.fault),
    }
}

/// Returns a permit of exactly this size, using what is held already.
fn cover(mut held: Permit, bytes: usize, budget: &Budget) -> Result<Permit, Fault> {
    let missing = bytes.saturating_sub(held.bytes());
    if missing > 0 {
        held.merge(budget.try_take(missing)?);
    } else {
        held.shrink_to(bytes);
    }
    Ok(held)
}
