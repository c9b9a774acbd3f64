//! The degree to which the writes of a table share statements and transactions, as found by the
//! sink, for operators.

use crate::apart::Apart;
use crate::name::TableName;
use crate::shape::Op;
use crate::sql::Doubt;

/// The degree to which a write may share with its neighbours in a batch. Greater is more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// Nothing: the write is a statement and a transaction of its own.
    Apart,
    /// A transaction: the write is a statement of its own.
    Grouped,
    /// A statement.
    Fused,
}

impl Level {
    /// Returns the word that operators read.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Apart => "apart",
            Self::Grouped => "grouped",
            Self::Fused => "fused",
        }
    }
}

/// The result of the proof for some of the writes to one table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Standing {
    /// The table, as clients have named it.
    pub table: TableName,
    /// The operations, in the order of [`Op`].
    pub ops: Box<[Op]>,
    /// The most that they share.
    pub level: Level,
    /// The reason why the writes do not share more; `None` if they share all.
    pub why: Option<Apart>,
    /// The reason why the INSERTs are not kept in transactions; `Ok` if they are, `None` if that is
    /// not known.
    pub kept: Option<Result<(), &'static Doubt>>,
}

impl Standing {
    /// Sets [`Standing::kept`] of the entries for INSERT of the table that was added last.
    pub fn add_kept(list: &mut [Self], kept: Result<(), &'static Doubt>) {
        if let Some(last) = list.last_mut() {
            last.kept = Some(kept);
        }
    }

    /// Adds an operation on a table to a list of many tables. Operations on one table with the same
    /// result share an entry.
    pub fn add(list: &mut Vec<Self>, table: &TableName, op: Op, level: Level, why: Option<Apart>) {
        let of_table = list.iter_mut().rev().take_while(|s| s.table == *table);
        let mut same = of_table.filter(|s| s.level == level && s.why == why);
        match same.next() {
            Some(known) => known.ops = known.ops.iter().copied().chain([op]).collect(),
            None => list.push(Self {
                table: table.clone(),
                ops: [op].into(),
                level,
                why,
                kept: None,
            }),
        }
    }
}
