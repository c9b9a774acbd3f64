//! Preparing what looks at a table behind the writes ([`Check`]), and looking for the first time: a
//! check notices changes from its preparation on, so all that came before must be looked for once
//! behind it.

use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;
use windrow_pgwire::wire::Wire;

use super::batch::Batch;
use super::form::WorkKind;
use super::prepared;
use super::prepared::{Prepared, State, StatementKey};
use super::segment::Segment;
use super::trust::{Answered, Trust, locked};
use crate::catalog::check::{Check, CheckResult, OPEN};
use crate::catalog::table::Print;

/// A check to be prepared.
pub(super) struct WantedCheck<'b> {
    check: Check,
    print: &'b Print,
    number: u64,
}

/// How often the server says that it is ready, for each of them.
pub(super) const SYNCS: usize = 3;

/// What looks at the tables of segments, as far as the connection does not have it yet.
pub(super) fn wanted_checks<'b, F: WorkKind>(
    prepared: &mut Prepared,
    batch: &'b Batch<'_, F>,
    segments: &[Segment],
) -> Vec<WantedCheck<'b>> {
    let mut wanted: Vec<WantedCheck<'b>> = Vec::new();
    let asks = batch.lone_asked().is_some();
    for segment in segments.iter().filter(|segment| !batch.is_apart(segment)) {
        for table in batch.tables_of(&segment.units) {
            let (Some(check), Some(print)) = (batch.check_of(table), &table.print) else {
                continue;
            };
            // The plain one always: a write in a part of a transaction has that behind it.
            for check in [Some(check), asks.then(|| check.asking())]
                .into_iter()
                .flatten()
            {
                let known = prepared.knows(StatementKey::Check(check));
                if !known && !wanted.iter().any(|wanted| wanted.check == check) {
                    wanted.push(WantedCheck {
                        check,
                        print,
                        number: prepared.number(),
                    });
                }
            }
        }
    }
    wanted
}

/// Appends a check in a transaction of its own, and the statement that looks at everything.
pub(super) fn append(wire: &mut Wire, wanted: &WantedCheck<'_>) {
    let WantedCheck {
        check,
        print,
        number,
    } = wanted;
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

/// What was found. `answered`: to the transaction's begin, to its statements, to its end.
pub(super) fn settle(
    prepared: &mut Prepared,
    wanted: &WantedCheck<'_>,
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
            Some(locked) => return locked,
            None => (Trust::Good, State::Failed),
        },
    };
    prepared.put(key, wanted.number, state);
    if trust == Trust::Stale {
        // Who comes with the same description once more is to find that out as well.
        prepared.forget(|other| other == key);
        prepared.changed(version);
    }
    trust
}
