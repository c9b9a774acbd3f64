//! The properties of tables that matter to a move.

use super::Takes;
use crate::bookkeeping::{BATCHES, IDEMPOTENCY, MARKERS, PROGRESS, REJECTED};
use crate::fault::{Fault, FaultClass};
use crate::load::Mark;
use crate::name::{MAX_NAME_BYTES, Name, TableName};

/// Tables that Windrow keeps for itself.
const OWN: [&str; 6] = [
    MARKERS,
    REJECTED,
    BATCHES,
    Mark::TABLE,
    PROGRESS,
    IDEMPOTENCY,
];

/// True for the name of a table that Windrow keeps for itself, however it is capitalized.
pub fn is_own(table: &str) -> bool {
    OWN.iter().any(|own| table.eq_ignore_ascii_case(own))
}

/// The properties of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableFacts {
    /// A text that tells this table apart from all tables of all databases, and stays the same: for
    /// the names of moves. Never shown.
    pub identity: String,
    /// The columns of the table, in their order.
    pub columns: Vec<Name>,
    /// The columns whose values the database computes from others: these are neither read nor
    /// written. Identities and serials are no such columns.
    pub generated: Vec<Name>,
    /// The columns of its primary key; empty if it has none.
    pub key: Vec<Name>,
    /// Sets of columns that tell its rows apart: the primary key, and unique indexes (over plain
    /// columns, without a condition, checked at once) all of whose columns are NOT NULL. A
    /// move's key must hold one of them.
    pub uniques: Vec<Vec<Name>>,
    /// The conversions of columns whose values would change otherwise.
    pub takes: Vec<(Name, Takes)>,
    /// The spelling of the name, in a database that finds the table by other spellings too.
    pub spelled: Option<Name>,
    /// Columns of the primary key that may be NULL all the same, as SQLite has them.
    pub nullable: Vec<Name>,
    /// The columns that every row must be given a value for: NOT NULL, without a default, and
    /// filled in by nothing else that is known (a generator of numbers, a trigger).
    pub required: Vec<Name>,
    /// Side effects of deleting its rows: foreign keys of other tables that delete or
    /// change rows with it, triggers and rules. Each in words.
    pub effects: Vec<Box<str>>,
    /// Foreign keys of other tables that keep its rows from being deleted.
    pub referrers: Vec<Referrer>,
}

/// A foreign key of another table without an action: a row to which rows of that table refer
/// cannot be deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Referrer {
    /// The words for the key.
    pub words: Box<str>,
    /// The condition on a row of the table, in the database's SQL: rows refer to it.
    pub condition: Box<str>,
}

impl Referrer {
    /// Describes the foreign key `constraint` of a table. `condition`: as [`Referrer::condition`].
    pub fn new(table: &str, constraint: &str, condition: impl Into<Box<str>>) -> Self {
        Self {
            words: format!("foreign key {constraint} of {table}").into(),
            condition: condition.into(),
        }
    }
}

impl TableFacts {
    /// The words for a foreign key, of this table, that deletes or changes rows with those that it
    /// refers to. `action`: `CASCADE`, `SET NULL` or `SET DEFAULT`.
    pub fn effect_of_key(table: &str, constraint: &str, action: &str) -> Box<str> {
        format!("foreign key {constraint} of {table} (ON DELETE {action})").into()
    }

    /// The words for a trigger that fires where rows are deleted.
    pub fn effect_of_trigger(table: &str, trigger: &str) -> Box<str> {
        format!("trigger {trigger} of {table} (DELETE)").into()
    }

    /// The columns that can be brought along.
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

    /// The columns that name a row for as long as the table has the keys that it has: its primary
    /// key, or where that may hold NULL or is missing, another set of [`TableFacts::uniques`],
    /// always the same one. Empty if nothing tells rows apart.
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
    /// [`FaultClass::NotNull`] if they lack columns that it requires; they are named.
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

    /// Returns the fault for a table of another spelling, in a database that ignores the case of
    /// letters.
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

/// A table that rows are moved to within one database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// Which.
    pub table: TableName,
    /// The columns that get the values of the source's columns of the same names. Columns that are
    /// not named here get their defaults, or are generated.
    pub columns: Box<[Name]>,
}

impl Destination {
    /// Joins the columns that are brought along with those of a table, by their names.
    ///
    /// # Errors
    /// [`FaultClass::NoColumn`] if the table lacks some of them; they are named.
    /// [`FaultClass::NotNull`] if it has others that it requires ([`TableFacts::filled`]).
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

/// Which names a database takes for its tables, as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameLimit {
    /// A number of bytes of UTF-8.
    Bytes(usize),
    /// A number of bytes of UTF-8. Names that differ only in the case of ASCII letters mean one
    /// table, which exists under one spelling.
    Caseless(usize),
    /// As MySQL has it: so many characters of Unicode's basic plane, the last of them no blank.
    Plain {
        /// The largest number of characters.
        most: usize,
        /// True if capital letters mean small ones, and are not allowed.
        folded: bool,
    },
}

/// Bytes of the longest name of a table's file in MySQL, without its ending.
const FILE_BYTES: usize = 251;

/// Bytes that a character takes in the name of a table's file, at least
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
    /// Windrow's own.
    fn default() -> Self {
        Self::Bytes(MAX_NAME_BYTES)
    }
}

impl NameLimit {
    /// Checks that a name that follows from a row can be used.
    ///
    /// # Errors
    /// [`FaultClass::Invalid`] if it is empty, too long, or holds what the database has no names
    /// of; if the database would take it for another one; if it is that of a table of Windrow's
    /// own.
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

    /// True if two usable names mean one table.
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
