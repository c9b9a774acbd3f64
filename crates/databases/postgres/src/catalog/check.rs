//! The check that runs after the writes of a transaction, so that an outdated description can never
//! lead to a wrong answer. The check compares the catalog's rows about a table, and about all that
//! the table's proof relies on, by the transactions that wrote them. The writes hold locks by then,
//! so what the check sees of the table stays true until the commit.
//!
//! **A full check takes the server as long as a write does, and hardly ever finds a change.** But
//! the server itself knows when a table has changed: it analyzes and plans a prepared statement
//! again if the statement names the table's number as a constant (`extract_query_dependencies` in
//! PostgreSQL's source, `src/backend/optimizer/plan/setrefs.c`). So a check contains a moment
//! without a zone, which the server reads in the session's time zone when it analyzes the
//! statement. Windrow prepares the check in a time zone that no session has. As long as the moment
//! is one of that zone, the server has seen no change, and the planner leaves out the full
//! comparison. Once the moment is another one, the same statement compares everything, and reports
//! that it did. If nothing has changed, Windrow then prepares the check again.
//!
//! The server announces a change to other sessions before the change's locks are released, and a
//! session takes note of it when it gets a lock itself. So after a write, the check sees each
//! earlier change of the written table.

use postgres_protocol::escape::escape_literal;

use crate::catalog::table::{Print, Table};

/// The check of one version of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Check {
    /// The version of the table's description.
    pub(crate) version: u64,
    /// True if the check also covers the tables that an update or a delete may reach.
    changes: bool,
    /// True if the check also selects the last value taken from a sequence, before its own result.
    asks: bool,
}

/// An SQL expression: the value that the session took from a sequence last.
pub(crate) const LASTVAL: &str = "pg_catalog.lastval()";

/// The result of a check that did not fail (22012).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckResult {
    /// Nothing has changed.
    Alike,
    /// Nothing that matters has changed, but the server has analyzed the check again after a
    /// change: each check compares everything until it is prepared again.
    Irrelevant,
    /// Nothing that matters has changed, but the table has another file (TRUNCATE) or other chunks.
    /// After TRUNCATE, other changes of the table's row are no longer seen.
    Outdated,
}

impl CheckResult {
    /// Reads the result from the column of the check's row, as text.
    pub(crate) fn of(said: &[u8]) -> Self {
        match said {
            b"1" => Self::Alike,
            b"2" => Self::Irrelevant,
            _ => Self::Outdated,
        }
    }
}

/// Begins the transaction in which a check is prepared. In a transaction with a single snapshot,
/// changes made before the check was prepared would not be noticed.
pub(crate) const OPEN: &str =
    "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY; SET LOCAL TimeZone = '<windrow>-15:59'";

/// Substrings of time zone names: every zone that could have the same offset from UTC as the one in
/// [`OPEN`] has one of them in its name, because the offset may also be spelled with 60 seconds. No
/// place on earth has this offset.
const FAR: [&str; 2] = ["59", "60"];

/// An SQL condition: true if the statement that contains it was analyzed in the time zone of
/// [`OPEN`].
const UNTOLD: &str =
    "pg_catalog.timestamptz '2000-01-01' = pg_catalog.timestamptz '1999-12-31 08:01+00'";

/// Returns an SQL expression: the sum of the numbers of the transactions that wrote some rows of a
/// catalog. `which`: the condition after WHERE.
fn written(catalog: &str, which: &str) -> String {
    format!(
        "(SELECT coalesce(sum(x.xmin::text::int8), 0) FROM pg_catalog.{catalog} x WHERE {which})"
    )
}

/// Returns an SQL expression: the parts of a table's row that matter, without the transaction that
/// wrote the row, because TRUNCATE writes it too.
fn flags(class: &str) -> String {
    format!(
        "concat({class}.relkind, {class}.relnatts, {class}.relhasrules, {class}.relhastriggers, {class}.relhassubclass, \
         {class}.relrowsecurity, {class}.relforcerowsecurity)"
    )
}

/// Returns an SQL expression: true if the table's policies apply to the role, NULL if the table has
/// no row security. The answer does not depend on the table's row alone.
fn secured(class: &str) -> String {
    format!("CASE WHEN {class}.relrowsecurity THEN pg_catalog.row_security_active({class}.oid) END")
}

fn parts(oids: &str) -> String {
    let of = |catalog, column| written(catalog, &format!("x.{column} = ANY ({oids})"));
    format!(
        "concat_ws(' ', (SELECT string_agg(concat({}, {}), '' ORDER BY x.oid) FROM pg_catalog.pg_class x \
         WHERE x.oid = ANY ({oids})), {}, {}, {}, {}, {}, {})",
        flags("x"),
        secured("x"),
        of("pg_attribute", "attnum > 0 AND x.attrelid"),
        of("pg_trigger", "tgrelid"),
        of("pg_inherits", "inhparent"),
        of("pg_index", "indrelid"),
        of("pg_constraint", "contype = 'c' AND x.conrelid"),
        of("pg_rewrite", "ev_class"),
    )
}

fn triggers(oid: &str) -> String {
    written("pg_trigger", &format!("x.tgrelid = {oid}"))
}

/// Returns an SQL expression on the rules of a table, whose row keeps saying that it has some once
/// it had one; NULL if it never had one.
fn rules(class: &str) -> String {
    let rules = written("pg_rewrite", &format!("x.ev_class = {class}.oid"));
    format!("CASE WHEN {class}.relhasrules THEN {rules} END")
}

fn columns(oid: &str) -> String {
    written(
        "pg_attribute",
        &format!("x.attrelid = {oid} AND x.attnum > 0"),
    )
}

/// Returns an SQL expression on the table's check constraints. Needed if the table has another
/// file, which does not prove that its row was written for that reason alone.
fn checks(oid: &str) -> String {
    let checks = written(
        "pg_constraint",
        &format!("x.conrelid = {oid} AND x.contype = 'c'"),
    );
    format!("{checks}::text")
}

/// Returns an SQL expression on the table's indexes. The second condition is always true. It lets
/// the planner use the index in a small catalog too: reading the whole catalog takes longer than
/// all the rest.
fn indexes(oid: &str) -> String {
    written(
        "pg_index",
        &format!("x.indrelid = {oid} AND x.xmin::text::int8 > 0"),
    )
}

fn heirs(oid: &str) -> String {
    written("pg_inherits", &format!("x.inhparent = {oid}"))
}

/// Returns the eight columns of a query that make a [`Print`]: the catalog's state of the table,
/// its triggers and its columns; the transaction that wrote the table's row, with the row's
/// content; the table's file; the tables; whether any of them has row security; and the catalog's
/// state of the tables that inherit. The table is `c`, its parts are `o.oids`.
pub(crate) fn print() -> String {
    format!(
        "CASE WHEN cardinality(o.oids) > 1 THEN {} ELSE concat_ws(' ', {}, {}, {}) END, \
         CASE WHEN cardinality(o.oids) = 1 AND c.relhastriggers THEN {} END, {}, \
         concat_ws(' ', c.xmin, {}, {}), c.relfilenode::text, array_to_string(o.oids, ' '), \
         EXISTS (SELECT FROM pg_catalog.pg_class x WHERE x.oid = ANY (o.oids) AND x.relrowsecurity), {}::text",
        parts("o.oids"),
        secured("c"),
        indexes("c.oid"),
        rules("c"),
        triggers("c.oid"),
        columns("c.oid"),
        checks("c.oid"),
        flags("c"),
        heirs("c.oid"),
    )
}

impl Check {
    /// Returns the check of a table; `None` if the database's catalog does not record which
    /// transactions wrote it. `changes`: the check also covers the tables that an update or a
    /// delete may reach.
    pub(crate) fn of(table: &Table, changes: bool) -> Option<Self> {
        let print = table.print.as_ref()?;
        Some(Self {
            version: table.version,
            changes: (changes || print.relied.routes) && !print.relied.others.is_empty(),
            asks: false,
        })
    }

    /// Returns the same check, which also selects the last value taken from a sequence.
    pub(crate) fn asking(self) -> Self {
        Self { asks: true, ..self }
    }

    /// Returns the check's statement, to be prepared after [`OPEN`]. The statement fails (22012) if
    /// something that matters has changed. Otherwise it returns what [`CheckResult`] reads. `zone`:
    /// the session's own time zone.
    ///
    /// A table with policies has everything compared each time, because whether policies apply to a
    /// role depends on more than tables.
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
            // The last value is read in binary form, in which a text is itself.
            true => format!("SELECT {LASTVAL}, ({found})::text"),
            false => format!("SELECT {found}"),
        }
    }

    /// Returns the statement that compares everything. The statement names each table by a constant
    /// of its own, so that the server analyzes it again after a change of one of them. The
    /// condition on these constants is always true.
    pub(crate) fn whole(self, print: &Print) -> String {
        let table = oid(print.oid().unwrap_or_default());
        // The table's own row is left out: a partitioned table has no file, and the rows of its
        // parts are among the pieces.
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

    /// Returns the SQL expressions that the check compares with [`Check::expected`].
    fn pieces(self, print: &Print, table: &str) -> Vec<String> {
        let mut pieces = match print.oids.len() > 1 {
            true => vec![parts("o.oids")],
            false => {
                let triggers = print.triggers.as_ref().map(|_| triggers(table));
                let mut pieces = vec![secured("c"), indexes(table), rules("c")];
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

    /// Returns the values of the pieces when the description was read, joined by blanks.
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

/// Returns the condition that is checked each time: the name still means the same table, and
/// objects whose changes do not make the server analyze the statement again are unchanged.
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

/// Returns the condition that a hypertable has other chunks than those described. An insert may
/// have created them itself, so its rows are correct nevertheless.
fn other_chunks(print: &Print, table: &str) -> String {
    match print.relied.routes && print.oids.len() == 1 {
        true => format!("{}::text <> {}", heirs(table), escape_literal(&print.heirs)),
        false => "false".to_owned(),
    }
}

fn is_meant(print: &Print, table: &str) -> String {
    format!("to_regclass({}) = {table}", escape_literal(&print.spelling))
}

/// Returns the condition that the table's row is still the one that was read, except for what
/// TRUNCATE writes.
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

/// Returns true if the table's proof relies on functions or domains that are not built in.
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

/// Returns a table's number as a constant of type `oid` from the start. A number with a cast
/// becomes such a constant only when it is planned.
fn oid(oid: u32) -> String {
    format!("pg_catalog.oid '{oid}'")
}

fn list(oids: &[u32]) -> String {
    let oids: Vec<String> = oids.iter().map(u32::to_string).collect();
    format!("'{{{}}}'::pg_catalog.oid[]", oids.join(","))
}
