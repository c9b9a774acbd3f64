//! Portions that are passed on as they stand in the file.

use std::sync::Arc;
use std::time::Instant;

use windrow_core::Sifted;

use super::LoadError;
use super::bulk::{Manner, Matter, Piece, Pressed};
use super::form::Form;
use super::reader::Parcel;
use super::way::Way;
use super::worker::{Worker, lines, lock};

/// What became of records that were to be passed on.
pub(super) enum Passed {
    Written,
    /// The database has refused them.
    Refused,
    /// They are to be split.
    Not,
}

impl Worker {
    /// Writes records as they stand in the file, if that can be done.
    pub(super) async fn pass(&mut self, parcel: &Parcel) -> Result<Passed, LoadError> {
        let shared = Arc::clone(&self.shared);
        let (Some(press), Some(csv)) = (&mut self.press, parcel.portion.csv()) else {
            return Ok(Passed::Not);
        };
        let way = lock(&shared.sight).way();
        if !matches!(way, Way::Bulk(most) if most >= csv.records) {
            return Ok(Passed::Not);
        }
        let piece = Piece {
            matter: Matter::Csv(csv),
            records: &[],
            span: parcel.span,
        };
        let started = Instant::now();
        let place = || lines(&shared.origin, parcel, &(0..csv.records));
        let pressed = press
            .load(piece, Manner::Whole, &shared.halt, place)
            .await?;
        match pressed {
            Pressed::Loaded(Sifted { loaded, .. }) => {
                shared.meter.done(loaded.written, loaded.ignored);
                self.sight().loaded(csv.records, started.elapsed());
                shared.written(Form::Verbatim, csv.records, true);
                Ok(Passed::Written)
            }
            Pressed::Refused(fault) => {
                tracing::debug!(%fault, rows = csv.records, "a portion is split into fields");
                lock(&shared.forms).refused();
                Ok(Passed::Refused)
            }
            Pressed::Unread => {
                lock(&shared.forms).impossible();
                Ok(Passed::Not)
            }
            Pressed::Unsupported(fault) => {
                self.give_up_bulk(fault);
                Ok(Passed::Not)
            }
        }
    }
}
