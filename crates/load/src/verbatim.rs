//! Portions that are passed on as they stand in the file.

use std::time::Instant;

use windrow_core::Filtered;

use super::LoadError;
use super::bulk::{BulkOutcome, BulkWriter, Contents, Manner, Piece};
use super::form::Form;
use super::lock::lock;
use super::parcel::{Parcel, lines};
use super::shared::Shared;
use super::way::Way;

/// What became of records that were to be passed on.
pub(super) enum Verbatim {
    Written,
    /// The database has refused them.
    Refused,
    /// They are to be split.
    Not,
}

/// Writes records as they stand in the file, if that can be done. `bulk_writer`: the bulk form, as
/// long as it is used.
pub(super) async fn write(
    shared: &Shared,
    bulk_writer: &mut Option<BulkWriter>,
    parcel: &Parcel,
) -> Result<Verbatim, LoadError> {
    let (Some(bulk), Some(csv)) = (bulk_writer.as_mut(), parcel.portion.csv()) else {
        return Ok(Verbatim::Not);
    };
    let way = shared.costs().way();
    if !matches!(way, Way::Bulk(most) if most >= csv.records) {
        return Ok(Verbatim::Not);
    }
    let piece = Piece {
        contents: Contents::Csv(csv),
        records: &[],
        span: parcel.span,
    };
    let started = Instant::now();
    let place = || lines(&shared.origin, parcel, &(0..csv.records));
    let outcome = bulk.load(piece, Manner::Whole, &shared.halt, place).await?;
    match outcome {
        BulkOutcome::Loaded(Filtered { loaded, .. }) => {
            shared.meter.done(loaded.written, loaded.ignored);
            shared.costs().loaded(csv.records, started.elapsed());
            shared.written(Form::Verbatim, csv.records, true);
            Ok(Verbatim::Written)
        }
        BulkOutcome::Refused(fault) => {
            tracing::debug!(%fault, rows = csv.records, "a portion is split into fields");
            lock(&shared.forms).refused();
            Ok(Verbatim::Refused)
        }
        BulkOutcome::Unread => {
            lock(&shared.forms).impossible();
            Ok(Verbatim::Not)
        }
        BulkOutcome::Unsupported(fault) => {
            shared.give_up_bulk(bulk_writer, fault);
            Ok(Verbatim::Not)
        }
    }
}
