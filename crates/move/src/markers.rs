//! Writes rows and markers to another database, through its lane.

use sha2::{Digest, Sha256};
use windrow_bookkeeping::{Marker, MarkerWrites};
use windrow_core::{Fault, Intake, Name, Unit, UnitOutcome, Value, Write};

use super::order::Elsewhere;
use super::trouble::unknown;

/// The number of units that are submitted at once. Each group of them is a source of its own, so
/// that several flights can carry a batch.
const PIECE_UNITS: usize = 250;

/// The lane to the destination, and the markers of one move.
pub(super) struct Markers {
    intake: Intake,
    relocation: Box<str>,
    tag: Box<str>,
    writes: MarkerWrites,
}

/// Returns a name of fixed length for a text of any length: hexadecimal, which every database keeps
/// and compares exactly.
pub fn fingerprint(text: &str) -> Box<str> {
    let hash = Sha256::digest(text.as_bytes());
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    hex.into()
}

/// The version of the spelling of marker keys. A change of the names of rows changes this number.
const SPELLING: &str = "2";

/// Returns the beginning of the keys of markers for rows named by these columns. Markers of rows
/// named by other columns begin differently.
pub fn tag(names: &[Name]) -> Box<str> {
    let columns: Vec<&str> = names.iter().map(|name| &**name).collect();
    let hash = fingerprint(&format!("{SPELLING}\0{}", columns.join("\0")));
    hash.get(..Marker::TAG_BYTES).unwrap_or_default().into()
}

/// Returns the name of a row in a marker, after the tag. A database may compare texts as equal that
/// differ in the case of a letter, or in an accent: only names without letters are kept as they
/// are.
fn key_name(key: &str) -> Box<str> {
    let plain = |byte: u8| byte.is_ascii_digit() || b"[],.-\" ".contains(&byte);
    let most = Marker::MAX_BYTES - Marker::TAG_BYTES;
    match key.len() <= most && key.bytes().all(plain) {
        true => key.into(),
        false => fingerprint(key),
    }
}

impl Markers {
    pub(super) fn new(elsewhere: &Elsewhere) -> Self {
        Self {
            intake: elsewhere.intake.clone(),
            relocation: elsewhere.relocation.clone(),
            tag: elsewhere.tag.clone(),
            writes: MarkerWrites::default(),
        }
    }

    fn marker(&self, name: &str, batch: &str) -> Marker {
        Marker {
            relocation: self.relocation.clone(),
            key: format!("{}{}", self.tag, key_name(name)).into(),
            batch: batch.into(),
        }
    }

    /// Returns the writes of the marker of a row, which come before that of the row, so that an
    /// existing marker fails the unit first. `old` is the batch of the marker that is replaced.
    pub(super) fn of_row(&self, name: &str, batch: &str, old: Option<&str>) -> Vec<Write> {
        let marker = self.marker(name, batch);
        match old {
            Some(old) => self.writes.replace(old, &marker).into(),
            None => vec![self.writes.insert(&marker)],
        }
    }

    /// Returns the batches whose markers these rows have; `None` if there is no marker, or reading
    /// it failed.
    pub(super) async fn batches(&self, names: &[&str]) -> Result<Vec<Option<Box<str>>>, Fault> {
        let unit = |name: &&str| Unit::one(self.writes.read(&self.marker(name, "")));
        let outcomes = self.run(names.iter().map(unit).collect()).await?;
        let batch = |outcome: UnitOutcome| {
            let returned = outcome.ok()?.pop()?.returned?;
            match returned.rows.first()?.first()? {
                Value::Text(batch) => Some(batch.clone()),
                _ => None,
            }
        };
        Ok(outcomes.into_iter().map(batch).collect())
    }

    /// Assigns markers to a batch. `rows` holds the names of the rows, and the batches of their
    /// markers. Returns, for each row, true if its marker was assigned: it may be gone or of
    /// another batch by now.
    ///
    /// # Errors
    /// The outcome of an assignment is unknown, so the batch may have the marker and must not be
    /// noted.
    pub(super) async fn assign(
        &self,
        rows: &[(&str, Box<str>)],
        batch: &str,
    ) -> Result<Vec<bool>, Fault> {
        let unit = |(name, old): &(&str, Box<str>)| {
            Unit::one(self.writes.assign(old, &self.marker(name, batch)))
        };
        let outcomes = self.run(rows.iter().map(unit).collect()).await?;
        if let Some(fault) = unknown(&outcomes) {
            return Err(fault);
        }
        let is_assigned = |outcome: &UnitOutcome| {
            let done = outcome.as_ref().ok().and_then(|dones| dones.first());
            done.is_some_and(|done| done.rows == 1)
        };
        Ok(outcomes.iter().map(is_assigned).collect())
    }

    /// Deletes all markers of batches that were committed in the source.
    pub(super) async fn remove(&self, batches: &[Box<str>]) -> Result<(), Fault> {
        let unit = |batch: &str| Unit::one(self.writes.remove_batch(&self.relocation, batch));
        let units = batches.iter().map(|batch| unit(batch)).collect();
        for outcome in self.run(units).await? {
            outcome.map_err(|unit| unit.fault)?;
        }
        Ok(())
    }

    /// Runs units in any order, and returns their outcomes in the order of the units.
    pub(super) async fn run(&self, units: Vec<Unit>) -> Result<Vec<UnitOutcome>, Fault> {
        let mut receipts = Vec::new();
        let mut units = units.into_iter();
        loop {
            let piece: Vec<Unit> = units.by_ref().take(PIECE_UNITS).collect();
            if piece.is_empty() {
                break;
            }
            let bytes = piece.iter().map(Unit::bytes).sum();
            let permit = self.intake.budget().take(bytes).await?;
            let source = self.intake.new_source();
            receipts.push(self.intake.submit(source, piece, permit).await?);
        }
        let mut outcomes = Vec::new();
        for receipt in receipts {
            outcomes.extend(receipt.await);
        }
        Ok(outcomes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_columns_have_another_tag() {
        let tag = |names: &[&str]| tag(&names.iter().map(|n| Name::from(*n)).collect::<Vec<_>>());
        assert_eq!(tag(&["a", "b"]).len(), Marker::TAG_BYTES);
        assert_eq!(tag(&["a", "b"]), tag(&["a", "b"]));
        assert_ne!(tag(&["a", "b"]), tag(&["ab"]));
        assert_ne!(tag(&["a", "b"]), tag(&["b", "a"]));
    }

    #[test]
    fn keys_that_a_collation_could_take_for_equal_are_hashed() {
        assert_eq!(&*key_name("[17,-2.5]"), "[17,-2.5]");
        assert_ne!(key_name("[\"a\"]"), key_name("[\"A\"]"));
        assert_eq!(key_name("[\"a\"]").len(), 64);
        assert_eq!(key_name(&"1".repeat(200)).len(), 64);
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(&*fingerprint(""), empty);
    }
}
