//! Writes portions: by the bulk form if the database accepts them, and otherwise through the lane.
//! A load runs several workers at once.

use std::sync::Arc;

use tokio::sync::mpsc;
use windrow_core::{Contents, Fault, Filtered};

use super::LoadError;
use super::bulk::{BulkOutcome, BulkWriter, Piece};
use super::lane::Lane;
use super::parcel::{Parcel, lines, place};
use super::shared::Shared;
use super::way::Way;
use crate::source::Portion;

/// Writes portions.
pub(super) struct Worker {
    pub(super) shared: Arc<Shared>,
    /// The bulk form; `None` if all rows go through the lane.
    pub(super) bulk_writer: Option<BulkWriter>,
    pub(super) lane: Lane,
}

/// Portions that were read and wait for a worker.
pub(super) type FullPortions = Arc<tokio::sync::Mutex<mpsc::Receiver<Parcel>>>;

impl Worker {
    /// Writes portions until there are none or the load is halted.
    pub(super) async fn run(
        mut self,
        full: FullPortions,
        free: mpsc::Sender<Portion>,
    ) -> Result<(), LoadError> {
        let halt = self.shared.halt.clone();
        loop {
            let next = async { full.lock().await.recv().await };
            let parcel = tokio::select! {
                biased;
                () = halt.cancelled() => break,
                parcel = next => parcel,
            };
            let Some(mut parcel) = parcel else { break };
            if let Err(error) = self.settle(&mut parcel).await {
                // The other workers finish the portions that they have begun.
                halt.cancel();
                return Err(error);
            }
            // A reader that has ended needs no memory.
            free.try_send(parcel.portion).ok();
        }
        if let Some(bulk_writer) = self.bulk_writer {
            bulk_writer.close().await;
        }
        Ok(())
    }

    /// Writes the records of a portion.
    pub(super) async fn settle(&mut self, parcel: &mut Parcel) -> Result<(), LoadError> {
        let shared = Arc::clone(&self.shared);
        let mut is_refused = false;
        if !parcel.by_lane && shared.ways.lock().passes() {
            match self.attempt(parcel, Way::Unsplit).await? {
                Attempt::Written => return Ok(()),
                attempt => is_refused = attempt == Attempt::Refused,
            }
        }
        parcel.portion.split();
        if let Some(witness) = &shared.witness {
            witness.lock().see(&parcel.portion.rows);
        }
        shared.reject_unread(parcel)?;
        if parcel.portion.rows.is_empty() {
            return Ok(());
        }
        // A record that is not a row explains the refusal.
        let is_refused = is_refused && parcel.portion.bad.is_empty();
        let mut way = match parcel.by_lane {
            true => Way::Lane,
            false => shared.ways.lock().way(is_refused),
        };
        loop {
            way = match self.attempt(parcel, way).await? {
                Attempt::Written => return Ok(()),
                Attempt::Refused if way == Way::Whole => Way::WithoutBad,
                Attempt::Refused | Attempt::Impossible => break,
            };
        }
        let rows = (0..parcel.portion.records.len()).collect();
        let bad = self.by_lane(parcel, rows).await?;
        shared.ways.lock().one_by_one(bad > 0);
        Ok(())
    }

    /// Writes a portion by the bulk form, and the rows that were left out through the lane.
    async fn attempt(&mut self, parcel: &Parcel, way: Way) -> Result<Attempt, LoadError> {
        let shared = Arc::clone(&self.shared);
        let portion = &parcel.portion;
        let contents = match way {
            Way::Unsplit => portion.csv().map(Contents::Csv),
            Way::Whole => Some(Contents::Rows(&portion.rows)),
            Way::WithoutBad => Some(Contents::GoodRows(&portion.rows)),
            Way::Lane => None,
        };
        let (Some(bulk_writer), Some(contents)) = (&mut self.bulk_writer, contents) else {
            return Ok(Attempt::Impossible);
        };
        let piece = Piece {
            contents,
            records: &portion.records,
            span: parcel.span,
        };
        let place = || lines(&shared.origin, parcel);
        match bulk_writer.load(piece, place).await? {
            BulkOutcome::Loaded(Filtered { loaded, left }) => {
                shared.meter.done(loaded.written, loaded.ignored);
                shared.ways.lock().written(way, !left.is_empty());
                self.by_lane(parcel, left).await?;
                Ok(Attempt::Written)
            }
            BulkOutcome::Refused(fault) => {
                tracing::debug!(%fault, ?way, "a portion is refused");
                shared.ways.lock().refused(way);
                Ok(Attempt::Refused)
            }
            BulkOutcome::Unread => {
                shared.ways.lock().cannot_pass();
                Ok(Attempt::Impossible)
            }
            BulkOutcome::Unsupported(fault) => {
                self.give_up_bulk(fault);
                Ok(Attempt::Impossible)
            }
        }
    }

    /// Writes rows of a portion through the lane, then replaces their marks by one of the whole
    /// portion. Before that, notes the portion for later runs. Returns the number of bad rows.
    async fn by_lane(&mut self, parcel: &Parcel, rows: Vec<usize>) -> Result<usize, LoadError> {
        let Some(first) = rows.first().copied() else {
            return Ok(0);
        };
        let shared = &self.shared;
        let at = || place(&shared.origin, parcel, first);
        if let Some(marking) = shared.marking.as_ref().filter(|_| !parcel.by_lane) {
            let retries = &mut shared.retries();
            marking.note_lane(parcel.span, retries, at).await?;
        }
        let bad = self.lane.write(parcel, rows).await?;
        if let Some(marking) = &shared.marking {
            marking
                .merge(parcel.span, &mut shared.retries(), at)
                .await?;
        }
        Ok(bad)
    }

    /// Sends all further rows through the lane, because the bulk form cannot do what the load
    /// needs.
    fn give_up_bulk(&mut self, fault: Fault) {
        self.bulk_writer = None;
        let why = fault.message.into_string();
        self.shared.unsupported.lock().get_or_insert(why);
    }
}

/// The outcome of an attempt to write a portion by the bulk form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    Written,
    /// The database has refused the portion.
    Refused,
    /// The bulk form cannot write the portion in this way.
    Impossible,
}
