//! Writes the lines of a body, each of which stands alone, in portions that keep their order. The
//! answer names the lines that failed; a line is never waited for to fill a portion.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::StatusCode;
use windrow_core::unit::UNIT_OVERHEAD;
use windrow_core::{Fault, FaultClass, Op, Returning, Write};
use windrow_http::extension::{
    Ack, Charge, Extent, Feed, Plan, Refusal, RequestContext, WholeAnswer, check_encoding, done_of,
};

use crate::answer;
use crate::line::Lines;
use crate::moment;
use crate::parameters::Parameters;
use crate::point;

/// The most lines of a portion.
const PORTION_LINES: usize = 5_000;
/// The most failed lines that an answer names.
const MAX_NAMED_LINES: u64 = 10;

/// Handles `POST /write` and `POST /api/v2/write`.
///
/// # Errors
/// The reason why the request was refused; portions before stay written.
pub(crate) async fn run(
    context: &RequestContext<'_>,
    feed: &mut Feed<'_>,
) -> Result<WholeAnswer, Refusal> {
    check_encoding(&context.head.headers)?;
    let parameters = Parameters::read(context.query())?;
    let app = context.app;
    let what = (Op::Insert, parameters.on_conflict, &Returning::Nothing);
    let ack = app.ack(what, false, parameters.ack)?;
    let whole = feed.all(app.body_limit(), app.budget()).await?;
    let mut body = Body {
        context,
        parameters,
        lines: Lines::new(&whole.bytes),
        plans: BTreeMap::new(),
        now: moment::now(),
        tally: Tally::default(),
    };
    while body.lines.left() > 0 {
        body.portion(ack).await?;
    }
    Ok(body.tally.answer())
}

/// A body of which lines are left.
struct Body<'r> {
    context: &'r RequestContext<'r>,
    parameters: Parameters,
    lines: Lines<'r>,
    /// The plan of each measurement, or the reason why its table cannot be written.
    plans: BTreeMap<String, Result<Arc<Plan>, Fault>>,
    /// The time of lines without a timestamp.
    now: i64,
    tally: Tally,
}

impl Body<'_> {
    /// Writes the next lines.
    async fn portion(&mut self, ack: Ack) -> Result<(), Refusal> {
        let mut charge = Charge::new(self.context.app.budget().clone());
        let (mut numbers, mut writes) = (Vec::new(), Vec::new());
        while writes.len() < PORTION_LINES
            && let Some((number, read)) = self.lines.next()
        {
            let moment = (self.parameters.precision, self.now);
            let write = read.map_err(Fault::invalid).and_then(|line| {
                let plan = self.plan(&line.measurement)?;
                point::write(line, &plan, moment)
            });
            match write {
                Ok(write) => {
                    charge.add(UNIT_OVERHEAD + write.bytes())?;
                    numbers.push(number);
                    writes.push(write);
                }
                Err(fault) => self.tally.fail(number, &fault),
            }
        }
        self.execute(ack, (numbers, writes), charge).await
    }

    async fn execute(
        &mut self,
        ack: Ack,
        (numbers, writes): (Vec<u64>, Vec<Write>),
        charge: Charge,
    ) -> Result<(), Refusal> {
        let extent = match self.lines.left() {
            0 => Extent::Last,
            _ => Extent::More,
        };
        let permit = charge.into_permit();
        let outcomes = self
            .context
            .outcomes_of(ack, writes, permit, extent)
            .await?;
        for (number, outcome) in numbers.into_iter().zip(outcomes) {
            if let Err(fault) = done_of(outcome) {
                self.tally.fail(number, &fault);
            } else {
                self.tally.written += 1;
            }
        }
        Ok(())
    }

    /// Returns the plan of a measurement's rows. Its name is that of a table as a whole, with
    /// whatever dots and quotation marks it has.
    fn plan(&mut self, measurement: &str) -> Result<Arc<Plan>, Fault> {
        if let Some(plan) = self.plans.get(measurement) {
            return plan.clone();
        }
        let name = measurement.replace('%', "%25").replace('"', "\"\"");
        let options = || self.parameters.options();
        let tag = &self.parameters.tag;
        let plan = self
            .context
            .plan(Op::Insert, &format!("\"{name}\""), tag, options);
        let plan = plan.map_err(|refusal| refusal.fault().clone());
        self.plans.insert(measurement.to_owned(), plan.clone());
        plan
    }
}

/// The results of the lines so far.
#[derive(Debug, Default)]
struct Tally {
    written: u64,
    dropped: u64,
    named: Vec<String>,
    /// The first failure after which the client should send all lines again.
    passing: Option<Refusal>,
    /// True while every failed line was one that the token does not allow.
    is_denied: Option<bool>,
}

impl Tally {
    fn fail(&mut self, number: u64, fault: &Fault) {
        self.dropped += 1;
        if self.dropped <= MAX_NAMED_LINES {
            self.named.push(format!("line {number}: {}", fault.message));
        }
        let is_denied = fault.class == FaultClass::Denied;
        self.is_denied = Some(self.is_denied.unwrap_or(true) && is_denied);
        if !fault.is_own() {
            self.passing.get_or_insert_with(|| fault.clone().into());
        }
    }

    fn answer(self) -> WholeAnswer {
        if self.dropped == 0 {
            return answer::no_content();
        }
        if let Some(refusal) = self.passing {
            return answer::refuse(&refusal);
        }
        let status = match self.is_denied {
            Some(true) if self.written == 0 => StatusCode::FORBIDDEN,
            _ => StatusCode::BAD_REQUEST,
        };
        let more = match self.dropped > MAX_NAMED_LINES {
            true => "; ..",
            false => "",
        };
        let lines = self.named.join("; ");
        let message = format!("partial write: {lines}{more} dropped={}", self.dropped);
        answer::error(status, &message)
    }
}
