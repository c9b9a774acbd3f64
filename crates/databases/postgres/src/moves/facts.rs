//! Reads those facts about a table from the catalog that a move needs.

use windrow_core::moves::{Referrer, TableFacts, Takes};
use windrow_core::{Fault, FaultClass, Name, TableName};
use windrow_database::quote::push_table;
use windrow_pgwire::wire::Wire;

use crate::talk::{Ask, talk, text};

/// Selects the table: its number, its kind, and whether others inherit from it.
const TABLE: &str = "\
SELECT c.oid, c.relkind, c.relkind = 'p' OR c.relhassubclass, (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
FROM pg_class c WHERE c.oid = to_regclass($1)";

/// Selects the columns; for each whether it is computed, its type, and whether every row must
/// provide a value: the column is NOT NULL without a default, and no trigger or rule can fill it
/// in.
const COLUMNS: &str = "\
SELECT a.attname, a.attgenerated <> '', format_type(a.atttypid, a.atttypmod),
  (a.attnotnull OR t.typnotnull) AND NOT a.atthasdef AND a.attidentity = '' AND t.typdefault IS NULL
  AND NOT EXISTS (SELECT FROM pg_rewrite r WHERE r.ev_class = a.attrelid AND r.ev_type = '3')
  AND NOT EXISTS (SELECT FROM pg_trigger g WHERE g.tgtype & 7 = 7 AND NOT g.tgisinternal
    AND (g.tgrelid = a.attrelid OR g.tgrelid IN (SELECT relid FROM pg_partition_tree(a.attrelid)))),
  coalesce(nullif(t.typbasetype, 0), t.oid)::regtype, t.typcategory
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum";

/// Selects the unique indexes whose columns are never NULL, the primary key first.
const UNIQUES: &str = "\
SELECT i.indisprimary, (SELECT json_agg(a.attname ORDER BY k.place)
  FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, place)
  JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum WHERE k.place <= i.indnkeyatts)
FROM pg_index i
WHERE i.indrelid = to_regclass($1) AND i.indisvalid AND i.indisunique AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL
  AND NOT EXISTS (SELECT FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, place)
    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
    WHERE k.place <= i.indnkeyatts AND NOT a.attnotnull)
ORDER BY i.indisprimary DESC, i.indexrelid";

/// Selects the side effects of deleting rows of the table, its partitions or tables that inherit
/// from it: foreign keys, triggers, rules; for each its sort, its table, its name and its action.
const EFFECTS: &str = "\
WITH RECURSIVE parts(oid) AS (SELECT to_regclass($1)::oid UNION SELECT i.inhrelid FROM pg_inherits i JOIN parts p ON i.inhparent = p.oid)
SELECT 'k', min(c.conrelid::regclass::text), c.conname, CASE c.confdeltype WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' ELSE 'SET DEFAULT' END
FROM pg_constraint c WHERE c.contype = 'f' AND c.confdeltype IN ('c', 'n', 'd') AND c.confrelid IN (SELECT oid FROM parts) GROUP BY c.conname, c.confdeltype
UNION ALL SELECT 't', min(g.tgrelid::regclass::text), g.tgname, NULL
FROM pg_trigger g WHERE NOT g.tgisinternal AND g.tgenabled <> 'D' AND g.tgtype & 8 = 8 AND g.tgrelid IN (SELECT oid FROM parts) GROUP BY g.tgname
UNION ALL SELECT 'r', r.ev_class::regclass::text, r.rulename, NULL
FROM pg_rewrite r WHERE r.ev_type = '4' AND r.ev_enabled <> 'D' AND r.ev_class IN (SELECT oid FROM parts)
ORDER BY 1, 2, 3";

/// Selects the foreign keys of other tables that prevent rows from being deleted, if the role may
/// read those tables; for each the name, its table, and the condition that others refer to a row of
/// the table. A key that is not enforced (PostgreSQL 18) prevents nothing.
const REFERRERS: &str = "\
WITH RECURSIVE parts(oid) AS (SELECT to_regclass($1)::oid UNION SELECT i.inhrelid FROM pg_inherits i JOIN parts p ON i.inhparent = p.oid)
SELECT c.conname, c.conrelid::regclass, format('EXISTS (SELECT FROM %s AS windrow_child WHERE %s)', c.conrelid::regclass,
  (SELECT string_agg(format('windrow_child.%I = %I.%I', x.attname, s.relname, y.attname), ' AND ' ORDER BY k.place)
    FROM unnest(c.conkey, c.confkey) WITH ORDINALITY AS k(own, other, place)
    JOIN pg_attribute x ON x.attrelid = c.conrelid AND x.attnum = k.own
    JOIN pg_attribute y ON y.attrelid = c.confrelid AND y.attnum = k.other))
FROM pg_constraint c JOIN pg_class s ON s.oid = to_regclass($1)
WHERE c.contype = 'f' AND c.confdeltype IN ('a', 'r') AND c.conparentid = 0 AND c.confrelid IN (SELECT oid FROM parts)
  AND c.conrelid NOT IN (SELECT oid FROM parts) AND has_table_privilege(c.conrelid, 'SELECT')
  AND to_jsonb(c) ->> 'conenforced' IS DISTINCT FROM 'false'
ORDER BY c.conrelid::regclass::text, c.conname";

/// A table's facts for a move.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    pub(super) table: TableFacts,
    /// The table's number.
    pub(super) oid: String,
    /// True if the rows are in several tables, so that a row's position (`ctid`) does not identify
    /// it.
    pub(super) parted: bool,
    /// The columns' types as SQL, in the order of the columns.
    pub(super) types: Vec<String>,
}

/// Returns a table's name as SQL.
pub(super) fn quoted(table: &TableName) -> String {
    let mut sql = String::new();
    push_table(&mut sql, table);
    sql
}

/// Looks a table up; `None` if there is none of that name.
///
/// # Errors
/// [`FaultClass::Unsupported`] if the name is that of a view or a foreign table; the server's
/// errors.
pub(super) async fn read(wire: &mut Wire, name: &TableName) -> Result<Option<Facts>, Fault> {
    let sql = quoted(name);
    let asks = [TABLE, COLUMNS, EFFECTS, REFERRERS, UNIQUES].map(|query| Ask::of(query).text(&sql));
    let (mut facts, mut kind) = (Facts::default(), None);
    talk(wire, &asks, false, &mut |at, row| {
        let word = |place| text(&row, place).unwrap_or_default();
        match at {
            0 => {
                kind = Some(word(1));
                facts.parted = word(2) == "t";
                facts.table.identity = format!("{}/{}", word(3), word(0));
                facts.oid = word(0);
            }
            1 => {
                if word(1) == "t" {
                    facts.table.generated.push(word(0).into());
                }
                if word(3) == "t" {
                    facts.table.required.push(word(0).into());
                }
                facts.table.columns.push(word(0).into());
                facts.types.push(word(2));
                let takes = takes(&word(4), &word(5)).map(|takes| (word(0).into(), takes));
                facts.table.takes.extend(takes);
            }
            2 => {
                let (table, name) = (word(1), word(2));
                facts.table.effects.push(match word(0).as_str() {
                    "k" => TableFacts::effect_of_key(&table, &name, &word(3)),
                    "t" => TableFacts::effect_of_trigger(&table, &name),
                    _ => format!("rule {name} of {table} (DELETE)").into(),
                });
            }
            3 => {
                let referrer = Referrer::new(&word(1), &word(0), word(2));
                facts.table.referrers.push(referrer);
            }
            _ => {
                let names: Vec<String> = serde_json::from_str(&word(1)).unwrap_or_default();
                let names: Vec<Name> = names.into_iter().map(Name::from).collect();
                if word(0) == "t" {
                    facts.table.key.clone_from(&names);
                }
                facts.table.uniques.push(names);
            }
        }
    })
    .await?;
    match kind.as_deref() {
        None => Ok(None),
        Some("r" | "p") => Ok(Some(facts)),
        Some(_) => Err(Fault::new(
            FaultClass::Unsupported,
            "0A000",
            format!(
                "{name} is no table, but a view or a foreign table: rows are moved between tables alone"
            ),
        )),
    }
}

/// Returns the form in which a column of this type takes values. `category`: the type's category,
/// as in `pg_type`.
fn takes(base: &str, category: &str) -> Option<Takes> {
    match (base, category) {
        ("bit" | "bit varying", _) => Some(Takes::Digits),
        ("bytea", _) => Some(Takes::Bytes),
        ("json" | "jsonb", _) => Some(Takes::Json),
        (_, "A") => Some(Takes::Array),
        (_, "S") => Some(Takes::Text),
        _ => None,
    }
}

impl Facts {
    /// Returns the type of a column, as SQL.
    pub(super) fn type_of(&self, column: &Name) -> &str {
        let place = self.table.columns.iter().position(|name| name == column);
        let found = place.and_then(|place| self.types.get(place));
        found.map_or("text", String::as_str)
    }
}
