//! Calls as row writes, for the spool and for execution once under a key. Nothing is written here.

use smallvec::SmallVec;
use windrow_core::{AsRow, Fault, SqlCall, Unit, Write};

use super::state::Session;

/// The most bytes of a unit for the spool. The database answers larger units.
const MAX_UNIT_BYTES: usize = 512 << 10;

/// Settings that a session may have although another session stores its rows: values are read
/// before the settings matter, or left to the server.
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

/// Returns calls as row writes, if the spool can accept them and they can be executed under a key.
/// `asks`: true if the client asks after them which values they took from sequences.
///
/// # Errors
/// The database must be asked, and cannot be reached.
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
    // The values that a row takes are not known here, not even under a key.
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

/// Returns true if a session without this one's settings would store its rows in the same way.
fn has_harmless_settings(session: &Session) -> bool {
    let settings = &session.who.settings;
    let mut set = settings.startup.iter().chain(settings.set.iter());
    set.all(|(name, _)| HARMLESS.contains(&&**name))
}
