//! Names a load in the database that it fills, and checks that its file is the same.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};
use windrow_core::{Name, Span, TableName};

use crate::source::IDENTIFYING_BYTES;

/// The identity of a file from one run to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// The canonical path of the file.
    Path(Box<str>),
    /// A name that the user gives, for input without a path.
    Name(Box<str>),
}

/// The most bytes of a file's name in a load's name, for those who read the table of marks.
const LABEL: usize = 40;

impl Identity {
    /// Returns a load's name: the same for the same file, table and columns.
    pub(super) fn load(&self, table: &TableName, columns: &[Name]) -> Box<str> {
        let (kind, text) = match self {
            Self::Path(path) => ("path", path),
            Self::Name(name) => ("name", name),
        };
        let mut hash = Sha256::new();
        let schema = table.schema.as_deref().unwrap_or_default();
        let parts = [kind, text, schema, &table.table];
        for part in parts.into_iter().chain(columns.iter().map(|c| &**c)) {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let tail = text.rsplit('/').next().unwrap_or_default();
        let plain = |c: char| match c.is_ascii_alphanumeric() || c == '.' {
            true => c,
            false => '-',
        };
        let mut name: String = tail.chars().map(plain).take(LABEL).collect();
        name.push('-');
        for byte in hash.finalize().iter().take(16) {
            // Writing to a string cannot fail.
            write!(name, "{byte:02x}").ok();
        }
        name.into()
    }
}

/// Returns the name under which the beginning of a load's file is kept.
pub(super) fn head_of(load: &str) -> Box<str> {
    format!("{load}/head").into()
}

/// Returns the beginning of a file as a span: its start is a hash of the bytes, its length is their
/// number. `most` is the number of bytes that an earlier run has read.
pub(super) fn head(bytes: &[u8], most: Option<u64>) -> Span {
    let most = most.and_then(|most| usize::try_from(most).ok());
    let most = most.unwrap_or(usize::MAX).min(IDENTIFYING_BYTES);
    let bytes = bytes.get(..most).unwrap_or(bytes);
    let digest = Sha256::digest(bytes);
    let hash = digest
        .iter()
        .take(6)
        .fold(0, |hash, byte| (hash << 8) | u64::from(*byte));
    Span {
        first: hash,
        end: hash + bytes.len() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_file_table_and_columns() {
        let name = |file: &str, table: &str, columns: &[&str]| {
            let columns: Vec<Name> = columns.iter().map(|c| Name::from(*c)).collect();
            let table = TableName::parse(table).unwrap();
            Identity::Path(file.into()).load(&table, &columns)
        };
        let one = name("/data/my weather.csv", "s.t", &["a", "b"]);
        assert_eq!(one, name("/data/my weather.csv", "s.t", &["a", "b"]));
        assert!(one.starts_with("my-weather.csv-"), "{one}");
        for other in [
            name("/other/my weather.csv", "s.t", &["a", "b"]),
            name("/data/my weather.csv", "t", &["a", "b"]),
            name("/data/my weather.csv", "s.t", &["ab"]),
            Identity::Name("/data/my weather.csv".into())
                .load(&TableName::parse("s.t").unwrap(), &["a".into(), "b".into()]),
        ] {
            assert_ne!(one, other);
        }
        let long = name(&"ü/x".repeat(500), "t", &["a"]);
        assert!(head_of(&long).len() <= windrow_core::Mark::NAME_BYTES && long.is_ascii());
    }

    #[test]
    fn a_file_that_has_grown_begins_as_before() {
        let before = head(b"a\n1\n", None);
        assert_eq!(before.end - before.first, 4);
        assert_eq!(head(b"a\n1\n2\n", Some(4)), before);
        assert_ne!(head(b"a\n3\n2\n", Some(4)), before);
        assert_ne!(head(b"a\n", Some(4)), before);
    }
}
