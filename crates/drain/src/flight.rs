//! Entries as one unit: first the writes that move the progress, then those of the entries.

use windrow_bookkeeping::{Applied, DeadLetter, ProgressRow};
use windrow_core::Unit;

use crate::reader::{Item, ReadEnd, Reader};
use crate::sharing::Sharing;

/// The contents of the next unit.
#[derive(Clone, Debug)]
pub(crate) enum UnitPlan {
    /// As many entries as may share a unit.
    Many,
    /// Exactly this many entries.
    Exactly(usize),
    /// This many entries, and after them the dead letter of the next one.
    Letter(usize, Box<DeadLetter>),
    /// This many entries, and after them nothing of the next one, which was executed before under
    /// its key.
    Without(usize),
}

/// The limits of a unit; a single entry may exceed them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) entries: usize,
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
}

/// Entries that are being applied.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) unit: Unit,
    /// The position after its last entry.
    pub(crate) to: u64,
    /// The number of writes that move the progress. They come before all others.
    pub(crate) progress: usize,
    /// The end of each entry's writes in the unit.
    ends: Vec<usize>,
    /// The dead letter that replaces its last entry.
    pub(crate) letter: Option<Box<DeadLetter>>,
    /// True if the unit holds as many entries as its size allowed.
    pub(crate) is_full_sized: bool,
}

impl Flight {
    /// Makes a unit of the first entries, of which there is at least one. `from`: the position in
    /// the database.
    pub(crate) fn form(
        reader: &mut Reader,
        sharing: &mut Sharing,
        (row, from): (&ProgressRow, Option<u64>),
        wanted: &UnitPlan,
        bounds: Bounds,
    ) -> Result<Self, ReadEnd> {
        let there = reader.items().len();
        let (plain, letter, left_out) = match wanted {
            UnitPlan::Exactly(entries) if *entries <= there => (*entries, None, 0),
            UnitPlan::Letter(before, letter) if *before < there => {
                (*before, Some(letter.clone()), 0)
            }
            UnitPlan::Without(before) if *before < there => (*before, None, 1),
            _ => (count(reader, sharing, bounds)?, None, 0),
        };
        let entries = plain + usize::from(letter.is_some()) + left_out;
        let last = entries
            .checked_sub(1)
            .and_then(|last| reader.items().get(last));
        // Positions may have gaps, so they are not counted.
        let to = last.map_or(reader.position(), |last| last.position.saturating_add(1));
        let applied = Applied {
            position: to,
            last: last.map(Item::name).unwrap_or_default(),
        };
        let mut writes = row.advance(from, &applied);
        let progress = writes.len();
        let mut ends = Vec::with_capacity(entries);
        for place in 0..plain {
            let taken = reader.take_writes(place);
            writes.extend(taken.map_err(|why| ReadEnd::unreadable(reader.place(place), why))?);
            ends.push(writes.len());
        }
        if let Some(letter) = &letter {
            writes.push(letter.write());
        }
        ends.resize(entries, writes.len());
        Ok(Self {
            unit: Unit::of(writes),
            to,
            progress,
            ends,
            letter,
            is_full_sized: matches!(wanted, UnitPlan::Many),
        })
    }

    /// The number of entries.
    pub(crate) fn entries(&self) -> usize {
        self.ends.len()
    }

    /// Returns the entry to which a write belongs.
    pub(crate) fn entry_of(&self, write: usize) -> usize {
        self.ends.partition_point(|end| *end <= write)
    }

    /// Returns the first write of an entry.
    pub(crate) fn first_write(&self, entry: usize) -> usize {
        let before = entry
            .checked_sub(1)
            .and_then(|before| self.ends.get(before));
        before.copied().unwrap_or(self.progress)
    }
}

/// Returns how many of the first entries may share a unit.
fn count(reader: &mut Reader, sharing: &mut Sharing, bounds: Bounds) -> Result<usize, ReadEnd> {
    let there = reader.items().len().min(bounds.entries).max(1);
    let (mut rows, mut bytes) = (0, 0);
    for place in 0..there {
        if let Some(item) = reader.items().get(place) {
            rows += item.rows;
            bytes += item.bytes;
        }
        if place > 0 && (rows > bounds.rows || bytes > bounds.bytes) {
            return Ok(place);
        }
        let position = reader.place(place);
        let writes = reader.writes(place);
        let writes = writes.map_err(|why| ReadEnd::unreadable(position, why))?;
        if place == 0 {
            sharing.renew(writes);
        }
        if !sharing.may_share(writes) {
            return Ok(place.max(1));
        }
    }
    Ok(there)
}
