//! Prepares the statements that check a table after the writes ([`Check`]), and checks each table
//! once. A check notices only changes after its preparation, so a first look must cover all changes
//! before.

use std::sync::Arc;

use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;
use windrow_pgwire::wire::Wire;

use super::batch::Batch;
use super::prepared;
use super::prepared::{Prepared, State, StatementKey};
use super::segment::Segment;
use super::trust::{Answered, Trust, locked};
use crate::catalog::check::{Check, CheckResult, OPEN};
use crate::catalog::table::Table;

/// A check to be prepared.
pub(super) struct WantedCheck {
    check: Check,
    table: Arc<Table>,
    number: u64,
}

/// Number of ReadyForQuery messages for each check.
pub(super) const SYNCS: usize = 3;

/// Returns the checks of the segments' tables that the connection has not prepared yet.
pub(super) fn wanted_checks(
    prepared: &mut Prepared,
    batch: &Batch<'_>,
    segments: &[Segment],
) -> Vec<WantedCheck> {
    let mut wanted: Vec<WantedCheck> = Vec::new();
    let asks = batch.lone_asked().is_some();
    for segment in segments.iter().filter(|segment| !batch.is_apart(segment)) {
        for table in batch.tables_of(&segment.units) {
            let (Some(check), Some(_)) = (batch.check_of(table), &table.print) else {
                continue;
            };
            // The plain check is always needed: writes in a part of a transaction are followed by
            // that one.
            for check in [Some(check), asks.then(|| check.asking())]
                .into_iter()
                .flatten()
            {
                let known = prepared.knows(StatementKey::Check(check));
                if !known && !wanted.iter().any(|wanted| wanted.check == check) {
                    wanted.push(WantedCheck {
                        check,
                        table: Arc::clone(table),
                        number: prepared.number(),
                    });
                }
            }
        }
    }
    wanted
}

/// Appends a check in a transaction of its own, and the statement that looks at everything.
pub(super) fn append(wire: &mut Wire, wanted: &WantedCheck) {
    let WantedCheck {
        check,
        table,
        number,
    } = wanted;
    let Some(print) = &table.print else {
        return;
    };
    let sql = check.sql(print, wire.parameter("TimeZone"));
    let nothing = |_: (), _: &mut bytes::BytesMut| Ok(IsNull::Yes);
    let out = wire.out();
    let appended = frontend::query(OPEN, out).is_ok()
        && frontend::parse(&prepared::name(*number), &sql, [], out).is_ok()
        && frontend::parse("", &check.whole(print), [], out).is_ok()
        && frontend::bind("", "", [], [], nothing, [], out).is_ok()
        && frontend::execute("", 0, out).is_ok();
    frontend::sync(out);
    let appended = appended && frontend::query("COMMIT", out).is_ok();
    debug_assert!(appended, "neither names nor texts of ours hold a zero byte");
}

/// Counts a check as prepared until its answers have come.
pub(super) fn assume(prepared: &mut Prepared, wanted: &WantedCheck) {
    prepared.put(
        StatementKey::Check(wanted.check),
        wanted.number,
        State::Ready,
    );
}

/// Records the result of a check. `answered`: the answers to BEGIN, to the statements and to
/// COMMIT.
pub(super) fn settle(
    prepared: &mut Prepared,
    wanted: &WantedCheck,
    answered: &[Answered],
) -> Trust {
    let version = wanted.check.version;
    let error = answered.iter().find_map(|answered| answered.error.as_ref());
    let said = answered
        .iter()
        .find_map(|answered| answered.said.as_deref());
    let key = StatementKey::Check(wanted.check);
    let (trust, state) = match (error, said.map(CheckResult::of)) {
        (None, Some(CheckResult::Alike)) => (Trust::Good, State::Ready),
        (None, _) => (Trust::Stale, State::Failed),
        (Some(error), _) if error.code == "22012" => (Trust::Stale, State::Failed),
        (Some(error), _) => match locked(version, error) {
            Some(locked) => {
                prepared.forget(|other| other == key);
                return locked;
            }
            None => (Trust::Good, State::Failed),
        },
    };
    prepared.put(key, wanted.number, state);
    if trust == Trust::Stale {
        // The next batch with the same description must find out again.
        prepared.forget(|other| other == key);
        prepared.changed(version);
    }
    trust
}
