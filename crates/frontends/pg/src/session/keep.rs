//! Certain writes of a transaction block: answered at once, kept in the session, and committed as
//! one unit of its lane.
//!
//! A write is certain if nothing can refuse it between its answer and COMMIT: see
//! [`windrow_core::Preview`]. Until COMMIT the database holds no lock and no connection for it. Any
//! other statement moves the block to a server connection, which executes BEGIN and the kept writes
//! first.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use smallvec::SmallVec;
use windrow_core::{
    Arguments, Doubt, Formats, Generated, LateWrite, Op, Permit, Preview, PreviewReference,
    PreviewValue, SqlCall, Unit, Write, WriteDone,
};

use super::computed::{Computed, NotKept, UNCERTAIN, compute, count, number};
use super::kept::{KeptWrite, KeptWrites};
use super::pending::{AnswerEnd, AwaitedOutcome, CommitAnswer, Pending, Script};
use super::single_rows::Calls;
use super::state::{End, NO_MEMORY, Session, lane_ended};
use super::traces::{self, AskedTrace};
use super::unsent_block::{self, LoneStatement};
use super::{block_reasons, single_rows};
use crate::codec::message::{Front, HEADER};
use crate::codec::{data_row, failure};
use crate::session_info::State;

/// The reasons why a block needs a server connection.
const FOREIGN_KEY: &str = Doubt::FOREIGN_KEY.phrase;
const TOO_MUCH: &str = block_reasons::TOO_MUCH.phrase;
const UNKNOWN: &str = block_reasons::UNKNOWN.phrase;

/// The way in which a call is answered.
enum KeepPlan {
    /// The row is computed.
    Row(Arc<Preview>),
    /// The write itself is executed at COMMIT.
    Late(Arc<LateWrite>),
}

/// A write that was answered and is kept.
struct Previewed {
    /// The write with its memory; `None` if it changes nothing.
    write: Option<(KeptWrite, Permit)>,
    done: WriteDone,
    moment: Option<[u8; 8]>,
}

/// Returns true if the next message of a block may belong to a kept write.
pub(super) fn takes_front(session: &Session) -> bool {
    if unsent_block::has_failed(session) || !unsent_block::may_keep(session) {
        return false;
    }
    let (connection, at) = (&session.connection, session.segment.bytes);
    match connection.front(at) {
        Ok(Front::Whole { tag, total }) => {
            let is_taken = match tag {
                b'P' | b'B' | b'D' | b'E' | b'C' => true,
                b'S' | b'H' => total == HEADER,
                b'Q' => at == 0,
                _ => false,
            };
            is_taken && !connection.needs_charge(at + total)
        }
        Ok(Front::Part {
            header: Some((tag, total)),
        }) => tag != b'd' && !connection.needs_charge(at + total),
        Ok(Front::Part { header: None }) => true,
        Err(_) => false,
    }
}

/// Answers the writes of a query or segment, and keeps them until COMMIT. `taken`: their bytes at
/// the front of the inbox.
pub(super) async fn keep(
    session: &mut Session,
    calls: Calls,
    script: Script,
    ending: AnswerEnd,
    taken: usize,
) -> Result<(), End> {
    session.drain().await?;
    session.pass_gate().await?;
    // A named portal stays until the transaction ends.
    let is_named = script.calls.iter().any(|call| call.portal.is_some());
    let single = match is_named {
        true => {
            drop(calls);
            Err(UNCERTAIN)
        }
        false => single_rows::of(session, calls).await?,
    };
    let kept = match single {
        Ok(single) => preview(session, &single.calls)
            .await
            .map(|all| (single, all)),
        Err(reason) => Err(reason.into()),
    };
    let opens = session.segment.block.is_some();
    let (single, previewed) = match kept {
        Ok(kept) => kept,
        Err(NotKept::Relay(reason)) => {
            if opens {
                // BEGIN is sent there with the rest of its segment.
                session.unsent_block = None;
            }
            // A session may stay on a server connection for long, and must not hold a copy of its
            // values meanwhile.
            drop((script, ending));
            return session.relay(reason).await;
        }
        Err(NotKept::Cancelled(fault)) => {
            let first = script.calls.first().filter(|_| opens);
            let before = first.and_then(|first| script.text.get(..first.bound));
            session.connection.out.put_slice(before.unwrap_or_default());
            return session.refuse(&fault).await;
        }
    };
    let mut dones = Vec::with_capacity(previewed.len());
    if let Some(block) = &mut session.unsent_block {
        block.kept.note_answered();
        for one in previewed {
            dones.push(one.done);
            if let Some((write, permit)) = one.write {
                block.kept.push(write, permit);
            }
            if let Some(moment) = one.moment {
                block.kept.note_moment(moment);
            }
        }
    }
    let mut pending = Pending::new(script, ending);
    pending.status = unsent_block::status(session);
    session.take_in(&mut pending, taken);
    let stopping = session.stop.is_cancelled();
    let (out, values) = (&mut session.connection.out, &mut session.values);
    pending.say(Some(Ok(single.merge(dones))), out, values, stopping);
    Ok(())
}

/// Computes the answers of writes.
async fn preview(session: &mut Session, calls: &Calls) -> Result<Vec<Previewed>, NotKept> {
    let plans = plans(session, calls)?;
    let mut rows = rows(session, calls, &plans).await?.into_iter();
    let mut counts = counts(session, calls, &plans).await?.into_iter();
    let Some(block) = &session.unsent_block else {
        return Err(UNCERTAIN.into());
    };
    let (late, mut bytes) = (session.own.late, block.kept.bytes());
    let mut previewed = Vec::with_capacity(calls.len());
    for (call, plan) in calls.iter().zip(&plans) {
        let (write, done, moment) = match plan {
            KeepPlan::Late(form) => {
                let count = match form.question {
                    Some(_) => counts.next().ok_or(UNCERTAIN)?,
                    None => 1,
                };
                let write = (count > 0).then(|| KeptWrite::of_late(form, call));
                (write, WriteDone::rows(count), None)
            }
            KeepPlan::Row(plan) => {
                let row = rows.next().ok_or(UNCERTAIN)?;
                let stored = stored(plan, call, &row).ok_or(UNCERTAIN)?;
                let is_held = |r: &PreviewReference| block.kept.holds(r, (&stored, r.value));
                if !late && !plan.references.iter().all(is_held) {
                    return Err(FOREIGN_KEY.into());
                }
                let write = KeptWrite::new(plan, stored, call, late);
                (Some(write), done(plan, call, &row), row.moment)
            }
        };
        bytes += write.as_ref().map_or(0, KeptWrite::bytes);
        if bytes > session.shared.config.max_pending {
            return Err(TOO_MUCH.into());
        }
        let write = write.map(|write| {
            let permit = session.shared.budget.try_take(write.bytes());
            permit.map(|permit| (write, permit))
        });
        previewed.push(Previewed {
            write: write.transpose().map_err(|_| NO_MEMORY)?,
            done,
            moment,
        });
    }
    Ok(previewed)
}

/// Asks for the numbers of rows that late writes will change.
async fn counts(session: &Session, calls: &Calls, plans: &[KeepPlan]) -> Result<Vec<u64>, NotKept> {
    let questions = calls
        .iter()
        .zip(plans)
        .filter_map(|(call, plan)| match plan {
            KeepPlan::Late(form) => Some((form.question.as_ref()?, call)),
            KeepPlan::Row(_) => None,
        });
    count(session, questions.collect()).await
}

/// Computes rows for the calls that are answered by them.
async fn rows(
    session: &mut Session,
    calls: &Calls,
    plans: &[KeepPlan],
) -> Result<Vec<Computed>, NotKept> {
    let of_rows = calls
        .iter()
        .zip(plans)
        .filter_map(|(call, plan)| match plan {
            KeepPlan::Row(plan) => Some((call, Arc::clone(plan))),
            KeepPlan::Late(_) => None,
        });
    let (asked, of_rows): (Vec<&SqlCall>, Vec<Arc<Preview>>) = of_rows.unzip();
    let asked: Cow<'_, [SqlCall]> = match asked.len() == calls.len() {
        true => Cow::Borrowed(calls),
        false => asked.into_iter().cloned().collect(),
    };
    compute(session, &asked, &of_rows).await
}

/// Returns the way in which each call is answered.
///
/// # Errors
/// The reason why their answers are not certain.
fn plans(session: &Session, calls: &Calls) -> Result<Vec<KeepPlan>, NotKept> {
    let kept = session.unsent_block.as_ref().map(|block| &block.kept);
    let mut is_open = kept.is_some_and(KeptWrites::is_open);
    // All rows of a transaction have the same time.
    let mut has_time = kept.is_some_and(|kept| kept.moment().is_some());
    let mut plans = Vec::with_capacity(calls.len());
    for call in calls {
        if !call
            .statement
            .has_lasting_values(&call.arguments, &call.formats)
        {
            return Err(UNCERTAIN.into());
        }
        let late = late_write(session, call).filter(|late| !late.has_time || !has_time);
        changes(session, call, (late, calls.len()))?;
        plans.push(match late {
            Some(late) => {
                is_open |= late.is_open();
                KeepPlan::Late(Arc::clone(late))
            }
            None if is_open => return Err(UNKNOWN.into()),
            None => {
                has_time = true;
                KeepPlan::Row(plan(session, call)?)
            }
        });
    }
    Ok(plans)
}

/// Checks that the number of rows of an UPDATE or DELETE can be asked for: the call is alone, and
/// no kept write changes that number.
///
/// # Errors
/// The reason why it cannot.
fn changes(
    session: &Session,
    call: &SqlCall,
    (late, calls): (Option<&Arc<LateWrite>>, usize),
) -> Result<(), NotKept> {
    let reason = match call.statement.parsed().op {
        Op::Update => block_reasons::UPDATE.phrase,
        Op::Delete => block_reasons::DELETE.phrase,
        _ => return Ok(()),
    };
    let kept = session.unsent_block.as_ref().map(|block| &block.kept);
    let row = call.statement.row_of(&call.arguments, &call.formats);
    let is_alone = kept.is_some_and(|kept| kept.leaves_alone(call));
    let is_asked = late.is_some() && calls == 1 && row.is_some() && is_alone;
    match is_asked {
        true => Ok(()),
        false => Err(reason.into()),
    }
}

/// Returns the form in which the write of a call is executed late; `None` if it is better to
/// compute its row: that costs little, and a later row of its transaction may be computed too.
fn late_write<'c>(session: &Session, call: &'c SqlCall) -> Option<&'c Arc<LateWrite>> {
    let late = call.statement.late_write();
    let late = late.filter(|_| session.own.late)?;
    let is_cheap = || {
        let plan = call.statement.preview();
        plan.is_some_and(|plan| plan.ahead.is_some() && !plan.ahead_has_time)
    };
    (!late.is_open() || !is_cheap()).then_some(late)
}

/// Returns the plan by which the row of a call is computed.
///
/// # Errors
/// The reason why its answer is not certain.
fn plan(session: &Session, call: &SqlCall) -> Result<Arc<Preview>, NotKept> {
    let statement = &call.statement;
    let why = || statement.doubt().map_or(UNCERTAIN, |doubt| doubt.phrase);
    let plan = statement.preview().ok_or_else(why)?;
    if session.own.late {
        // Keys may refuse the row at COMMIT.
        return Ok(Arc::clone(plan));
    }
    if let Some(doubt) = plan.doubt {
        return Err(doubt.phrase.into());
    }
    let block = session.unsent_block.as_ref().ok_or(UNCERTAIN)?;
    // A row of the same segment cannot be meant, because its client does not know its key yet.
    let is_held = |reference: &PreviewReference| match plan.values.get(reference.value) {
        Some(PreviewValue::Given(place)) => block.kept.holds(reference, (call, *place)),
        _ => true,
    };
    match plan.references.iter().all(is_held) {
        true => Ok(Arc::clone(plan)),
        false => Err(FOREIGN_KEY.into()),
    }
}

/// Returns the call that stores a row.
fn stored(plan: &Preview, call: &SqlCall, row: &Computed) -> Option<SqlCall> {
    let given: SmallVec<[Option<&[u8]>; 16]> = call.arguments.iter().collect();
    let mut values = BytesMut::new();
    for value in &plan.values {
        let value = match value {
            PreviewValue::Given(place) => *given.get(*place)?,
            PreviewValue::Computed(place) => row.stored.get(*place)?.as_deref(),
        };
        data_row::value(&mut values, value);
    }
    let is_binary = |value: &PreviewValue| match value {
        PreviewValue::Given(place) => call.formats.is_binary(*place),
        PreviewValue::Computed(_) => true,
    };
    Some(SqlCall {
        statement: Arc::clone(&plan.write),
        arguments: Arguments::of(&*values, plan.values.len())?,
        formats: Formats::of(plan.values.iter().map(is_binary)),
        results: Formats::Text,
        fresh: false,
        origin: None,
    })
}

/// Returns the outcome that a call will have.
fn done(plan: &Preview, call: &SqlCall, row: &Computed) -> WriteDone {
    let mut messages = BytesMut::new();
    if call.statement.fields().is_some() {
        data_row::row(&mut messages, row.returned.iter().map(Option::as_deref));
    }
    let generated = plan.sequence.and_then(|(sequence, _)| {
        let value = number(plan, &row.stored)?;
        Some(Generated { sequence, value })
    });
    let extra = windrow_core::Extra {
        messages: messages.freeze(),
        generated,
        signature: None,
    };
    let has_extra = !extra.messages.is_empty() || extra.generated.is_some();
    WriteDone {
        extra: has_extra.then(|| Box::new(extra)),
        ..WriteDone::rows(1)
    }
}

/// Submits the kept writes of the session's block to its lane, as one unit. `lone`: the statement
/// that commits, at the front of the inbox. Returns false if the block needs a server connection.
///
/// # Errors
/// The reason why the session ends.
pub(super) async fn commit(session: &mut Session, lone: LoneStatement) -> Result<bool, End> {
    session.pass_gate().await?;
    let (Some(source), Some(block)) = (&session.source, &mut session.unsent_block) else {
        return Ok(false);
    };
    let Ok(own) = session
        .shared
        .budget
        .try_take(windrow_core::unit::UNIT_OVERHEAD)
    else {
        return Ok(false);
    };
    for (statement, count) in block.kept.rows_used() {
        source.lane.ahead.note_used(statement, count);
    }
    let (calls, texts, mut permit) = std::mem::take(&mut block.kept).into_parts();
    permit.merge(own);
    let intake = source.lane.ports.intake.clone();
    let id = source.id;
    let asked = AskedTrace::of(session, &calls);
    let unit = Unit::of(calls.into_iter().map(Write::from));
    let traced = asked.and_then(|asked| asked.begin(session, &unit));
    let trace = traced.as_ref().map(|traced| traced.trace());
    let mut pending = match intake.submit_traced(id, [unit], permit, trace).await {
        Ok(receipt) => {
            let end = AnswerEnd::Commit(CommitAnswer::new(lone.end(), texts));
            let mut pending = Pending::new(lone.before(), end);
            (pending.awaited, pending.traced) = (Some(AwaitedOutcome::Lane(receipt)), traced);
            pending
        }
        Err(_) => {
            traces::discard(traced);
            session.source = None;
            let mut said = lone.before();
            failure::fault(&mut said.text, &lane_ended());
            Pending::new(said, AnswerEnd::Sync)
        }
    };
    pending.status = b'I';
    session.unsent_block = None;
    unsent_block::take_in(session, lone);
    session.pending.push(pending);
    session.info.set_state(State::Joining);
    Ok(true)
}
