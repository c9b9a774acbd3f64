//! The times (moments) that joined writes see. `now()` is the same for a whole transaction, which
//! joined writes share, but each write would have had its own time if it had run alone. So a
//! set-based statement has a moment for each unit: the start of the transaction, plus as many
//! microseconds as the unit's place in the batch. No two units share a moment, and moments rise in
//! the order of the batch. Each is between the request and the answer, because no row is written in
//! less than a microsecond.

use bytes::{BufMut, BytesMut};

use crate::catalog::column::oid;
use crate::values::encode::Unfit;

/// The extent to which writes may share the time of their transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The writes do not read the time.
    #[default]
    Unread,
    /// Each write has its own moment in set-based statements, and nothing depends on that moment.
    Carried,
    /// Some columns get the transaction's moment, and nothing depends on these columns. Only a row
    /// that is written twice would show the difference.
    Shared,
    /// Something depends on the moment: no other unit may have the same.
    Own,
}

/// The type of the parameter that holds the distances from the start of the transaction:
/// `interval[]`.
pub(crate) const DISTANCES: u32 = 1187;

/// An SQL expression: the moment of a row of a call's source.
pub(crate) const MOMENT: &str =
    "(pg_catalog.transaction_timestamp() OPERATOR(pg_catalog.+) \"windrow w\".\"windrow at\")";

/// Appends an array of distances, in microseconds, in binary (`interval_recv` of
/// `src/backend/utils/adt/timestamp.c`).
pub(crate) fn push_distances(distances: &[i64], out: &mut BytesMut) -> Result<(), Unfit> {
    let length = i32::try_from(distances.len()).map_err(|_| Unfit)?;
    out.put_i32(1);
    out.put_i32(0);
    out.put_u32(oid::INTERVAL);
    out.put_i32(length);
    out.put_i32(1);
    for distance in distances {
        out.put_i32(16);
        out.put_i64(*distance);
        // Days and months.
        out.put_i64(0);
    }
    Ok(())
}
