//! Commits units that were not committed before.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use windrow_bookkeeping::Executed;
use windrow_core::{
    Fault, FaultClass, Intake, Outcomes, Permit, RetryPolicy, SourceId, Unit, UnitOutcome,
};

use crate::part::{Part, foretold, kept_bytes, without_mark};
use crate::refused::Refused;
use crate::stored::Stored;
use crate::under_way::{UnderWay, found};

/// The time for which the lane retries a unit with an unknown outcome: the row of its key shows if
/// it was executed.
const UNKNOWN_WAIT: Duration = Duration::from_secs(30);

/// The units of a request that are being committed, and their context.
pub(crate) struct Commit {
    pub(crate) under_way: Arc<UnderWay>,
    pub(crate) source: SourceId,
}

impl Commit {
    /// Executes the parts of a request and stores their outcomes. Runs as a task, because it must
    /// not end early.
    pub(crate) async fn run(self, parts: Vec<Part>, permit: Permit) -> Result<Outcomes, Refused> {
        let shared = &self.under_way.shared;
        let _kept = shared.lane.budget().try_take(kept_bytes(&parts))?;
        let mut outcomes = self.attempt(&parts, permit).await?;
        self.settle(&parts, &mut outcomes).await?;
        self.forget(&parts, &outcomes);
        Ok(outcomes)
    }

    /// Submits all parts, and stores the outcomes of executed parts that differ from the predicted
    /// ones.
    async fn attempt(&self, parts: &[Part], permit: Permit) -> Result<Outcomes, Fault> {
        let units = parts.iter().map(Part::marked).collect();
        let outcomes = self.submit_to(&self.lane_for_once(), units, permit).await?;
        let outcomes: Outcomes = outcomes.into_iter().map(without_mark).collect();
        self.complete(parts, &outcomes).await;
        Ok(outcomes)
    }

    /// Returns the lane with a policy that retries units whose outcome is unknown.
    fn lane_for_once(&self) -> Intake {
        let policy = RetryPolicy::client().executed_once(UNKNOWN_WAIT);
        self.under_way.shared.lane.with_policy(policy)
    }

    /// Reads the stored outcomes of all parts that failed because they were executed before. Stores
    /// the failures of parts that were not.
    async fn settle(&self, parts: &[Part], outcomes: &mut Outcomes) -> Result<(), Refused> {
        let failed = places(outcomes, |fault| !fault.may_retry());
        if failed.is_empty() {
            return Ok(());
        }
        let shared = &self.under_way.shared;
        let found = self.read(parts, &failed).await;
        let mut refused = Vec::new();
        for (at, found) in failed.into_iter().zip(found) {
            let (Some(part), Some(outcome)) = (parts.get(at), outcomes.get_mut(at)) else {
                continue;
            };
            let Err(failure) = &*outcome else { continue };
            shared.noticed(&failure.fault);
            let is_open = failure.fault.class == FaultClass::Unknown;
            match found {
                Ok(Some(executed)) => {
                    self.under_way.replayed.store(true, Ordering::Relaxed);
                    *outcome = outcome_of(part, &executed, self.under_way.own)?;
                }
                Ok(None) if !is_open => refused.push(at),
                // The outcome of the part stays as it is.
                Ok(None) => {}
                Err(fault) if !is_open => *outcome = Err(fault.into()),
                Err(_) => {}
            }
        }
        self.store_failures(parts, &refused, outcomes).await
    }

    async fn read(&self, parts: &[Part], places: &[usize]) -> Vec<Result<Option<Executed>, Fault>> {
        let asked = places.iter().filter_map(|at| parts.get(*at));
        let units: Vec<Unit> = asked.map(|part| Unit::one(part.id.read())).collect();
        match self.submit(units, Permit::empty()).await {
            Ok(outcomes) => outcomes.into_iter().map(found).collect(),
            Err(fault) => vec![Err(fault); places.len()],
        }
    }

    /// Stores the failures of refused parts. If another request has stored an outcome first, that
    /// one counts.
    async fn store_failures(
        &self,
        parts: &[Part],
        refused: &[usize],
        outcomes: &mut Outcomes,
    ) -> Result<(), Refused> {
        if refused.is_empty() || self.under_way.own {
            return Ok(());
        }
        let mark = |at: &usize| {
            let (part, outcome) = (parts.get(*at)?, outcomes.get(*at)?);
            let stored = Stored::of(outcome).bytes();
            let request = part.fingerprint.to_string();
            Some(Unit::one(part.id.insert(&request, Some(&stored))))
        };
        let units: Vec<Unit> = refused.iter().filter_map(mark).collect();
        let Ok(stored) = self.submit(units, Permit::empty()).await else {
            return Ok(());
        };
        let was_there = |outcome: &UnitOutcome| {
            let failed = outcome.as_ref().err();
            failed.is_some_and(|failed| failed.fault.class == FaultClass::Unique)
        };
        let pairs = refused.iter().zip(&stored);
        let theirs: Vec<usize> = pairs
            .filter(|(_, outcome)| was_there(outcome))
            .map(|(at, _)| *at)
            .collect();
        let found = self.read(parts, &theirs).await;
        for (at, found) in theirs.into_iter().zip(found) {
            if let (Some(part), Some(outcome), Ok(Some(executed))) =
                (parts.get(at), outcomes.get_mut(at), found)
            {
                *outcome = outcome_of(part, &executed, self.under_way.own)?;
            }
        }
        Ok(())
    }

    /// Stores the outcomes of parts, if they differ from the predicted ones.
    async fn complete(&self, parts: &[Part], outcomes: &Outcomes) {
        if self.under_way.own {
            return;
        }
        let late = |(part, outcome): (&Part, &UnitOutcome)| {
            let dones = outcome.as_ref().ok()?;
            let known = foretold(part.unit.writes());
            let stored = || Stored::of(outcome).bytes();
            (known.as_ref() != Some(dones)).then(|| Unit::one(part.id.complete(&stored())))
        };
        let units: Vec<Unit> = parts.iter().zip(outcomes).filter_map(late).collect();
        if units.is_empty() {
            return;
        }
        let count = units.len();
        let failure = match self.submit(units, Permit::empty()).await {
            Ok(stored) => stored.into_iter().find_map(Result::err).map(|e| e.fault),
            Err(fault) => Some(fault),
        };
        if let Some(fault) = failure {
            tracing::warn!(
                %fault, count,
                "outcomes of requests with keys were not stored; a repetition is answered that it was executed, without its values"
            );
        }
    }

    /// Deletes a key of the gateway's own, whose request is answered. The result is not awaited: if
    /// the key cannot be deleted now, it is deleted later because of its age, as all keys are.
    fn forget(&self, parts: &[Part], outcomes: &Outcomes) {
        if !self.under_way.own {
            return;
        }
        let may_be_there = |outcome: &UnitOutcome| match outcome {
            Ok(_) => true,
            Err(failed) => failed.fault.class == FaultClass::Unknown,
        };
        let parts = parts.iter().zip(outcomes);
        let executed = parts.filter(|(_, outcome)| may_be_there(outcome));
        let units: Vec<Unit> = executed
            .map(|(part, _)| Unit::one(part.id.forget()))
            .collect();
        let forgetting = Self {
            under_way: Arc::clone(&self.under_way),
            source: self.under_way.shared.source,
        };
        let lane = self.lane_for_once();
        tokio::spawn(async move {
            let forgotten = forgetting.submit_to(&lane, units, Permit::empty()).await;
            forgotten.map(drop)
        });
    }

    /// Returns the outcomes of further units, which read and store outcomes of the parts.
    async fn submit(&self, units: Vec<Unit>, permit: Permit) -> Result<Outcomes, Fault> {
        let lane = &self.under_way.shared.lane;
        self.submit_to(lane, units, permit).await
    }

    /// Returns the outcomes of units. `permit`: memory that was taken for them; more is taken if
    /// needed.
    async fn submit_to(
        &self,
        lane: &Intake,
        units: Vec<Unit>,
        mut permit: Permit,
    ) -> Result<Outcomes, Fault> {
        let bytes: usize = units.iter().map(Unit::bytes).sum();
        let lacking = bytes.saturating_sub(permit.bytes());
        permit.merge(lane.budget().try_take(lacking)?);
        Ok(lane.submit(self.source, units, permit).await?.await)
    }
}

/// Returns the stored outcome of this part. `own`: this request executed the part itself and lost
/// its connection.
fn outcome_of(part: &Part, executed: &Executed, own: bool) -> Result<UnitOutcome, Refused> {
    if *executed.request != *part.fingerprint.to_string() {
        return Err(Refused::mismatch());
    }
    let Some(outcome) = &executed.outcome else {
        if own {
            let message = "the write was committed, and the connection to the database was lost before it said what the write gave back: read the row to see it";
            return Ok(Err(Fault::unknown(message).into()));
        }
        let message = "a request with this idempotency key was executed before, and is not executed again; but what it gave back was not stored (yet): read the row to see it";
        return Ok(Err(Fault::new(FaultClass::Unique, "23505", message).into()));
    };
    let stored = Stored::read(outcome)?.outcome();
    stored.ok_or_else(Refused::mismatch)
}

/// Returns the positions of the outcomes that have failed in this way.
fn places(outcomes: &Outcomes, is_wanted: impl Fn(&Fault) -> bool) -> Vec<usize> {
    let failed = outcomes.iter().enumerate();
    failed
        .filter(|(_, outcome)| {
            let fault = outcome.as_ref().err().map(|failed| &failed.fault);
            fault.is_some_and(&is_wanted)
        })
        .map(|(at, _)| at)
        .collect()
}
