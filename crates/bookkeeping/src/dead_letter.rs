//! Dead letters: writes that the database refused, kept in a table of their own.

use windrow_core::bookkeeping::REJECTED;
use windrow_core::shape::ShapeParts;
use windrow_core::{Fault, Key, Name, Op, Value, Write, record};

use crate::write::{parts, shape_of};

/// A write that was refused after it had been acknowledged, or a row that a move could not deliver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The origin: a table, or a position in a spool.
    pub source: Box<str>,
    /// The destination table.
    pub destination: Box<str>,
    /// The values of the row's key, as a JSON array.
    pub key: Box<str>,
    /// The columns of the row, as a JSON object.
    pub row: Box<str>,
    /// The code of the fault.
    pub code: Box<str>,
    /// The message of the fault.
    pub message: Box<str>,
    /// The constraint that refused the row.
    pub constraint: Option<Box<str>>,
    /// The bytes of the spool's entry.
    pub entry: Option<Box<[u8]>>,
}

impl DeadLetter {
    /// The columns that [`DeadLetter::write`] sets, in its order.
    pub const COLUMNS: [&str; 8] = [
        "source",
        "destination",
        "key",
        "row",
        "code",
        "message",
        "constraint",
        "entry",
    ];

    /// Returns the letter of a write that was refused, without a key and an entry.
    pub fn of(source: String, write: &Write, fault: &Fault) -> Self {
        let row = record::object(write.shape.columns.iter().zip(write.values()));
        Self::of_row(source, write.shape.table.to_string(), row, fault)
    }

    /// Returns the letter of a row, as a JSON object, without a key and an entry.
    pub fn of_row(source: String, destination: String, row: String, fault: &Fault) -> Self {
        Self {
            source: source.into(),
            destination: destination.into(),
            key: "[]".into(),
            row: row.into(),
            code: (&*fault.code).into(),
            message: fault.message.clone(),
            constraint: fault.constraint().map(Into::into),
            entry: None,
        }
    }

    /// Returns the write that inserts the dead letter into [`REJECTED`]. Zero bytes, which some
    /// databases do not allow in texts, become U+FFFD.
    pub fn write(&self) -> Write {
        let text = |text: &str| Value::text(text.replace('\0', "\u{fffd}"));
        let json = |json: &str| Value::Json(json.into());
        let row = [
            text(&self.source),
            text(&self.destination),
            json(&self.key),
            json(&self.row),
            text(&self.code),
            text(&self.message),
            self.constraint.as_deref().map_or(Value::Null, text),
            self.entry
                .as_deref()
                .map_or(Value::Null, |bytes| Value::Bytes(bytes.into())),
        ];
        let shape = ShapeParts {
            columns: Self::COLUMNS.map(Name::from).into(),
            key: Key::Primary,
            ..parts(Op::Insert, REJECTED, [])
        };
        Write::new(shape_of(shape), row)
    }
}

/// A dead letter read from the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptLetter {
    /// The number of the dead letter.
    pub id: u64,
    /// The time of the insert in UTC, as ISO 8601.
    pub rejected_at: Box<str>,
    /// The content of the dead letter.
    pub letter: DeadLetter,
}

impl KeptLetter {
    /// Returns the dead letter of a row with all columns of [`REJECTED`], in the order of its
    /// documentation.
    pub(crate) fn read(row: Vec<Option<Box<[u8]>>>) -> Self {
        let mut cells = row.into_iter();
        let mut bytes = || cells.next().flatten();
        let mut text = || bytes().map(|bytes| Box::from(String::from_utf8_lossy(&bytes)));
        let id = text().and_then(|id: Box<str>| id.parse().ok());
        Self {
            id: id.unwrap_or_default(),
            rejected_at: text().map(|moment| iso(&moment)).unwrap_or_default(),
            letter: DeadLetter {
                source: text().unwrap_or_default(),
                destination: text().unwrap_or_default(),
                key: text().unwrap_or_default(),
                row: text().unwrap_or_default(),
                code: text().unwrap_or_default(),
                message: text().unwrap_or_default(),
                constraint: text(),
                entry: bytes(),
            },
        }
    }
}

/// Returns a moment in UTC as ISO 8601 with milliseconds at most. Databases write it with a space
/// or `T`, and with or without the zone.
fn iso(moment: &str) -> Box<str> {
    let zones = ["+00:00", "+00", "Z"];
    let local = zones.iter().find_map(|zone| moment.strip_suffix(zone));
    let local = local.unwrap_or(moment);
    let Some((date, time)) = local.split_once([' ', 'T']) else {
        return moment.into();
    };
    let end = time.find('.').map_or(time.len(), |point| point + 4);
    let time = time.get(..end).unwrap_or(time);
    format!("{date}T{time}Z").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_all_databases_are_iso() {
        for (written, shown) in [
            ("2026-01-02 03:04:05.678912+00", "2026-01-02T03:04:05.678Z"),
            ("2026-01-02 03:04:05.6+00", "2026-01-02T03:04:05.6Z"),
            ("2026-01-02 03:04:05.000000", "2026-01-02T03:04:05.000Z"),
            ("2026-01-02T03:04:05.678Z", "2026-01-02T03:04:05.678Z"),
            ("2026-01-02T03:04:05+00:00", "2026-01-02T03:04:05Z"),
            ("today", "today"),
        ] {
            assert_eq!(&*iso(written), shown);
        }
    }

    #[test]
    fn a_row_of_the_table_is_a_dead_letter() {
        let cells = ["7", "today", "s", "d", "[1]", "{}", "23505", "twice"];
        let cells = cells.map(|cell| Some(cell.as_bytes().into()));
        let row = cells.into_iter().chain([None, Some([0, 255].into())]);
        let kept = KeptLetter::read(row.collect());
        assert_eq!((kept.id, &*kept.rejected_at), (7, "today"));
        assert_eq!((&*kept.letter.key, &*kept.letter.message), ("[1]", "twice"));
        assert_eq!(kept.letter.constraint, None);
        assert_eq!(kept.letter.entry.as_deref(), Some(&[0, 255][..]));
    }
}
