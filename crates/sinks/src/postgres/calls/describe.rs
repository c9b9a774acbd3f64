//! Asking the server what a draft means: one round trip, one transaction.
//!
//! The statement is parsed first. That takes the lock that it will take when it runs, so nothing that follows can be
//! changed by others while it is read.

use postgres_protocol::message::frontend;
use windrow_core::{Draft, Signature};

use super::check::PRINT;

use crate::postgres::schema::{self, Fields};
use crate::postgres::table::{Facts, Print};
use crate::sql::quote::push_table;
use windrow_pgwire::wire::{Answer, Broken, ServerError, Wire};

/// What the table is. `{print}`: [`PRINT`].
const RELATION: &str = concat!(
    "SELECT c.oid, n.nspname, c.relname, c.relkind, ",
    "EXISTS (SELECT FROM pg_catalog.pg_rewrite r WHERE r.ev_class = c.oid), ",
    "c.relkind = 'r' AND EXISTS (SELECT FROM pg_catalog.pg_inherits i WHERE i.inhparent = c.oid), ",
    "current_setting('transaction_isolation'), current_setting('transaction_read_only'), ",
    "(current_schemas(true))[1], current_setting('client_encoding'), ",
    "array_to_string(o.oids, ' '), ",
    "{print}",
    // Triggers of somebody's own that may do more than look at their row, changed or not: write elsewhere, take from
    // sequences, notify. Texts and comments are taken out first. No backslash: it may mean an escape in a session's texts.
    ", EXISTS (SELECT FROM pg_catalog.pg_trigger g JOIN pg_catalog.pg_proc p ON p.oid = g.tgfoid ",
    "JOIN pg_catalog.pg_language l ON l.oid = p.prolang, ",
    "LATERAL (SELECT lower(regexp_replace(regexp_replace(p.prosrc, '''[^'']*''', '', 'g'), '--[^' || chr(10) || ']*', '', 'g'))) AS s(body) ",
    "WHERE g.tgrelid = ANY (o.oids) AND NOT g.tgisinternal AND l.lanname NOT IN ('c', 'internal') ",
    "AND (l.lanname <> 'plpgsql' OR s.body ~ '[[:<:]](insert|update|delete|merge|truncate|copy|execute|call|perform|notify|pg_notify|",
    "nextval|setval|currval|lastval|set_config|txid_current|pg_current_xact_id|pg_backend_pid|current_query)[[:>:]]' ",
    "OR EXISTS (SELECT FROM regexp_matches(s.body, '([a-z_][a-z0-9_$]*)[[:space:]]*[(]', 'g') AS m(part) ",
    "JOIN pg_catalog.pg_proc q ON q.proname = m.part[1] AND q.pronamespace <> 'pg_catalog'::regnamespace))), ",
    "EXISTS (SELECT FROM pg_catalog.pg_constraint f JOIN pg_catalog.pg_trigger g ON g.tgrelid = f.conrelid AND NOT g.tgisinternal ",
    "WHERE f.contype = 'f' AND f.confrelid = ANY (o.oids) AND (f.confdeltype IN ('c', 'n', 'd') OR f.confupdtype IN ('c', 'n', 'd'))), n.nspname = current_schema()",
    " FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace, ",
    "LATERAL (SELECT CASE WHEN c.relkind = 'p' ",
    "THEN ARRAY(SELECT p.relid::oid FROM pg_catalog.pg_partition_tree(c.oid) p) ELSE ARRAY[c.oid] END) AS o(oids) ",
    "WHERE c.oid = to_regclass($1)"
);

/// Where values of columns come from that are not given. A domain may have a default too.
const DEFAULTS: &str = "\
SELECT a.attname, coalesce(s.oid, 0),
  CASE WHEN a.attidentity <> '' THEN 'nextval(' || quote_literal(s.oid::regclass) || '::regclass)'
    ELSE coalesce(pg_get_expr(f.adbin, f.adrelid), t.typdefault) END,
  coalesce(has_sequence_privilege(s.oid, 'USAGE, UPDATE'), false),
  EXISTS (SELECT FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_proc p ON p.oid = d.refobjid
    JOIN pg_catalog.pg_language l ON l.oid = p.prolang
    WHERE d.classid = 'pg_catalog.pg_attrdef'::regclass AND d.objid = f.oid AND d.refclassid = 'pg_catalog.pg_proc'::regclass
      AND p.provolatile = 'v' AND l.lanname NOT IN ('c', 'internal'))
FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_catalog.pg_attrdef f ON f.adrelid = a.attrelid AND f.adnum = a.attnum
LEFT JOIN LATERAL (
  SELECT c.oid FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_class c ON c.oid = d.refobjid AND c.relkind = 'S'
  WHERE d.classid = 'pg_catalog.pg_attrdef'::regclass AND d.objid = f.oid AND d.refclassid = 'pg_catalog.pg_class'::regclass
  UNION ALL
  SELECT c.oid FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_class c ON c.oid = d.objid AND c.relkind = 'S'
  WHERE a.attidentity <> '' AND d.classid = 'pg_catalog.pg_class'::regclass AND d.refclassid = 'pg_catalog.pg_class'::regclass
    AND d.refobjid = a.attrelid AND d.refobjsubid = a.attnum AND d.deptype = 'i'
  LIMIT 1) s ON true
WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
  AND (f.oid IS NOT NULL OR a.attidentity <> '' OR t.typdefault IS NOT NULL)
ORDER BY a.attnum";

/// All functions of these names that a call could mean.
const FUNCTIONS: &str = "\
SELECT p.proname, p.pronamespace = 'pg_catalog'::regnamespace, p.provolatile, p.proretset OR p.prokind <> 'f'
FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
WHERE p.proname = ANY (string_to_array($1, chr(1))) AND n.nspname = ANY (current_schemas(true))";

/// What the server says of a draft.
#[derive(Debug, Default)]
pub(super) struct Sight {
    /// The types of its parameters.
    pub(super) parameters: Vec<u32>,
    /// The body of RowDescription, where it gives rows.
    pub(super) fields: Option<Box<[u8]>>,
    /// How many columns it gives.
    pub(super) width: u16,
    pub(super) relation: Option<Relation>,
    pub(super) defaults: Vec<ColumnDefault>,
    pub(super) functions: Vec<Function>,
    pub(super) facts: Option<Facts>,
}

impl Sight {
    /// The types of the statement.
    pub(super) fn signature(&self) -> Signature {
        Signature {
            parameters: self.parameters.as_slice().into(),
            fields: self.fields.clone(),
        }
    }
}

/// What a table is.
#[derive(Debug)]
pub(super) struct Relation {
    pub(super) oid: u32,
    pub(super) schema: Box<str>,
    pub(super) name: Box<str>,
    /// `pg_class.relkind`.
    pub(super) kind: u8,
    pub(super) has_rules: bool,
    /// Other tables inherit from it, and are updated with it.
    pub(super) has_heirs: bool,
    pub(super) isolation: Box<str>,
    pub(super) read_only: bool,
    /// The schema that is searched first.
    pub(super) first_schema: Box<str>,
    pub(super) encoding: Box<str>,
    pub(super) print: Print,
    /// Triggers may reach beyond their row.
    pub(super) triggers_reach: bool,
    /// A delete or update may reach tables with triggers.
    pub(super) cascades: bool,
}

/// The default of a column.
#[derive(Debug)]
pub(super) struct ColumnDefault {
    pub(super) column: Box<str>,
    /// The sequence that it takes from, or 0.
    pub(super) sequence: u32,
    pub(super) sql: Box<str>,
    /// The role may take from the sequence by itself.
    pub(super) may_take: bool,
    /// It calls a volatile function of somebody's own.
    pub(super) is_foreign: bool,
}

/// A function that a name may mean.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) name: Box<str>,
    pub(super) built_in: bool,
    /// `pg_proc.provolatile`.
    pub(super) volatile: u8,
    /// It gives sets, or is an aggregate or a window function.
    pub(super) is_odd: bool,
}

/// The types that the server gives a draft now. The same errors as [`ask`].
pub(super) async fn types_now(
    wire: &mut Wire,
    draft: &Draft,
) -> Result<Result<Signature, ServerError>, Broken> {
    let out = wire.out();
    let start = out.len();
    let types = draft.types.iter().copied();
    let parsed = frontend::parse("", &draft.text, types, out).is_ok()
        && frontend::describe(b'S', "", out).is_ok();
    if !parsed {
        out.truncate(start);
    }
    frontend::sync(out);
    let (mut signature, mut refused) = (Signature::default(), None);
    wire.exchange(1, &mut |answer| match answer {
        Answer::ParameterDescription(oids) => signature.parameters = oids.collect(),
        Answer::RowDescription(fields) => signature.fields = Some(fields.body().into()),
        Answer::Error(error) => refused = Some(error),
        _ => {}
    })
    .await?;
    Ok(refused.map_or(Ok(signature), Err))
}

/// Asks. `types`: the types that are declared for the parameters.
///
/// # Errors
/// Outside: the connection is lost. Inside: the server refuses the statement, or to say.
pub(super) async fn ask(
    wire: &mut Wire,
    draft: &Draft,
    types: &[u32],
) -> Result<Result<Sight, ServerError>, Broken> {
    let out = wire.out();
    let start = out.len();
    let parsed = frontend::parse("", &draft.text, types.iter().copied(), out).is_ok()
        && frontend::describe(b'S', "", out).is_ok();
    if !parsed {
        // What cannot be sent cannot be run either.
        out.truncate(start);
    }
    let mut quoted = String::new();
    push_table(&mut quoted, &draft.table);
    let names: Vec<&str> = draft.functions.iter().map(|name| &*name.table).collect();
    schema::ask(wire, &RELATION.replace("{print}", PRINT), &quoted);
    schema::ask(wire, DEFAULTS, &quoted);
    schema::ask(wire, FUNCTIONS, &names.join("\u{1}"));
    schema::append(wire, &quoted);
    frontend::sync(wire.out());
    let mut listener = Listener {
        spelling: quoted.into(),
        query: 0,
        sight: Sight::default(),
        schema: schema::Reader::new(&draft.table),
        error: None,
    };
    wire.exchange(1, &mut |answer| listener.hear(answer))
        .await?;
    Ok(listener.end())
}

struct Listener {
    spelling: Box<str>,
    query: usize,
    sight: Sight,
    schema: schema::Reader,
    error: Option<ServerError>,
}

impl Listener {
    fn hear(&mut self, answer: Answer<'_>) {
        if self.query > 2 {
            return self.schema.hear(answer);
        }
        match answer {
            Answer::ParameterDescription(oids) => self.sight.parameters = oids.collect(),
            Answer::RowDescription(fields) => {
                self.sight.width = u16::try_from(fields.len()).unwrap_or(u16::MAX);
                self.sight.fields = Some(fields.body().into());
            }
            Answer::DataRow(row) => self.row(&Fields(row)),
            Answer::CommandComplete(_) => self.query += 1,
            Answer::Error(error) => self.error = Some(error),
            _ => {}
        }
    }

    fn row(&mut self, row: &Fields<'_>) {
        match self.query {
            0 => self.sight.relation = Some(relation(row, &self.spelling)),
            1 => self.sight.defaults.push(ColumnDefault {
                column: row.text(0).into(),
                sequence: row.number(1),
                sql: row.text(2).into(),
                may_take: row.is(3),
                is_foreign: row.is(4),
            }),
            _ => self.sight.functions.push(Function {
                name: row.text(0).into(),
                built_in: row.is(1),
                volatile: row.byte(2),
                is_odd: row.is(3),
            }),
        }
    }

    fn end(self) -> Result<Sight, ServerError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let facts = self.schema.end()?;
        let mut sight = self.sight;
        if let (Some(facts), Some(relation)) = (facts, &sight.relation) {
            // However a statement spells it, a table is one.
            let name = windrow_core::TableName {
                schema: Some((*relation.schema).into()),
                table: (*relation.name).into(),
            };
            sight.facts = Some(Facts { name, ..facts });
        }
        Ok(sight)
    }
}

fn relation(row: &Fields<'_>, spelling: &str) -> Relation {
    let oids = row.text(10).split(' ');
    Relation {
        oid: row.number(0),
        schema: row.text(1).into(),
        name: row.text(2).into(),
        kind: row.byte(3),
        has_rules: row.is(4),
        has_heirs: row.is(5),
        isolation: row.text(6).into(),
        read_only: row.text(7) == "on",
        first_schema: row.text(8).into(),
        encoding: row.text(9).into(),
        print: Print {
            oids: oids.filter_map(|oid| oid.parse().ok()).collect(),
            table: row.text(11).into(),
            triggers: row.get(12).map(Into::into),
            columns: row.text(13).into(),
            spelling: spelling.into(),
            sheltered: row.is(16),
        },
        triggers_reach: row.is(14),
        cascades: row.is(15),
    }
}
