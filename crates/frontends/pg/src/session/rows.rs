//! Calls that are row writes as well: those that the spool can take, or that can be executed once
//! under a key. Nothing here writes them.

use smallvec::SmallVec;
use windrow_core::{AsRow, Fault, SqlCall, Unit, Write};

use super::state::Session;

/// The most bytes of a unit that goes by the spool. A larger unit is answered by the database.
const MAX_UNIT_BYTES: usize = 512 << 10;

/// Settings that a session may have while another session stores its rows: values are read before
/// they count, or left to the server.
const HARMLESS: [&str; 16] = [
    "bytea_output",
    "client_encoding",
    "client_min_messages",
    "datestyle",
    "deadlock_timeout",
    "extra_float_digits",
    "idle_in_transaction_session_timeout",
    "idle_session_timeout",
    "intervalstyle",
    "jit",
    "lock_timeout",
    "standard_conforming_strings",
    "statement_timeout",
    "synchronous_commit",
    "timezone",
    "work_mem",
];

/// Calls as row writes that commit together.
pub(super) struct RowUnit {
    pub(super) unit: Unit,
    /// True if a row takes values from sequences when it is written.
    pub(super) generates: bool,
}

/// Returns calls as row writes, if the spool can take them and they can be executed under a key.
/// `asks`: the client asks after them which values they took from sequences.
///
/// # Errors
/// The database has to be asked, and cannot be reached.
pub(super) async fn of(
    session: &Session,
    calls: &[SqlCall],
    asks: bool,
) -> Result<Option<RowUnit>, Fault> {
    if !has_harmless_settings(session) {
        return Ok(None);
    }
    let row = |call: &SqlCall| call.statement.as_row(&call.arguments, &call.formats);
    let rows = calls
        .iter()
        .map(row)
        .collect::<Option<SmallVec<[AsRow; 1]>>>();
    let (Some(rows), Some(source)) = (rows, &session.source) else {
        return Ok(None);
    };
    let generates = rows.iter().any(|row| row.generates);
    // The values that a row takes are not known here, under a key neither.
    if generates && (asks || session.asks || session.values.was_asked()) {
        return Ok(None);
    }
    let unit = Unit::of(rows.into_iter().map(|row| Write::new(row.shape, row.row)));
    let (lane, shared) = (&source.lane, &session.shared);
    let epoch = shared.proofs.epoch(&session.who.identity.database);
    for call in calls {
        let asked = (&lane.ports.describer, &lane.asking);
        if !shared.current.has(asked, &call.statement, epoch).await? {
            return Ok(None);
        }
    }
    Ok((unit.bytes() <= MAX_UNIT_BYTES).then_some(RowUnit { unit, generates }))
}

/// Returns true if a session without the settings of this one stores its rows the same.
fn has_harmless_settings(session: &Session) -> bool {
    let settings = &session.who.settings;
    let mut set = settings.startup.iter().chain(settings.set.iter());
    set.all(|(name, _)| HARMLESS.contains(&&**name))
}
