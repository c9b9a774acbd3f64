//! Markers in the destination of a move from another database: records of the rows that were
//! written there.

use std::sync::Arc;

use windrow_core::bookkeeping::{MARKERS, OwnStatement, OwnTable, TableChange};
use windrow_core::shape::ShapeParts;
use windrow_core::{Bookkeeping, Fault, FaultClass, Name, Op, Returning, Shape, Value, Write};

use crate::plain::quoted;
use crate::tables::create;
use crate::write::{parts, shape_of};

/// A marker: records that a row of the source has been written. The transaction that writes the row
/// inserts the marker, which is deleted after the row has been deleted from the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    /// The name of the move, at most [`Marker::MAX_BYTES`] of ASCII; the same for all movers of one
    /// source table.
    pub relocation: Box<str>,
    /// The key of the marker, at most [`Marker::MAX_BYTES`]: a tag of the columns that name a row,
    /// [`Marker::TAG_BYTES`] long, and then the row's name.
    pub key: Box<str>,
    /// The name of the batch, at most [`Marker::MAX_BYTES`] of ASCII.
    pub batch: Box<str>,
}

impl Marker {
    /// The most bytes of a field: the longest key that every database can have.
    pub const MAX_BYTES: usize = 128;
    /// The bytes of a tag.
    pub const TAG_BYTES: usize = 8;
}

const MOVE: &str = "move";
const KEY: &str = "key";
const BATCH: &str = "batch";

/// The writes of markers. Those of one kind share a shape.
#[derive(Clone, Debug)]
pub struct MarkerWrites {
    insert: Arc<Shape>,
    read: Arc<Shape>,
    assign: Arc<Shape>,
    remove: Arc<Shape>,
    remove_batch: Arc<Shape>,
}

impl Default for MarkerWrites {
    fn default() -> Self {
        let names = |names: &[&str]| -> Box<[Name]> {
            names.iter().map(|name| Name::from(*name)).collect()
        };
        let of_row = |op| parts(op, MARKERS, [MOVE, KEY]);
        Self {
            insert: shape_of(ShapeParts {
                columns: names(&[MOVE, KEY, BATCH]),
                ..of_row(Op::Insert)
            }),
            read: shape_of(ShapeParts {
                returning: Returning::Columns(names(&[BATCH])),
                ..of_row(Op::Get)
            }),
            assign: shape_of(ShapeParts {
                columns: names(&[BATCH]),
                ..parts(Op::Update, MARKERS, [MOVE, KEY, BATCH])
            }),
            remove: shape_of(parts(Op::Delete, MARKERS, [MOVE, KEY, BATCH])),
            remove_batch: shape_of(parts(Op::Delete, MARKERS, [MOVE, BATCH])),
        }
    }
}

impl MarkerWrites {
    /// Returns the writes that replace the marker of a row, which must be of this batch: if it is
    /// of another batch by now, the insert fails. If there is none by now, a new one is inserted,
    /// so these writes belong in the transaction that writes the row.
    pub fn replace(&self, old_batch: &str, marker: &Marker) -> [Write; 2] {
        let old = Marker {
            batch: old_batch.into(),
            ..marker.clone()
        };
        [self.remove(&old), self.insert(marker)]
    }

    /// Returns the write that assigns a row's marker to another batch, if it is of this batch. It
    /// changes nothing if the marker is gone or of another batch by now.
    pub fn assign(&self, old_batch: &str, marker: &Marker) -> Write {
        let row = [&*marker.batch, &marker.relocation, &marker.key, old_batch];
        write(&self.assign, row)
    }

    /// Returns the write that inserts a marker, and fails if its row has one.
    pub fn insert(&self, marker: &Marker) -> Write {
        let row = [&marker.relocation, &marker.key, &marker.batch];
        write(&self.insert, row)
    }

    /// Returns the write that reads the batch of a row's marker.
    pub fn read(&self, marker: &Marker) -> Write {
        write(&self.read, [&marker.relocation, &marker.key])
    }

    /// Returns the write that deletes a row's marker if it is of the batch of this one.
    fn remove(&self, marker: &Marker) -> Write {
        let row = [&marker.relocation, &marker.key, &marker.batch];
        write(&self.remove, row)
    }

    /// Returns the write that deletes all markers of a batch.
    pub fn remove_batch(&self, relocation: &str, batch: &str) -> Write {
        write(&self.remove_batch, [relocation, batch])
    }
}

fn write<const N: usize>(shape: &Arc<Shape>, texts: [impl AsRef<str>; N]) -> Write {
    let row = texts.map(|text| Value::text(text.as_ref()));
    Write::new(shape.clone(), row)
}

/// Creates the table of markers in the destination of a move, and gives it the index by which the
/// markers of a batch are found, even if an earlier version has created it. A role that may not
/// change the table uses it unchanged. Several processes may do that at the same time. Cancel safe.
///
/// # Errors
/// The error of the database.
pub async fn prepare_markers(tables: &dyn Bookkeeping) -> Result<(), Fault> {
    let mut session = tables.open().await?;
    let preparing = async {
        create(&mut *session, OwnTable::Markers).await?;
        let found = session.run(OwnStatement::FindMarkerIndex).await?;
        if !found.rows.is_empty() {
            return Ok(());
        }
        match session.change(OwnStatement::IndexMarkers).await {
            Ok(TableChange::Done) => tracing::info!("the table {MARKERS} is ordered by batches"),
            Ok(TableChange::Raced(_)) => {}
            Err(fault) if fault.class == FaultClass::Unavailable => return Err(fault),
            Err(fault) => tracing::warn!(
                why = %fault,
                "the table {MARKERS} keeps the order that it has, so that movers may wait for each other"
            ),
        }
        Ok(())
    };
    let prepared = preparing.await;
    session.close().await;
    prepared
}

/// Returns true if there are markers of a move whose keys do not begin with `tag`: their rows would
/// not be recognized. Cancel safe.
///
/// # Errors
/// The error of the database.
pub async fn has_strange_markers(
    tables: &dyn Bookkeeping,
    relocation: &str,
    tag: &str,
) -> Result<bool, Fault> {
    let (of, tag, bytes) = (quoted(relocation)?, quoted(tag)?, Marker::TAG_BYTES);
    // A name after a dot is never a keyword, in any database.
    let sql = format!(
        "SELECT m.{BATCH} FROM {MARKERS} m WHERE m.{MOVE} = {of} AND substr(m.{KEY}, 1, {bytes}) <> {tag} LIMIT 1"
    );
    let mut session = tables.open().await?;
    let found = session.run(OwnStatement::Plain(&sql)).await;
    session.close().await;
    Ok(!found?.rows.is_empty())
}
