//! Reads a table's description from the catalog.

mod plain;

use std::sync::Arc;

use postgres_protocol::Oid;
use postgres_protocol::message::frontend;
use windrow_core::TableName;
use windrow_database::quote::push_table;

use super::ask::{Fields, ask, ask_of};
use super::check;
use super::column::{Column, Kind};
use super::table::{Condition, Facts, NO_VALUE_YET, OURS, Print, ReferredKey, Test, Unique};
use crate::dialect::{Dialect, POSTGRES};
use windrow_pgwire::wire::{Answer, Broken, ServerError, Wire};
use windrow_proof::{Catalog, Relied};

/// Fails if there is no such table, so that the server skips the queries after it. Their texts
/// alone take the server some milliseconds, and other clients would wait for that time whenever a
/// client names a table that does not exist.
const EXISTS: &str = "SELECT CAST($1 AS pg_catalog.regclass)";

/// The SQLSTATEs of a table, or a schema, that does not exist.
const NOT_THERE: [&str; 2] = ["42P01", "3F000"];

/// Facts of the table. Partitions may have triggers of their own, or be foreign tables. `{print}`:
/// [`check::print`].
const TABLE: &str = "\
SELECT c.relkind IN ('r', 'p')
    AND NOT EXISTS (SELECT FROM pg_constraint f WHERE f.conrelid = c.oid AND f.contype = 'f' AND f.confrelid = c.oid)
    AND NOT EXISTS (SELECT FROM pg_partition_tree(c.oid) p JOIN pg_class pc ON pc.oid = p.relid WHERE pc.relkind NOT IN ('r', 'p')),
  EXISTS (SELECT FROM pg_trigger g WHERE NOT g.tgisinternal
      AND (g.tgrelid = c.oid OR g.tgrelid IN (SELECT relid FROM pg_partition_tree(c.oid))))
    OR EXISTS (SELECT FROM pg_rewrite r WHERE r.ev_class = c.oid),
  EXISTS (SELECT FROM pg_constraint f WHERE f.confrelid = c.oid AND f.contype = 'f'),
  coalesce(obj_description(c.oid, 'pg_class'), ''), {print}, c.relkind IN ('r', 'p', 'm'),
  c.relkind = 'r' AND NOT c.relispartition,
  EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indislive
      AND (i.indpred IS NOT NULL OR i.indexprs IS NOT NULL OR i.indisexclusion OR NOT i.indisvalid)),
  (SELECT string_agg(DISTINCT k.attnum::text, ' ') FROM pg_index i, unnest(i.indkey::int2[]) AS k(attnum)
    WHERE i.indrelid = c.oid AND i.indislive AND k.attnum > 0)
FROM pg_class c, LATERAL (SELECT CASE WHEN c.relkind = 'p'
    THEN ARRAY(SELECT p.relid::oid FROM pg_partition_tree(c.oid) p) ELSE ARRAY[c.oid] END) AS o(oids)
WHERE c.oid = to_regclass($1)";

/// Selects the columns. A domain is followed to its base type. A sequence that a default takes from
/// is identified by its number, because another sequence may have its name later.
const COLUMNS: &str = "\
SELECT a.attname, a.attnum, a.atttypid, a.atttypmod, b.oid, b.typarray, b.typtype,
  coalesce(e.oid, 0), e.typtype,
  b.typdelim, coalesce(e.typdelim, ','), format_type(b.oid, NULL),
  greatest(a.atttypmod, d.typmod), a.attnotnull OR d.not_null,
  a.atthasdef OR a.attidentity <> '' OR d.has_default,
  CASE WHEN a.attgenerated <> '' THEN NULL
    WHEN a.attidentity <> '' OR s.oid IS NOT NULL
        AND pg_get_expr(f.adbin, f.adrelid) ~ '^nextval[(]''([^'']|'''')*''::regclass[)]$'
      THEN format('nextval(''%s''::regclass)', s.oid)
    ELSE coalesce(pg_get_expr(f.adbin, f.adrelid), t.typdefault) END,
  a.attgenerated <> '' OR a.attidentity = 'a', a.attidentity <> '',
  coalesce(l.collisdeterministic, true),
  (SELECT json_agg(n.enumlabel ORDER BY n.enumsortorder) FROM pg_enum n
    WHERE n.enumtypid IN (b.oid, e.oid)),
  coalesce(col_description(a.attrelid, a.attnum), ''),
  has_column_privilege(a.attrelid, a.attnum, 'INSERT'), coalesce(s.oid, 0),
  coalesce(has_sequence_privilege(s.oid, 'USAGE, UPDATE'), false),
  coalesce(has_sequence_privilege(s.oid, 'USAGE, SELECT'), true),
  has_column_privilege(a.attrelid, a.attnum, 'SELECT'),
  CASE WHEN t.typtype IN ('b', 'e') AND coalesce(e.typtype, 'b') IN ('b', 'e')
      AND t.typsend::oid <> 0 AND t.typreceive::oid <> 0
    THEN (SELECT format('%I.%I', n.nspname, t.typname) FROM pg_namespace n WHERE n.oid = t.typnamespace) END,
  has_column_privilege(a.attrelid, a.attnum, 'UPDATE'),
  (SELECT format('%I.%I', n.nspname, l.collname) FROM pg_namespace n
    WHERE n.oid = l.collnamespace AND l.oid <> t.typcollation),
  CASE WHEN a.attlen >= 0 THEN (a.attlen + 7) / 8 * 8 WHEN a.attstorage = 'p' THEN 8192 ELSE 24 END,
  coalesce((SELECT q.seqcycle FROM pg_sequence q WHERE q.seqrelid = s.oid), false)
FROM pg_attribute a
JOIN pg_type t ON t.oid = a.atttypid
JOIN LATERAL (
  WITH RECURSIVE chain AS (
    SELECT t.oid, t.typtype, t.typbasetype, t.typtypmod, t.typnotnull, t.typdefault FROM pg_type t WHERE t.oid = a.atttypid
    UNION ALL
    SELECT t.oid, t.typtype, t.typbasetype, t.typtypmod, t.typnotnull, t.typdefault
    FROM chain JOIN pg_type t ON t.oid = chain.typbasetype WHERE chain.typtype = 'd')
  SELECT max(chain.oid) FILTER (WHERE chain.typtype <> 'd') AS base, max(chain.typtypmod) AS typmod,
    bool_or(chain.typnotnull) AS not_null, bool_or(chain.typdefault IS NOT NULL) AS has_default FROM chain) d ON true
JOIN pg_type b ON b.oid = d.base
LEFT JOIN pg_type e ON e.oid = b.typelem AND e.typarray = b.oid
LEFT JOIN pg_attrdef f ON f.adrelid = a.attrelid AND f.adnum = a.attnum
LEFT JOIN LATERAL (
  SELECT c.oid FROM pg_depend n JOIN pg_class c ON c.oid = n.refobjid AND c.relkind = 'S'
  WHERE n.classid = 'pg_attrdef'::regclass AND n.objid = f.oid AND n.refclassid = 'pg_class'::regclass
  UNION ALL
  SELECT c.oid FROM pg_depend n JOIN pg_class c ON c.oid = n.objid AND c.relkind = 'S'
  WHERE a.attidentity <> '' AND n.classid = 'pg_class'::regclass AND n.refclassid = 'pg_class'::regclass
    AND n.refobjid = a.attrelid AND n.refobjsubid = a.attnum AND n.deptype = 'i'
  LIMIT 1) s ON true
LEFT JOIN pg_collation l ON l.oid = a.attcollation
WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum";

/// Unique indexes and exclusion constraints.
const UNIQUES: &str = "\
SELECT i.indisprimary, i.indimmediate,
  i.indpred IS NOT NULL OR i.indexprs IS NOT NULL OR i.indisexclusion OR NOT i.indisvalid,
  (SELECT string_agg(k.attnum::text, ' ' ORDER BY k.place)
    FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, place) WHERE k.place <= i.indnkeyatts),
  i.indisexclusion AND i.indpred IS NULL AND i.indexprs IS NULL AND EXISTS
    (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid AND c.conrelid = i.indrelid AND c.contype IN ('p', 'u')),
  (SELECT string_agg(x.attnum::text, ' ') FROM (SELECT unnest(i.indkey::int2[])
    UNION SELECT d.refobjsubid FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid
      AND d.refclassid = 'pg_class'::regclass AND d.refobjid = i.indrelid) AS x(attnum) WHERE x.attnum > 0)
FROM pg_index i
WHERE i.indrelid = to_regclass($1) AND i.indislive AND (i.indisunique OR i.indisexclusion)
ORDER BY i.indisprimary DESC, i.indexrelid";

/// Turns off JIT compilation until the transaction ends: in a database of many tables the server
/// estimates the proof's query to be so expensive that compiling it would take seconds.
const NOT_COMPILED: &str = "SELECT pg_catalog.set_config('jit', 'off', true)";

/// Checks and foreign keys.
const CONDITIONS: &str = "\
SELECT array_to_string(c.conkey, ' '), coalesce(pg_get_expr(c.conbin, c.conrelid), ''),
  CASE WHEN c.contype = 'f' THEN c.confrelid::regclass::text END,
  (SELECT json_agg(a.attname ORDER BY k.place) FROM unnest(c.confkey) WITH ORDINALITY AS k(attnum, place)
    JOIN pg_attribute a ON a.attrelid = c.confrelid AND a.attnum = k.attnum),
  c.confrelid, coalesce(array_to_string(c.confkey, ' '), ''), c.condeferred
FROM pg_constraint c
WHERE c.conrelid = to_regclass($1) AND c.contype IN ('c', 'f')
ORDER BY c.oid";

/// Reads a table, with the proof that decides what its writes may share; `None` if there is no
/// table of that name. Takes one round trip, or two if the catalog is a plain one. Must not run
/// within a transaction: a missing table would abort it.
///
/// # Errors
/// Outer: the connection is lost. Inner: the server's error.
pub(crate) async fn read(
    wire: &mut Wire,
    name: &TableName,
    dialect: &'static Dialect,
) -> Result<Result<Option<Facts>, ServerError>, Broken> {
    read_as(wire, name, dialect, true).await
}

/// Reads a table for a caller that joins no writes: without the proof, which takes the server
/// longer than all the rest. A missing table causes no error, so this may run within a transaction.
///
/// # Errors
/// As [`read`].
pub(crate) async fn read_unproven(
    wire: &mut Wire,
    name: &TableName,
    dialect: &'static Dialect,
) -> Result<Result<Option<Facts>, ServerError>, Broken> {
    read_as(wire, name, dialect, false).await
}

async fn read_as(
    wire: &mut Wire,
    name: &TableName,
    dialect: &'static Dialect,
    proven: bool,
) -> Result<Result<Option<Facts>, ServerError>, Broken> {
    let mut quoted = String::new();
    push_table(&mut quoted, name);
    let mut read = if dialect.plain_catalog {
        plain::read(wire, name, &quoted, dialect).await?
    } else {
        read_whole(wire, name, &quoted, proven).await?
    };
    if let Ok(Some(facts)) = &mut read
        && is_zoned(wire)
    {
        leave_moments(&mut facts.columns);
    }
    Ok(read)
}

async fn read_whole(
    wire: &mut Wire,
    name: &TableName,
    quoted: &str,
    proven: bool,
) -> Result<Result<Option<Facts>, ServerError>, Broken> {
    if proven {
        ask(wire, EXISTS, quoted);
    }
    append(wire, quoted);
    if proven {
        append_proof(wire, quoted, "");
    }
    frontend::sync(wire.out());
    let (mut reader, mut exists) = (SchemaReader::new(name, quoted), !proven);
    wire.exchange(1, &mut |answer| match answer {
        Answer::DataRow(_) if !exists => {}
        Answer::CommandComplete(_) if !exists => exists = true,
        answer => reader.take(answer),
    })
    .await?;
    Ok(match reader.end() {
        Err(error) if !exists && NOT_THERE.contains(&&*error.code) => Ok(None),
        read => read,
    })
}

/// Names of the time zone UTC. In such a session a text without a zone is read as UTC.
const UTC: [&str; 6] = ["UTC", "Etc/UTC", "GMT", "Etc/GMT", "UCT", "Universal"];

/// Returns true if the session's time zone, in which texts without a zone are read, is not UTC.
fn is_zoned(wire: &Wire) -> bool {
    wire.parameter("TimeZone")
        .is_some_and(|zone| !UTC.contains(&zone))
}

/// Leaves points in time to the server, like values of types that are unknown here.
fn leave_moments(columns: &mut [Column]) {
    for column in columns.iter_mut().filter(|c| c.kind == Kind::Timestamptz) {
        column.kind = Kind::Other;
        column.form = column.kind.array_form();
    }
}

/// Appends the queries about a table that has this name in SQL.
pub(crate) fn append(wire: &mut Wire, quoted: &str) {
    ask(wire, &TABLE.replace("{print}", &check::print()), quoted);
    for sql in [COLUMNS, UNIQUES, CONDITIONS] {
        ask(wire, sql, quoted);
    }
}

/// The place of the proof's query among those of a table.
const PROOF: usize = 5;

/// Appends the queries for the table's proof after those of [`append`]. `words`: words of a
/// statement on the table that may name types.
pub(crate) fn append_proof(wire: &mut Wire, quoted: &str, words: &str) {
    ask_of(wire, NOT_COMPILED, super::column::oid::TEXT, &[]);
    ask_of(
        wire,
        windrow_proof::TABLE,
        super::column::oid::TEXT,
        &[quoted, words],
    );
}

/// Puts the rows of the queries together.
pub(crate) struct SchemaReader {
    query: usize,
    facts: Facts,
    places: Vec<i16>,
    found: bool,
    error: Option<ServerError>,
    proof: Catalog,
    spelling: Box<str>,
    /// Numbers of the columns that indexes hold, separated by blanks.
    indexed: Box<str>,
}

impl SchemaReader {
    /// Makes a reader of the answers about a table. `quoted`: the name in the queries, as SQL.
    pub(crate) fn new(name: &TableName, quoted: &str) -> Self {
        Self {
            proof: Catalog::default(),
            spelling: quoted.into(),
            indexed: Box::default(),
            query: 0,
            facts: Facts::unread(name, &POSTGRES),
            places: Vec::new(),
            found: false,
            error: None,
        }
    }

    pub(crate) fn take(&mut self, answer: Answer<'_>) {
        match answer {
            Answer::DataRow(row) => {
                let row = Fields(row);
                match self.query {
                    0 => self.table(&row),
                    1 => self.column(&row),
                    2 => self.unique(&row),
                    3 => self.condition(&row),
                    _ => self.proof.take(|place| row.get(place)),
                }
            }
            Answer::CommandComplete(_) => self.query += 1,
            Answer::Error(error) => self.error = Some(error),
            _ => {}
        }
    }

    pub(crate) fn end(mut self) -> Result<Option<Facts>, ServerError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let indexed = self.indexed.split(' ');
        let places = indexed.filter_map(|number| self.places_of(number));
        let places: Vec<usize> = places.flatten().collect();
        self.facts.indexed = places.into();
        // Without a query for the proof, `relied` must stay unset: an empty proof would mean that
        // the query found nothing that matters.
        if self.query > PROOF {
            if let Some(print) = &mut self.facts.print {
                print.relied = self.proof.relied();
            }
            self.facts.proof = Some(Arc::new(self.proof));
        }
        Ok(self.found.then_some(self.facts))
    }

    fn table(&mut self, row: &Fields<'_>) {
        self.found = true;
        self.facts.has_hooks = row.is(1);
        self.facts.fuses = row.is(0);
        self.facts.referenced = row.is(2);
        // The table's foreign keys come after its columns.
        self.facts.refers = false;
        self.facts.ours = row.text(3) == OURS;
        self.facts.lists_keys = row.is(12);
        self.facts.has_other_conditions = false;
        self.facts.is_ordinary = row.is(13);
        self.facts.has_odd_indexes = row.is(14);
        self.indexed = row.text(15).into();
        self.facts.print = Some(Print {
            table: row.text(4).into(),
            triggers: row.get(5).map(Into::into),
            columns: row.text(6).into(),
            written: row.text(7).into(),
            file: row.text(8).into(),
            oids: row
                .text(9)
                .split(' ')
                .filter_map(|oid| oid.parse().ok())
                .collect(),
            secured: row.is(10),
            heirs: row.text(11).into(),
            relied: Relied::default(),
            spelling: self.spelling.clone(),
        });
    }

    fn column(&mut self, row: &Fields<'_>) {
        self.places.push(row.number(1));
        let kind = kind(row);
        let column = Column {
            name: row.text(0).into(),
            number: row.number(1),
            type_oid: row.number(2),
            typmod: row.number(3),
            form: kind.array_form(),
            kind,
            array_oid: row.number(5),
            base_oid: row.number(4),
            delimiter: row.byte(9),
            type_name: row.text(11).to_owned(),
            narrowed: row.number(12),
            not_null: row.is(13),
            has_default: row.is(14),
            default: row.get(15).map(str::to_owned),
            always_generated: row.is(16),
            identity: row.is(17),
            bytewise: row.is(18),
            no_value_yet: row.text(20) == NO_VALUE_YET,
            is_stamped: false,
            may_give: row.is(21),
            sequence: row.number(22),
            may_take: row.is(23),
            may_look: row.is(24),
            may_read: row.is(25),
            cast: row.get(26).map(Into::into),
            may_change: row.is(27),
            collation: row.get(28).map(Into::into),
            row_bytes: row.number(29),
            repeats: row.is(30),
        };
        self.facts.columns.push(column.with_stamp());
    }

    fn unique(&mut self, row: &Fields<'_>) {
        match self.places_of(row.text(3)) {
            Some(columns) if row.is(4) && row.is(1) => {
                self.hidden_unique(row);
                self.facts.temporal_keys.push(columns);
            }
            Some(columns) if !row.is(2) => {
                let immediate = row.is(1);
                self.facts.hidden_unique |= !immediate;
                self.facts.uniques.push(Unique {
                    columns,
                    primary: row.is(0),
                    immediate,
                });
            }
            _ => self.hidden_unique(row),
        }
    }

    /// Notes a unique index that is not described in `uniques`, with the columns that it depends
    /// on.
    fn hidden_unique(&mut self, row: &Fields<'_>) {
        self.facts.hidden_unique = true;
        let numbers = row.text(5).split(' ');
        let places = numbers.filter_map(|number| self.places_of(number));
        let places: Vec<usize> = places.flatten().collect();
        self.facts.hidden_columns.extend(places);
    }

    fn condition(&mut self, row: &Fields<'_>) {
        self.facts.refers |= row.get(2).is_some();
        let Some(columns) = self.places_of(row.text(0)) else {
            // The whole row, or no column at all.
            self.facts.has_other_conditions = true;
            return;
        };
        let test = match row.get(2) {
            None => Test::Check(row.text(1).to_owned()),
            Some(table) => {
                let names = serde_json::from_str(row.text(3)).unwrap_or_default();
                let numbers = row.text(5).split(' ');
                let target = ReferredKey {
                    table: row.number(4),
                    columns: numbers.filter_map(|number| number.parse().ok()).collect(),
                    is_deferred: row.is(6),
                };
                Test::Reference(table.to_owned(), names, target)
            }
        };
        self.facts.conditions.push(Condition { columns, test });
    }

    /// Returns the places of columns given by their numbers, separated by blanks. An expression has
    /// the number 0.
    fn places_of(&self, numbers: &str) -> Option<Box<[usize]>> {
        let place = |number: &str| {
            let number: i16 = number.parse().ok()?;
            self.places.iter().position(|place| *place == number)
        };
        numbers.split(' ').map(place).collect()
    }
}

fn kind(row: &Fields<'_>) -> Kind {
    let element: Oid = row.number(7);
    if element != 0 {
        let inner = simple_kind(element, row.byte(8), row);
        return Kind::Array(Box::new(inner), row.byte(10));
    }
    simple_kind(row.number(4), row.byte(6), row)
}

/// Returns the kind of a type that is not an array. `typtype`: `b` base, `c` composite, `e` enum,
/// and others.
fn simple_kind(type_oid: Oid, typtype: u8, row: &Fields<'_>) -> Kind {
    match typtype {
        b'e' => {
            let labels: Vec<Box<str>> = serde_json::from_str(row.text(19)).unwrap_or_default();
            Kind::Enum(Arc::from(labels))
        }
        b'c' => Kind::Composite,
        _ => Kind::of(type_oid),
    }
}
