//! Says for a table which statements of clients are joined, before the first client sends one.
//!
//! Called by `windrow doctor`. Writes nothing.

use windrow_core::apart::Apart;
use windrow_core::{Fault, Op, TableName};

use super::client_sink::ClientSink;
use super::meaning::{no_key, operations};
use super::table_look::TableLook;

/// Single-row statements of clients: the name, the operation, and true for an INSERT that changes a
/// row with the same key.
const KINDS: [(&str, Op, bool); 6] = [
    ("INSERT", Op::Insert, false),
    ("INSERT IGNORE", Op::Insert, false),
    ("ON DUPLICATE KEY UPDATE", Op::Insert, true),
    ("REPLACE", Op::Insert, true),
    ("UPDATE", Op::Update, false),
    ("DELETE", Op::Delete, false),
];

/// Statements on a table that fare alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientStanding {
    /// The statements, such as `REPLACE`.
    pub statements: Vec<&'static str>,
    /// The reason why the statements are relayed; `None` if they are joined.
    pub why: Option<Apart>,
}

impl ClientSink {
    /// Looks at a table, and returns which single-row statements on it are joined.
    ///
    /// # Errors
    /// The server cannot be reached, or is in no state to answer.
    pub async fn survey(&self, name: &TableName) -> Result<Vec<ClientStanding>, Fault> {
        let table = self.table(name).await?;
        let mut standings: Vec<ClientStanding> = Vec::new();
        for (statement, op, updates) in KINDS {
            let why = match &table {
                Ok(table) => why_relayed(table, op, updates),
                Err(apart) => Some(apart.clone()),
            };
            match standings.iter_mut().find(|known| known.why == why) {
                Some(known) => known.statements.push(statement),
                None => standings.push(ClientStanding {
                    statements: vec![statement],
                    why,
                }),
            }
        }
        Ok(standings)
    }
}

fn why_relayed(table: &TableLook, op: Op, updates: bool) -> Option<Apart> {
    let of_table = table.why_apart(operations(op, updates).unwrap_or_default());
    of_table.or_else(|| no_key(table).filter(|_| op != Op::Insert))
}
