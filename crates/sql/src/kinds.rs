//! The kinds of statements, by their first words: the only list of what each kind does by itself.
//!
//! The modules of this crate look up kinds here, and the PostgreSQL frontend does so through
//! [`Names`](crate::Names). What a statement runs beyond that is in the catalog, and not here.

use Property::{
    Calls, Defines, Ends, Hides, Keeps, Private, Queries, Reads, RunsNothing, TakesAway, WithSync,
    WritesRows,
};

/// A property of a kind of statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// The statement writes nothing, unless it contains the word of a write.
    Reads,
    /// The statement evaluates expressions of its text for rows.
    Queries,
    /// The statement writes rows.
    WritesRows,
    /// The statement runs no code.
    RunsNothing,
    /// The statement changes the catalog, which event triggers notice.
    Defines,
    /// The statement runs a procedure, which may do anything.
    Calls,
    /// The statement may remove or change an object, or the right to see it.
    TakesAway,
    /// The statement ends a transaction.
    Ends,
    /// The statement may leave, or remove, something that PostgreSQL shows to its session:
    /// temporary objects, prepared statements, channels, cursors, settings.
    Keeps,
    /// The statement may leave something that PostgreSQL does not show.
    Hides,
    /// The statement concerns only the session or the transaction: it commits nothing.
    Private,
    /// Outside of a block, the statement commits with the Sync that it belongs to.
    WithSync,
}

/// The reason that is counted for each statement of a transaction block.
const BLOCK: &str = "a transaction block";

/// The first word of each kind, the reason why its statements are not joined, and its properties.
#[rustfmt::skip]
const KINDS: [(&str, &str, &[Property]); 53] = [
    ("abort", BLOCK, &[RunsNothing, Ends]),
    ("alter", "ALTER", &[Defines, TakesAway]),
    ("analyse", "maintenance", &[]),
    ("analyze", "maintenance", &[]),
    ("begin", BLOCK, &[RunsNothing]),
    ("call", "CALL", &[Calls, TakesAway]),
    ("checkpoint", "maintenance", &[RunsNothing, Private]),
    ("close", "CLOSE", &[RunsNothing, Keeps, Private]),
    ("cluster", "DDL", &[]),
    ("comment", "DDL", &[Defines]),
    ("commit", BLOCK, &[RunsNothing, Ends]),
    ("copy", "COPY", &[Queries, WritesRows]),
    ("create", "CREATE", &[Defines]),
    ("deallocate", "DEALLOCATE", &[RunsNothing, Keeps, Private]),
    ("declare", "DECLARE", &[Reads, Queries]),
    ("delete", "DELETE", &[Queries, WritesRows]),
    ("discard", "DISCARD", &[RunsNothing, Keeps, TakesAway, Private]),
    ("do", "DO", &[Calls, TakesAway, Hides]),
    ("drop", "DROP", &[Defines, TakesAway]),
    ("end", BLOCK, &[RunsNothing, Ends]),
    ("execute", "EXECUTE", &[Keeps]),
    ("explain", "EXPLAIN", &[Reads, Queries]),
    ("fetch", "FETCH", &[RunsNothing, WithSync]),
    ("grant", "DDL", &[Defines, TakesAway]),
    ("import", "DDL", &[Defines, TakesAway]),
    ("insert", "INSERT", &[Queries, WritesRows]),
    ("listen", "LISTEN", &[RunsNothing, Keeps, Private]),
    ("load", "LOAD", &[Hides, Private]),
    ("lock", "LOCK", &[RunsNothing, Private]),
    ("merge", "MERGE", &[Queries, WritesRows]),
    ("move", "FETCH", &[RunsNothing, WithSync]),
    ("notify", "NOTIFY", &[RunsNothing, WithSync]),
    ("prepare", "PREPARE", &[Reads, Keeps, Ends, Private]),
    ("reassign", "DDL", &[Defines, TakesAway]),
    ("refresh", "DDL", &[Defines]),
    ("reindex", "DDL", &[]),
    ("release", BLOCK, &[RunsNothing, Private]),
    ("reset", "RESET", &[RunsNothing, Keeps, Private]),
    ("revoke", "DDL", &[Defines, TakesAway]),
    ("rollback", BLOCK, &[RunsNothing, Ends]),
    ("savepoint", BLOCK, &[RunsNothing, Private]),
    ("security", "DDL", &[Defines, TakesAway]),
    ("select", "SELECT", &[Reads, Queries]),
    ("set", "SET", &[RunsNothing, Keeps, Private]),
    ("show", "SHOW", &[RunsNothing, Private]),
    ("start", BLOCK, &[RunsNothing]),
    ("table", "TABLE", &[Reads, Queries]),
    ("truncate", "DDL", &[WritesRows]),
    ("unlisten", "LISTEN", &[RunsNothing, Keeps, Private]),
    ("update", "UPDATE", &[Queries, WritesRows]),
    ("vacuum", "maintenance", &[RunsNothing]),
    ("values", "VALUES", &[Reads, Queries]),
    ("with", "WITH", &[Reads, Queries]),
];

/// Returns the reason and the properties of the kind that a word, in lower case, begins; `None` for
/// a word that begins no statement.
pub(crate) fn kind(word: &str) -> Option<(&'static str, &'static [Property])> {
    let at = KINDS.binary_search_by(|(known, ..)| (*known).cmp(word));
    let (_, reason, properties) = KINDS.get(at.ok()?)?;
    Some((reason, properties))
}

/// A set of properties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct PropertySet(u16);

impl PropertySet {
    /// Returns the properties of the statements that a word, in lower case, begins.
    pub(crate) fn of_kind(word: &str) -> Self {
        Self::of(kind(word).map_or(&[], |(_, properties)| properties))
    }

    fn of(properties: &[Property]) -> Self {
        let bits = properties.iter().map(|property| 1 << *property as u16);
        Self(bits.fold(0, |all, bit| all | bit))
    }

    /// Returns true if one of these properties is in the set.
    pub(crate) fn has_one(self, properties: &[Property]) -> bool {
        self.0 & Self::of(properties).0 != 0
    }
}

/// Returns true if the statements that a word begins, in lower case, have a property.
pub(crate) fn has(word: &str, property: Property) -> bool {
    kind(word).is_some_and(|(_, properties)| properties.contains(&property))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted() {
        assert!(KINDS.is_sorted_by_key(|(word, ..)| *word));
        assert!(has("alter", Defines) && !has("gibberish", Defines));
    }
}
