//! What is looked at behind the writes of a transaction, so that a description that is not true any
//! more can never lead to a wrong answer: the catalog's rows about a table and about all that its
//! proof relies on, by the transactions that wrote them. The writes hold locks by then, which keep
//! what is seen of the table until the commit.
//!
//! **To look takes the server as long as a write does, and hardly ever finds anything.** But the
//! server knows by itself when a table has changed: it analyzes and plans each prepared statement
//! anew that names the table's number as a constant (`extract_query_dependencies` in its source,
//! `src/backend/optimizer/plan/setrefs.c`). So a check holds a moment without a zone, which is read
//! in the session's time zone when a statement is analyzed. It is prepared in a zone that nobody
//! has. While the moment is still one of that zone, the server has been told of no change, and the
//! planner leaves out all that would be looked at. Once it is another one, the same statement looks
//! at everything, says so, and is prepared anew if nothing was found.
//!
//! A change is told to others before its locks are released, and they take note of it when they get
//! a lock themselves. So behind a write no change of its table goes unseen that came before it.

use postgres_protocol::escape::escape_literal;

use crate::catalog::table::{Print, Table};

/// What looks at a version of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Check {
    /// The version.
    pub(crate) version: u64,
    /// Also at the tables that an update or a delete may reach.
    changes: bool,
    /// It also asks what was taken from a sequence last, in front of what it has found.
    asks: bool,
}

/// What was taken from a sequence last.
pub(crate) const LASTVAL: &str = "pg_catalog.lastval()";

/// What a check says that has not failed (22012).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckResult {
    /// All is as it was.
    Alike,
    /// The same, but the server has been told of a change: each check looks at everything until it
    /// is prepared anew.
    Told,
    /// Nothing that matters has changed, but the table has got another file (TRUNCATE), so that
    /// what else changes with its row is not seen any more, or other chunks.
    Outdated,
}

impl CheckResult {
    /// The column of its row, as text.
    pub(crate) fn of(said: &[u8]) -> Self {
        match said {
            b"1" => Self::Alike,
            b"2" => Self::Told,
            _ => Self::Outdated,
        }
    }
}

/// Begins the transaction in which a check is prepared. In one that sees a single state, what came
/// before the check was prepared would go unseen.
pub(crate) const OPEN: &str =
    "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY; SET LOCAL TimeZone = '<windrow>-15:59'";

/// What the names of all zones hold that could be as far from Greenwich, as a minute has 60 seconds
/// there too. No place on earth is.
const FAR: [&str; 2] = ["59", "60"];

/// Whether the statement that holds it was analyzed in that zone.
const UNTOLD: &str =
    "pg_catalog.timestamptz '2000-01-01' = pg_catalog.timestamptz '1999-12-31 08:01+00'";

/// The transactions that wrote some rows of a catalog. `which`: behind WHERE.
fn written(catalog: &str, which: &str) -> String {
    format!(
        "(SELECT coalesce(sum(x.xmin::text::int8), 0) FROM pg_catalog.{catalog} x WHERE {which})"
    )
}

/// What the row of a table says that matters, without the transaction that wrote it: TRUNCATE
/// writes it too.
fn flags(class: &str) -> String {
    format!(
        "concat({class}.relkind, {class}.relnatts, {class}.relhasrules, {class}.relhastriggers, {class}.relhassubclass, \
         {class}.relrowsecurity, {class}.relforcerowsecurity)"
    )
}

/// Whether its policies count for the role, if it has row security: that does not depend on its row
/// alone.
fn secured(class: &str) -> String {
    format!("CASE WHEN {class}.relrowsecurity THEN pg_catalog.row_security_active({class}.oid) END")
}

fn parts(oids: &str) -> String {
    let of = |catalog, column| written(catalog, &format!("x.{column} = ANY ({oids})"));
    format!(
        "concat_ws(' ', (SELECT string_agg(concat({}, {}), '' ORDER BY x.oid) FROM pg_catalog.pg_class x \
         WHERE x.oid = ANY ({oids})), {}, {}, {}, {}, {})",
        flags("x"),
        secured("x"),
        of("pg_attribute", "attnum > 0 AND x.attrelid"),
        of("pg_trigger", "tgrelid"),
        of("pg_inherits", "inhparent"),
        of("pg_index", "indrelid"),
        of("pg_constraint", "contype = 'c' AND x.conrelid"),
    )
}

fn triggers(oid: &str) -> String {
    written("pg_trigger", &format!("x.tgrelid = {oid}"))
}

fn columns(oid: &str) -> String {
    written(
        "pg_attribute",
        &format!("x.attrelid = {oid} AND x.attnum > 0"),
    )
}

/// Its checks, where another file is no proof that the row has been written for that alone.
fn checks(oid: &str) -> String {
    let checks = written(
        "pg_constraint",
        &format!("x.conrelid = {oid} AND x.contype = 'c'"),
    );
    format!("{checks}::text")
}

/// The second condition holds always. It lets the planner take the index in a small catalog too:
/// reading all of that takes longer than all the rest.
fn indexes(oid: &str) -> String {
    written(
        "pg_index",
        &format!("x.indrelid = {oid} AND x.xmin::text::int8 > 0"),
    )
}

fn heirs(oid: &str) -> String {
    written("pg_inherits", &format!("x.inhparent = {oid}"))
}

/// Returns the eight columns of a query that make a [`Print`]: what is said of the table, of its
/// triggers, of its columns; the transaction that wrote the table's row, with what stands in it,
/// the table's file, the tables, whether any of them has row security, and what is said of its
/// heirs. The table is `c`, its parts are `o.oids`.
pub(crate) fn print() -> String {
    format!(
        "CASE WHEN cardinality(o.oids) > 1 THEN {} ELSE concat_ws(' ', {}, {}) END, \
         CASE WHEN cardinality(o.oids) = 1 AND c.relhastriggers THEN {} END, {}, \
         concat_ws(' ', c.xmin, {}, {}), c.relfilenode::text, array_to_string(o.oids, ' '), \
         EXISTS (SELECT FROM pg_catalog.pg_class x WHERE x.oid = ANY (o.oids) AND x.relrowsecurity), {}::text",
        parts("o.oids"),
        secured("c"),
        indexes("c.oid"),
        triggers("c.oid"),
        columns("c.oid"),
        checks("c.oid"),
        flags("c"),
        heirs("c.oid"),
    )
}

impl Check {
    /// What looks at a table; `None`: its database tells no such thing. `changes`: also at the
    /// tables that an update or a delete may reach.
    pub(crate) fn of(table: &Table, changes: bool) -> Option<Self> {
        let print = table.print.as_ref()?;
        Some(Self {
            version: table.version,
            changes: (changes || print.relied.routes) && !print.relied.others.is_empty(),
            asks: false,
        })
    }

    /// The same, which also asks what was taken from a sequence last.
    pub(crate) fn asking(self) -> Self {
        Self { asks: true, ..self }
    }

    /// Its statement, to be prepared behind [`OPEN`]. Fails (22012) where something that matters
    /// has changed; else it gives what [`CheckResult`] reads. `zone`: the session's own.
    ///
    /// Whether policies count for a role depends on more than tables, so where there are any,
    /// everything is looked at each time.
    pub(crate) fn sql(self, print: &Print, zone: Option<&str>) -> String {
        let whole = self.whole(print);
        let far = |zone: &str| FAR.iter().any(|minutes| zone.contains(minutes));
        let found = match print.secured || zone.is_none_or(far) {
            true => format!("({whole})"),
            false => format!(
                "CASE WHEN {UNTOLD} THEN {} ELSE 1 + ({whole}) END",
                lean(print)
            ),
        };
        match self.asks {
            // The one is read in binary form, in which a text is itself.
            true => format!("SELECT {LASTVAL}, ({found})::text"),
            false => format!("SELECT {found}"),
        }
    }

    /// The statement that looks at everything. It names each table by a constant of its own:
    /// changes of these have the server analyze it anew. The condition on them holds always.
    pub(crate) fn whole(self, print: &Print) -> String {
        let table = oid(print.oid().unwrap_or_default());
        // Without its own row: a partitioned table has no file, and its parts' rows are among the
        // pieces.
        let row = match print.oids.len() > 1 {
            true => "true".to_owned(),
            false => same_row(print, &table),
        };
        let others = print.relied.others.iter().filter(|_| self.changes);
        let named: Vec<String> = print.oids.iter().chain(others).copied().map(oid).collect();
        format!(
            "SELECT 1 / ((concat_ws(' ', {}) = {} AND {row} AND {}) IS TRUE)::int \
             + 2 * (c.relfilenode::text <> {} OR {})::int \
             FROM (SELECT {}) AS o(oids) LEFT JOIN pg_catalog.pg_class c ON c.oid = {table} \
             WHERE {} NOT IN ({})",
            self.pieces(print, &table).join(", "),
            escape_literal(&self.expected(print)),
            is_meant(print, &table),
            escape_literal(&print.file),
            other_chunks(print, &table),
            list(&print.oids),
            oid(0),
            named.join(", "),
        )
    }

    /// What is compared.
    fn pieces(self, print: &Print, table: &str) -> Vec<String> {
        let mut pieces = match print.oids.len() > 1 {
            true => vec![parts("o.oids")],
            false => {
                let triggers = print.triggers.as_ref().map(|_| triggers(table));
                let mut pieces = vec![secured("c"), indexes(table)];
                pieces.extend(triggers);
                pieces.push(columns(table));
                pieces.extend((!print.relied.routes).then(|| heirs(table)));
                pieces
            }
        };
        pieces.extend(relied(print));
        if self.changes {
            let others = format!("ANY ({})", list(&print.relied.others));
            pieces.push(written("pg_class", &format!("x.oid = {others}")));
            pieces.push(written("pg_trigger", &format!("x.tgrelid = {others}")));
            pieces.push(written("pg_inherits", &format!("x.inhparent = {others}")));
        }
        pieces
    }

    /// What they were, joined by blanks.
    fn expected(self, print: &Print) -> String {
        let whole = print.oids.len() == 1;
        let triggers = print.triggers.as_deref().filter(|_| whole);
        let columns = Some(&*print.columns).filter(|_| whole);
        let heirs = Some(&*print.heirs).filter(|_| whole && !print.relied.routes);
        let relied = relies(print).then_some(&*print.relied.written);
        let others = self.changes.then_some(&*print.relied.reached);
        let all = [
            Some(&*print.table),
            triggers,
            columns,
            heirs,
            relied,
            others,
        ];
        all.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

/// What is looked at each time: which table is meant by the name, and what the server does not
/// analyze statements anew for.
fn lean(print: &Print) -> String {
    let table = oid(print.oid().unwrap_or_default());
    let meant = is_meant(print, &table);
    let relied = match relies(print) {
        true => format!(
            "concat_ws(' ', {}) = {}",
            relied(print).join(", "),
            escape_literal(&print.relied.written)
        ),
        false => "true".to_owned(),
    };
    format!("1 / (({meant} AND {relied}) IS TRUE)::int")
}

/// Returns the condition that a hypertable has other chunks than were looked at. An insert may have
/// made them itself, so what it has written is true all the same.
fn other_chunks(print: &Print, table: &str) -> String {
    match print.relied.routes && print.oids.len() == 1 {
        true => format!("{}::text <> {}", heirs(table), escape_literal(&print.heirs)),
        false => "false".to_owned(),
    }
}

fn is_meant(print: &Print, table: &str) -> String {
    format!("to_regclass({}) = {table}", escape_literal(&print.spelling))
}

/// Whether it is still the row that was read, but for what TRUNCATE writes.
fn same_row(print: &Print, table: &str) -> String {
    let written = escape_literal(&print.written);
    let (by, _) = print.written.split_once(' ').unwrap_or_default();
    let by = escape_literal(by);
    format!(
        "(c.xmin::text = {by} OR c.relfilenode::text <> {} AND concat_ws(' ', {by}, {}, {}) = {written})",
        escape_literal(&print.file),
        checks(table),
        flags("c")
    )
}

/// Whether functions and domains of somebody's own are relied on.
fn relies(print: &Print) -> bool {
    !print.relied.functions.is_empty() || !print.relied.domains.is_empty()
}

fn relied(print: &Print) -> Vec<String> {
    if !relies(print) {
        return Vec::new();
    }
    let any = |oids| format!("ANY ({})", list(oids));
    let (functions, domains) = (any(&print.relied.functions), any(&print.relied.domains));
    vec![
        written("pg_proc", &format!("x.oid = {functions}")),
        written("pg_type", &format!("x.oid = {domains}")),
        written("pg_constraint", &format!("x.contypid = {domains}")),
    ]
}

/// A constant of its type from the beginning: a number that is cast is one only once it is planned.
fn oid(oid: u32) -> String {
    format!("pg_catalog.oid '{oid}'")
}

fn list(oids: &[u32]) -> String {
    let oids: Vec<String> = oids.iter().map(u32::to_string).collect();
    format!("'{{{}}}'::pg_catalog.oid[]", oids.join(","))
}
