//! What is looked at behind the writes of a transaction, so that a description that is not true any
//! more can never lead to a wrong answer: the catalog's rows about a table and about all that its
//! proof relies on, by the transactions that wrote them.
//!
//! The writes hold locks by then, which keep what is seen of the table until the commit. A change
//! of the columns' names and types is also noticed by the guard in front
//! ([`crate::ladder::prepare`]), which costs nearly nothing; so where neither defaults nor arrays
//! are relied on, the rows of the columns are left out.

use crate::catalog::table::Print;

/// Fails (22012) unless the print is still `$2`, and the table `$1` is still what `$3` means. `$4`
/// and `$5`: the transaction that wrote the table's row, with what stands in it, and the table's
/// file. Behind them, where any are relied on: functions and domains, other tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Check {
    /// A partitioned table with all its parts.
    parts: bool,
    /// It had triggers: a further one would not change its own row.
    triggers: bool,
    /// Its columns with their defaults as well.
    columns: bool,
    /// Functions and domains of somebody's own.
    relies: bool,
    /// Tables that inherit from it, and those that a cascade reaches.
    others: bool,
}

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

/// What makes a [`Print`], six columns of a query: what is said of the table, of its triggers, of
/// its columns; the transaction that wrote the table's row, with what stands in it, the table's
/// file, and the tables. The table is `c`, its parts are `o.oids`.
pub(crate) fn print() -> String {
    format!(
        "CASE WHEN cardinality(o.oids) > 1 THEN {} ELSE concat_ws(' ', {}, {}) END, \
         CASE WHEN cardinality(o.oids) = 1 AND c.relhastriggers THEN {} END, {}, \
         concat_ws(' ', c.xmin, {}, {}), c.relfilenode::text, array_to_string(o.oids, ' ')",
        parts("o.oids"),
        secured("c"),
        indexes("c.oid"),
        triggers("c.oid"),
        columns("c.oid"),
        checks("c.oid"),
        flags("c"),
    )
}

impl Check {
    /// What looks at a table. `columns`: also at its columns with their defaults; `changes`: also
    /// at the tables that an update or a delete may reach.
    pub(crate) fn of(print: &Print, columns: bool, changes: bool) -> Self {
        let parts = print.oids.len() > 1;
        Self {
            parts,
            triggers: !parts && print.triggers.is_some(),
            columns: !parts && columns,
            relies: !print.relied.functions.is_empty() || !print.relied.domains.is_empty(),
            others: changes && !print.relied.others.is_empty(),
        }
    }

    /// Its statement. It gives 2 where the table has got another file since: nothing that matters
    /// has changed then, but what else changes with the table's row is not seen any more.
    pub(crate) fn sql(self) -> String {
        let table = match self.parts {
            true => "($1::oid[])[1]",
            false => "$1::oid",
        };
        // Without its own row: a partitioned table has no file, and its parts' rows are among the
        // pieces.
        let row = match self.parts {
            true => "$4::text IS NOT NULL".to_owned(),
            false => format!(
                "(c.xmin::text = split_part($4, ' ', 1) OR c.relfilenode::text <> $5 \
                 AND concat_ws(' ', split_part($4, ' ', 1), {}, {}) = $4)",
                checks("$1::oid"),
                flags("c")
            ),
        };
        format!(
            "SELECT 1 / ((concat_ws(' ', {}) = $2 AND {row} AND to_regclass($3) = {table}) IS TRUE)::int \
             + (c.relfilenode::text <> $5)::int \
             FROM (VALUES (1)) AS v(one) LEFT JOIN pg_catalog.pg_class c ON c.oid = {table}",
            self.pieces().join(", ")
        )
    }

    /// What is compared. Lists come out of sub-selects: of a parameter's list the planner would
    /// know the length, take a plan made for it to be the better one, and plan the statement
    /// anew behind each batch, which takes longer than to run it.
    fn pieces(self) -> Vec<String> {
        let mut pieces = match self.parts {
            true => vec![parts("(SELECT $1::oid[])::oid[]")],
            false => vec![secured("c"), indexes("$1::oid")],
        };
        let mut next = 6;
        let mut list = || {
            next += 1;
            format!("ANY ((SELECT ${}::oid[])::oid[])", next - 1)
        };
        if self.triggers {
            pieces.push(triggers("$1::oid"));
        }
        if self.columns {
            pieces.push(columns("$1::oid"));
        }
        if self.relies {
            let (functions, domains) = (list(), list());
            pieces.push(written("pg_proc", &format!("x.oid = {functions}")));
            pieces.push(written("pg_type", &format!("x.oid = {domains}")));
            pieces.push(written("pg_constraint", &format!("x.contypid = {domains}")));
        }
        if self.others {
            let others = list();
            pieces.push(written("pg_class", &format!("x.oid = {others}")));
            pieces.push(written("pg_trigger", &format!("x.tgrelid = {others}")));
        }
        pieces
    }

    /// The pieces of the print that it compares, to be joined by blanks.
    pub(crate) fn expected(self, print: &Print) -> impl Iterator<Item = &str> {
        let triggers = print.triggers.as_deref().filter(|_| self.triggers);
        let columns = Some(&*print.columns).filter(|_| self.columns);
        let relied = Some(&*print.relied.written).filter(|_| self.relies);
        let others = Some(&*print.relied.reached).filter(|_| self.others);
        [Some(&*print.table), triggers, columns, relied, others]
            .into_iter()
            .flatten()
    }

    /// The functions, domains and other tables that it looks at: its parameters from the sixth on.
    pub(crate) fn lists(self, print: &Print) -> impl Iterator<Item = &[u32]> {
        let relied = &print.relied;
        [
            (self.relies, &*relied.functions),
            (self.relies, &*relied.domains),
            (self.others, &*relied.others),
        ]
        .into_iter()
        .filter_map(|(wanted, oids)| wanted.then_some(oids))
    }
}
