//! The properties of tables that matter to a move.

use super::Takes;
use crate::bookkeeping::{BATCHES, IDEMPOTENCY, MARKERS, PROGRESS, REJECTED};
use crate::fault::{Fault, FaultClass};
use crate::load::Mark;
use crate::name::{MAX_NAME_BYTES, Name, TableName};

/// Windrow's own tables.
const OWN: [&str; 6] = [
    MARKERS,
    REJECTED,
    BATCHES,
    Mark::TABLE,
    PROGRESS,
    IDEMPOTENCY,
];

/// True for the name of one of Windrow's own tables, whatever its case.
pub fn is_own(table: &str) -> bool {
    OWN.iter().any(|own| table.eq_ignore_ascii_case(own))
}

/// The properties of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableFacts {
    /// A text that identifies this table among all tables of all databases, and never changes. It
    /// is part of the names of moves and is never shown.
    pub identity: String,
    /// The columns of the table, in their order.
    pub columns: Vec<Name>,
    /// The columns whose values the database computes from others; they are neither read nor
    /// written. Identities and serials are not among them.
    pub generated: Vec<Name>,
    /// The columns of the primary key; empty if there is none.
    pub key: Vec<Name>,
    /// Sets of columns that identify a row: the primary key, and unique indexes (over plain
    /// columns, without a condition, not deferrable) all of whose columns are NOT NULL. A move's
    /// key must contain one of them.
    pub uniques: Vec<Vec<Name>>,
    /// The conversions of columns, where a value would change without one.
    pub takes: Vec<(Name, Takes)>,
    /// The exact spelling of the name, in a database that also finds the table by other spellings.
    pub spelled: Option<Name>,
    /// Columns of the primary key that may be NULL, which SQLite allows.
    pub nullable: Vec<Name>,
    /// The columns for which every row needs a value: NOT NULL, without a default, and not known to
    /// be filled by a sequence or a trigger.
    pub required: Vec<Name>,
    /// Side effects of deleting rows, in words: foreign keys of other tables that then delete or
    /// change rows, triggers and rules.
    pub effects: Vec<Box<str>>,
    /// Foreign keys of other tables that prevent rows from being deleted.
    pub referrers: Vec<Referrer>,
}

/// A foreign key of another table without an action: a row to which rows of that table refer
/// cannot be deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Referrer {
    /// The description of the key.
    pub words: Box<str>,
    /// The condition, in the database's SQL, under which rows refer to a row of the table.
    pub condition: Box<str>,
}

impl Referrer {
    /// Returns the foreign key `constraint` of a table. `condition`: as [`Referrer::condition`].
    pub fn new(table: &str, constraint: &str, condition: impl Into<Box<str>>) -> Self {
        Self {
            words: format!("foreign key {constraint} of {table}").into(),
            condition: condition.into(),
        }
    }
}

impl TableFacts {
    /// Describes a foreign key of this table that deletes or changes its rows together with those
    /// that they refer to. `action`: `CASCADE`, `SET NULL` or `SET DEFAULT`.
    pub fn effect_of_key(table: &str, constraint: &str, action: &str) -> Box<str> {
        format!("foreign key {constraint} of {table} (ON DELETE {action})").into()
    }

    /// Describes a trigger that fires when rows are deleted.
    pub fn effect_of_trigger(table: &str, trigger: &str) -> Box<str> {
        format!("trigger {trigger} of {table} (DELETE)").into()
    }

    /// Returns the columns that are not generated.
    pub fn plain(&self) -> impl Iterator<Item = &Name> {
        self.columns
            .iter()
            .filter(|column| !self.generated.contains(column))
    }

    /// True if the columns identify the table's rows.
    pub fn tells_apart(&self, columns: &[Name]) -> bool {
        let mut uniques = self.uniques.iter().filter(|unique| !unique.is_empty());
        uniques.any(|unique| unique.iter().all(|column| columns.contains(column)))
    }

    /// Returns the columns that name a row in markers: the primary key, or if that is missing or
    /// may hold NULL, one set of [`TableFacts::uniques`], always the same one. Empty if no columns
    /// identify a row.
    pub fn naming(&self) -> &[Name] {
        let sure = |unique: &&Vec<Name>| !unique.iter().any(|name| self.nullable.contains(name));
        let uniques = || self.uniques.iter().filter(|unique| !unique.is_empty());
        let primary = uniques().filter(sure).find(|unique| **unique == self.key);
        let named = primary.or_else(|| uniques().filter(sure).min());
        named.or_else(|| uniques().min()).map_or(&[], Vec::as_slice)
    }

    /// Checks that rows with these columns have a value for each column that needs one.
    ///
    /// # Errors
    /// [`FaultClass::NotNull`] if required columns are missing; the message names them.
    pub fn filled(&self, table: &TableName, columns: &[Name]) -> Result<(), Fault> {
        let required = self.required.iter();
        let empty: Vec<&str> = required
            .filter(|column| !columns.contains(column))
            .map(|column| &**column)
            .collect();
        if empty.is_empty() {
            return Ok(());
        }
        Err(Fault::new(
            FaultClass::NotNull,
            "23502",
            format!(
                "the table {table} has columns that the source does not have, that may not be NULL and have no default: {}; \
                 give them a default, or the source these columns",
                empty.join(", ")
            ),
        )
        .with_table(Some(&*table.table))
        .with_column(empty.first().copied()))
    }

    /// Returns the fault for a name that differs from the table's only in case, in a database that
    /// ignores case.
    pub fn otherwise_spelled(table: &TableName, found: &str) -> Fault {
        Fault::new(
            FaultClass::Invalid,
            "42602",
            format!(
                "the table {table} would be the table {found}, for SQLite does not tell names apart that differ in the case of letters"
            ),
        )
    }

    /// Returns the fault for a row that a destination left out without an error.
    pub fn left_out(table: &TableName) -> Fault {
        Fault::new(
            FaultClass::Check,
            "09000",
            format!(
                "a trigger or a rule of the table {table} leaves the row out, or puts it elsewhere"
            ),
        )
    }
}

/// A table within the same database to which rows are moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The name of the table.
    pub table: TableName,
    /// The columns that get the values of the source's columns of the same names. Other columns get
    /// their defaults, or are generated.
    pub columns: Box<[Name]>,
}

impl Destination {
    /// Matches the moved columns with those of a table, by name.
    ///
    /// # Errors
    /// [`FaultClass::NoColumn`] if the table lacks some of them; the message names them.
    /// [`FaultClass::NotNull`] if the table requires others ([`TableFacts::filled`]).
    pub fn new(table: &TableName, facts: &TableFacts, columns: &[Name]) -> Result<Self, Fault> {
        let lacking: Vec<&str> = columns
            .iter()
            .filter(|column| !facts.columns.contains(column))
            .map(|column| &**column)
            .collect();
        if !lacking.is_empty() {
            return Err(Fault::new(
                FaultClass::NoColumn,
                "42703",
                format!(
                    "the table {table} lacks columns of the source: {}",
                    lacking.join(", ")
                ),
            )
            .with_table(Some(&*table.table)));
        }
        facts.filled(table, columns)?;
        Ok(Self {
            table: table.clone(),
            columns: columns
                .iter()
                .filter(|column| !facts.generated.contains(column))
                .cloned()
                .collect(),
        })
    }
}

/// The limits of a database for the names of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameLimit {
    /// A number of bytes of UTF-8.
    Bytes(usize),
    /// A number of bytes of UTF-8. Names that differ only in the case of ASCII letters mean one
    /// table, which exists under one spelling.
    Caseless(usize),
    /// MySQL's limits: the number of characters of Unicode's basic plane, of which the last is not
    /// a blank.
    Plain {
        /// The largest number of characters.
        most: usize,
        /// True if the database folds capital letters to small ones; then capital letters are
        /// refused.
        folded: bool,
    },
}

/// The most bytes of a table's file name in MySQL, without its extension.
const FILE_BYTES: usize = 251;

/// Returns the least number of bytes that a character takes in the name of a table's file
/// (<https://dev.mysql.com/doc/refman/8.0/en/identifier-mapping.html>).
fn file_bytes(c: char) -> usize {
    match c {
        '0'..='9' | 'a'..='z' | 'A'..='Z' | '_' => 1,
        '\u{c0}'..='\u{5ff}' | '\u{1e00}'..='\u{1fff}' => 3,
        '\u{2160}'..='\u{217f}' | '\u{24b0}'..='\u{24ef}' | '\u{ff20}'..='\u{ff5f}' => 3,
        _ => 5,
    }
}

impl Default for NameLimit {
    /// Returns Windrow's own limit.
    fn default() -> Self {
        Self::Bytes(MAX_NAME_BYTES)
    }
}

impl NameLimit {
    /// Checks that a name that comes from a row can be used for a table.
    ///
    /// # Errors
    /// [`FaultClass::Invalid`] if it is empty, too long, or has characters that the database does
    /// not allow; if the database would read it as another name; if it is one of Windrow's own
    /// tables.
    pub fn check(self, name: &str) -> Result<(), Fault> {
        let (length, most, what) = match self {
            Self::Bytes(most) | Self::Caseless(most) => {
                (name.len(), most.min(MAX_NAME_BYTES), "bytes")
            }
            Self::Plain { most, .. } => (name.chars().count(), most, "characters"),
        };
        let wrong = if name.is_empty() {
            "would be empty".to_owned()
        } else if name.contains('\0') {
            "would hold a zero byte".to_owned()
        } else if length > most || name.len() > MAX_NAME_BYTES {
            format!("would be {length} {what} long; the database takes {most}")
        } else if is_own(name) {
            format!("would be {name}, a table of Windrow's own")
        } else if let Some(wrong) = self.refused_plain(name) {
            wrong.to_owned()
        } else {
            return Ok(());
        };
        let message = format!("the name of the destination {wrong}");
        Err(Fault::new(FaultClass::Invalid, "42602", message))
    }

    /// True if two valid names mean the same table.
    pub fn folds(self, one: &TableName, other: &TableName) -> bool {
        let same = |one: &str, other: &str| one.eq_ignore_ascii_case(other);
        matches!(self, Self::Caseless(_)) && one != other && same(&one.table, &other.table)
    }

    /// Returns the reason why MySQL refuses a name.
    fn refused_plain(self, name: &str) -> Option<&'static str> {
        let Self::Plain { folded, .. } = self else {
            return None;
        };
        if name.ends_with([' ', '\t', '\n', '\u{b}', '\u{c}', '\r']) {
            Some("would end with a blank, which the database does not take")
        } else if name.chars().any(|c| c > '\u{ffff}') {
            Some(
                "would hold a character outside of Unicode's basic plane, which the database does not take",
            )
        } else if name.chars().map(file_bytes).sum::<usize>() > FILE_BYTES {
            Some(
                "would be too long for the name of a file, in which characters other than plain letters and digits take several bytes",
            )
        } else if folded && name.chars().any(char::is_uppercase) {
            Some("would hold capital letters, which the server does not tell apart from small ones")
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_joined_by_name() {
        let facts = TableFacts {
            columns: ["b", "total", "a", "extra"].map(Name::from).into(),
            generated: ["total"].map(Name::from).into(),
            ..TableFacts::default()
        };
        let table = TableName::bare("t");
        let columns = ["a", "total", "b"].map(Name::from);
        let joined = Destination::new(&table, &facts, &columns).unwrap();
        assert_eq!(&*joined.columns, ["a", "b"].map(Name::from));
        let more = ["a", "c", "d"].map(Name::from);
        let fault = Destination::new(&table, &facts, &more).unwrap_err();
        assert_eq!(fault.class, FaultClass::NoColumn);
        assert!(fault.message.ends_with(": c, d"), "{fault}");
    }

    #[test]
    fn columns_that_every_row_needs_are_missed_before_the_first() {
        let facts = TableFacts {
            columns: ["a", "b", "c", "d"].map(Name::from).into(),
            required: ["b", "c", "d"].map(Name::from).into(),
            ..TableFacts::default()
        };
        let table = TableName::bare("t");
        let joined = |columns: &[&str]| {
            let columns: Vec<Name> = columns.iter().map(|c| Name::from(*c)).collect();
            Destination::new(&table, &facts, &columns)
        };
        assert!(joined(&["d", "c", "b"]).is_ok());
        let fault = joined(&["a", "c"]).unwrap_err();
        assert_eq!((fault.class, &*fault.code), (FaultClass::NotNull, "23502"));
        assert!(fault.message.contains("no default: b, d;"), "{fault}");
    }

    #[test]
    fn a_row_is_named_by_the_same_columns_whatever_else_tells_it_apart() {
        let names = |names: &[&str]| names.iter().map(|n| Name::from(*n)).collect::<Vec<_>>();
        let mut facts = TableFacts {
            key: names(&["id", "a"]),
            uniques: vec![names(&["z"]), names(&["id", "a"]), names(&["b", "c"])],
            ..TableFacts::default()
        };
        assert_eq!(facts.naming(), names(&["id", "a"]));
        facts.nullable = names(&["a"]);
        assert_eq!(facts.naming(), names(&["b", "c"]));
        facts.uniques.truncate(2);
        facts.uniques.remove(0);
        assert_eq!(facts.naming(), names(&["id", "a"]));
        assert!(TableFacts::default().naming().is_empty());
    }

    #[test]
    fn names_are_measured_as_the_database_does() {
        let umlauts = "ä".repeat(40);
        assert!(NameLimit::Bytes(63).check(&umlauts).is_err());
        let plain = |folded| NameLimit::Plain { most: 64, folded };
        assert!(plain(true).check(&umlauts).is_ok());
        assert!(plain(true).check(&"x".repeat(65)).is_err());
        // The file's name is the limit.
        let signs = |letters: usize| format!("{}{}", "x".repeat(letters), "\u{6570}".repeat(50));
        assert!(plain(true).check(&signs(1)).is_ok() && plain(true).check(&signs(2)).is_err());
        assert!(plain(false).check("Äx").is_ok() && plain(true).check("Äx").is_err());
        for odd in ["a ", "a\n", "a\u{1f600}"] {
            assert!(plain(false).check(odd).is_err(), "{odd:?}");
            assert!(NameLimit::default().check(odd).is_ok(), "{odd:?}");
        }
        assert!(NameLimit::default().check("Windrow_Moved").is_err());
        assert!(NameLimit::default().check("windrow_progress").is_err());
        assert!(NameLimit::default().check("").is_err());
        assert!(NameLimit::default().check("a\0").is_err());
    }
}
