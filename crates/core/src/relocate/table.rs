//! What a move has to know of tables.

use crate::fault::{Fault, FaultClass};
use crate::name::{MAX_NAME_BYTES, Name, TableName};

/// What a table is like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableFacts {
    /// What tells this table apart from all tables of all databases, and stays the same: for the names of moves. Never shown.
    pub identity: String,
    /// Its columns, in their order.
    pub columns: Vec<Name>,
    /// Those of them whose values the database computes from others: they are neither brought along nor written. Identities
    /// and serials are no such columns.
    pub generated: Vec<Name>,
    /// The columns of its primary key; empty if it has none.
    pub key: Vec<Name>,
    /// Sets of columns that tell its rows apart: the primary key, and unique indexes (over plain columns, without a condition,
    /// checked at once) all of whose columns are NOT NULL. A move's key must hold one of them.
    pub uniques: Vec<Vec<Name>>,
    /// The columns that every row must be given a value for: NOT NULL, without a default, and filled in by nothing else that is known
    /// (a generator of numbers, a trigger).
    pub required: Vec<Name>,
}

impl TableFacts {
    /// The columns that can be brought along.
    pub fn plain(&self) -> impl Iterator<Item = &Name> {
        self.columns
            .iter()
            .filter(|column| !self.generated.contains(column))
    }

    /// Whether columns tell the table's rows apart.
    pub fn tells_apart(&self, columns: &[Name]) -> bool {
        let mut uniques = self.uniques.iter().filter(|unique| !unique.is_empty());
        uniques.any(|unique| unique.iter().all(|column| columns.contains(column)))
    }

    /// Whether rows that bring these columns along have all that the table asks of every row.
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

    /// What is said of a row that a destination left out without an error.
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
    /// The columns that get the values of the source's columns of the same names. Columns that are not named here get their
    /// defaults, or are generated.
    pub columns: Box<[Name]>,
}

impl Destination {
    /// Joins the columns that are brought along with those of a table, by their names.
    ///
    /// # Errors
    /// [`FaultClass::NoColumn`] if the table lacks some of them; they are named. [`FaultClass::NotNull`] if it has others that it
    /// requires ([`TableFacts::filled`]).
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

/// The longest name of a table that a database takes as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameLimit {
    /// So many bytes of UTF-8.
    Bytes(usize),
    /// So many characters.
    Chars(usize),
}

impl Default for NameLimit {
    /// Windrow's own.
    fn default() -> Self {
        Self::Bytes(MAX_NAME_BYTES)
    }
}

impl NameLimit {
    /// Whether a name can be used.
    ///
    /// # Errors
    /// [`FaultClass::Invalid`] if it is empty, too long, or holds a zero byte.
    pub fn check(self, name: &str) -> Result<(), Fault> {
        let (length, most, what) = match self {
            Self::Bytes(most) => (name.len(), most.min(MAX_NAME_BYTES), "bytes"),
            Self::Chars(most) => (name.chars().count(), most, "characters"),
        };
        let wrong = if name.is_empty() {
            "the name of the destination would be empty".to_owned()
        } else if name.contains('\0') {
            "the name of the destination would hold a zero byte".to_owned()
        } else if length > most || name.len() > MAX_NAME_BYTES {
            format!(
                "the name of the destination would be {length} {what} long; the database takes {most}"
            )
        } else {
            return Ok(());
        };
        Err(Fault::new(FaultClass::Invalid, "42602", wrong))
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
    fn names_are_measured_as_the_database_does() {
        let umlauts = "ä".repeat(40);
        assert!(NameLimit::Bytes(63).check(&umlauts).is_err());
        assert!(NameLimit::Chars(64).check(&umlauts).is_ok());
        assert!(NameLimit::Chars(64).check(&"x".repeat(65)).is_err());
        assert!(NameLimit::default().check("").is_err());
        assert!(NameLimit::default().check("a\0").is_err());
    }
}
