//! Keys of rows that are only known from the answer to a write.

use std::sync::Arc;

use windrow_core::{Name, Returned, Returning, Value, Write, WriteDone};

use crate::followed::Followed;

/// The keys of rows in the answer to a write.
#[derive(Debug)]
pub(crate) enum PromisedKeys {
    /// The write returns them.
    Returned(Box<ReturnedKeys>),
    /// The database takes a part of the key from a sequence.
    Generated(GeneratedKey),
}

impl PromisedKeys {
    /// Returns the note that rows of the table may change whose keys follow later.
    pub(crate) fn note(&self) -> Write {
        match self {
            Self::Returned(returned) => returned.followed.note(),
            Self::Generated(generated) => generated.followed.note(),
        }
    }

    /// Returns the keys of further rows that the write may touch.
    pub(crate) fn known(&self) -> &[Write] {
        match self {
            Self::Returned(returned) => &returned.known,
            Self::Generated(_) => &[],
        }
    }

    /// Removes the keys from an answer and returns them, leaving what the client asked for. `None`
    /// if they are missing.
    pub(crate) fn take(&self, done: &mut WriteDone) -> Option<Vec<Write>> {
        match self {
            Self::Returned(returned) => returned.take(done),
            Self::Generated(_) if done.rows == 0 => Some(Vec::new()),
            Self::Generated(generated) => Some(vec![generated.of(done)?]),
        }
    }
}

/// The key of a row with one value that the database takes from a sequence.
#[derive(Debug)]
pub(crate) struct GeneratedKey {
    pub(crate) followed: Arc<Followed>,
    /// The known values of the key, with a placeholder for the missing one.
    pub(crate) key: Box<[Value]>,
    pub(crate) place: usize,
}

impl GeneratedKey {
    fn of(&self, done: &WriteDone) -> Option<Write> {
        let generated = done.extra.as_ref()?.generated.as_ref()?;
        let mut key = self.key.clone();
        *key.get_mut(self.place)? = Value::Int(generated.value);
        Some(self.followed.key(key))
    }
}

/// A write that also returns the key of its row.
#[derive(Debug)]
pub(crate) struct ReturnedKeys {
    pub(crate) followed: Arc<Followed>,
    /// The write in place of the client's.
    pub(crate) write: Write,
    pub(crate) asked: Returning,
    /// Further rows that are known to be touched.
    pub(crate) known: Vec<Write>,
}

impl ReturnedKeys {
    fn take(&self, done: &mut WriteDone) -> Option<Vec<Write>> {
        let keys = match &done.returned {
            None if done.rows == 0 => Vec::new(),
            None => return None,
            Some(returned) => self.keys(returned)?,
        };
        match (&self.asked, &mut done.returned) {
            (Returning::Nothing, returned) => *returned = None,
            (Returning::Columns(names), Some(returned)) => {
                let asked = returned.columns.iter().take(names.len()).cloned();
                returned.columns = asked.collect();
                for row in &mut returned.rows {
                    *row = row.iter().take(names.len()).cloned().collect();
                }
            }
            _ => {}
        }
        Some(keys)
    }

    fn keys(&self, returned: &Returned) -> Option<Vec<Write>> {
        let place = |name: &Name| {
            let mut columns = returned.columns.iter();
            columns.position(|column| column.eq_ignore_ascii_case(name))
        };
        let places: Option<Vec<usize>> = self.followed.table.key.iter().map(place).collect();
        let places = places?;
        let of_row = |row: &[Value]| {
            let values: Option<Box<[Value]>> = places
                .iter()
                .map(|place| row.get(*place).cloned())
                .collect();
            values.map(|values| self.followed.key(values))
        };
        returned.rows.iter().map(|row| of_row(row)).collect()
    }
}
