//! What a statement takes from sequences itself, before it asks what they gave.

use std::fmt::Write as _;

use windrow_calls::ParsedStatement;
use windrow_core::Op;
use windrow_sql::{Reading, Sequences};

use crate::pool::literal;
use crate::statements::CachedStatement;

/// The sequences of columns that an INSERT leaves out, and that stand before all that it names: the
/// server evaluates the values of a row in the order of the table's columns.
const FILLED: &str = "SELECT d.refobjid AS oid FROM pg_catalog.pg_attrdef f \
     JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass AND d.objid = f.oid \
     AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass \
     JOIN pg_catalog.pg_class s ON s.oid = d.refobjid AND s.relkind = 'S' \
     WHERE f.adrelid = {table} AND f.adnum < {first} \
     UNION ALL SELECT d.objid FROM pg_catalog.pg_depend d \
     WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refclassid = d.classid AND d.deptype = 'i' \
     AND d.refobjid = {table} AND d.refobjsubid > 0 AND d.refobjsubid < {first}";

const FIRST: &str = "(SELECT pg_catalog.min(attnum) FROM pg_catalog.pg_attribute WHERE attrelid = {table} \
     AND attname::pg_catalog.text = ANY (ARRAY[{columns}]))";

/// What a statement takes itself.
#[derive(Debug, Default)]
pub(super) struct StatementSequences {
    /// It calls `nextval`.
    next: bool,
    /// SQL for the numbers of sequences that it names.
    named: Option<String>,
    /// SQL for those of columns that it fills.
    filled: Option<String>,
}

impl StatementSequences {
    /// `None`: that cannot be told.
    pub(super) fn of(cached: &CachedStatement, named: Option<&Sequences>) -> Option<Self> {
        let mut own = Self::default();
        if let Some(named) = named {
            if named.others {
                return None;
            }
            let numbers = named
                .names
                .iter()
                .map(|name| format!("{}::pg_catalog.regclass::pg_catalog.oid", literal(name)));
            let numbers = numbers.collect::<Vec<_>>().join(", ");
            own.named = (!numbers.is_empty()).then(|| format!("SELECT unnest(ARRAY[{numbers}])"));
            own.next = cached.names().is_some_and(|names| names.calls("nextval"));
        }
        if let Reading::Join(parsed) = &cached.reading {
            own.filled = filled(parsed);
        }
        Some(own)
    }

    /// SQL that gives what `lastval()` says: `known`, unless the statement itself takes something
    /// first. `None`: the server says it. `sequence`: where that was taken.
    pub(super) fn last(&self, known: String, sequence: Option<u32>) -> Option<String> {
        let mut cases = String::new();
        if let Some(filled) = &self.filled {
            write!(cases, " WHEN EXISTS ({filled}) THEN pg_catalog.lastval()").ok()?;
        }
        if let (Some(named), Some(sequence)) = (&self.named, sequence) {
            write!(
                cases,
                " WHEN {sequence} IN ({named}) THEN pg_catalog.currval({sequence})"
            )
            .ok()?;
        }
        (!self.next).then(|| match cases.is_empty() {
            true => known,
            false => format!("(SELECT CASE{cases} ELSE {known} END AS lastval)"),
        })
    }

    /// SQL for the numbers of sequences of which the server itself says what `currval()` says.
    pub(super) fn sequences(&self) -> Option<String> {
        let both = [self.named.as_deref(), self.filled.as_deref()];
        let both: Vec<_> = both.into_iter().flatten().collect();
        (!both.is_empty()).then(|| both.join(" UNION ALL "))
    }
}

fn filled(parsed: &ParsedStatement) -> Option<String> {
    // Several rows are evaluated before what is filled in.
    let fills = parsed.op == Op::Insert && parsed.set_based;
    let columns = parsed.columns.as_deref().filter(|_| fills)?;
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let table = match &parsed.table.schema {
        Some(schema) => format!("{}.{}", quoted(schema), quoted(&parsed.table.table)),
        None => quoted(&parsed.table.table),
    };
    let table = format!("{}::pg_catalog.regclass", literal(&table));
    let columns: Vec<_> = columns.iter().map(|name| literal(name)).collect();
    let first = FIRST.replace("{columns}", &columns.join(", "));
    Some(FILLED.replace("{first}", &first).replace("{table}", &table))
}
