//! What is looked at behind the writes of a transaction, so that a description that is not true any more can never lead to a
//! wrong answer: the catalog's rows about a table, by the transactions that wrote them.
//!
//! The writes hold locks by then, which keep what is seen until the commit. A change of the columns' names and types is also
//! noticed by the guard in front ([`crate::postgres::prepare`]), which costs nearly nothing; so where neither defaults nor
//! arrays are relied on, the row of the table itself is enough behind it.

use crate::postgres::table::Print;

/// The rows of `pg_attribute`. System columns are no index keys, but this is a short index scan, as the others are.
macro_rules! columns_of {
    ($oid:literal) => {
        concat!(
            "(SELECT sum(x.xmin::text::int8) FROM pg_catalog.pg_attribute x WHERE x.attrelid = ",
            $oid,
            " AND x.attnum > 0)"
        )
    };
}

/// The rows of `pg_trigger`.
macro_rules! triggers_of {
    ($oid:literal) => {
        concat!(
            "(SELECT coalesce(sum(x.xmin::text::int8), 0) FROM pg_catalog.pg_trigger x WHERE x.tgrelid = ",
            $oid,
            ")"
        )
    };
}

/// All of it for several tables: a partitioned one and its parts.
macro_rules! parts_of {
    ($oids:literal) => {
        concat!(
            "concat_ws(' ', ",
            "(SELECT sum(x.xmin::text::int8) FROM pg_catalog.pg_class x WHERE x.oid = ANY (",
            $oids,
            ")), ",
            "(SELECT sum(x.xmin::text::int8) FROM pg_catalog.pg_attribute x WHERE x.attrelid = ANY (",
            $oids,
            ") AND x.attnum > 0), ",
            "(SELECT coalesce(sum(x.xmin::text::int8), 0) FROM pg_catalog.pg_trigger x WHERE x.tgrelid = ANY (",
            $oids,
            ")), ",
            "(SELECT coalesce(sum(x.xmin::text::int8), 0) FROM pg_catalog.pg_inherits x WHERE x.inhparent = ANY (",
            $oids,
            ")))"
        )
    };
}

/// What makes a [`Print`], three columns of a query. The table is `c`, its parts are `o.oids`.
pub(super) const PRINT: &str = concat!(
    "CASE WHEN c.relkind = 'p' THEN ",
    parts_of!("o.oids"),
    " ELSE c.xmin::text END, ",
    "CASE WHEN c.relkind = 'r' AND c.relhastriggers THEN ",
    triggers_of!("c.oid"),
    " END, ",
    columns_of!("c.oid")
);

/// A row of `pg_class` by its key.
macro_rules! check {
    ($($more:expr),*) => {
        concat!(
            "SELECT 1 / ((concat_ws(' ', (SELECT x.xmin FROM pg_catalog.pg_class x WHERE x.oid = $1::oid)",
            $(", ", $more,)*
            ") = $2 AND to_regclass($3) = $1) IS TRUE)::int"
        )
    };
}

/// Fails (22012) unless the print is still `$2`, and the table `$1` is still what `$3` means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::postgres) enum Check {
    /// One table.
    Table {
        /// It had triggers: a further one would not change its own row.
        triggers: bool,
        /// Its columns with their defaults as well.
        columns: bool,
    },
    /// A partitioned table with all its parts.
    Parts,
}

impl Check {
    /// What looks at a table. `columns`: also at its columns with their defaults.
    pub(in crate::postgres) fn of(print: &Print, columns: bool) -> Self {
        match print.oids.len() {
            1 => Self::Table {
                triggers: print.triggers.is_some(),
                columns,
            },
            _ => Self::Parts,
        }
    }

    /// Its statement.
    pub(in crate::postgres) fn sql(self) -> &'static str {
        match self {
            Self::Table {
                triggers: false,
                columns: false,
            } => check!(),
            Self::Table {
                triggers: true,
                columns: false,
            } => check!(triggers_of!("$1::oid")),
            Self::Table {
                triggers: false,
                columns: true,
            } => check!(columns_of!("$1::oid")),
            Self::Table {
                triggers: true,
                columns: true,
            } => check!(triggers_of!("$1::oid"), columns_of!("$1::oid")),
            Self::Parts => concat!(
                "SELECT 1 / ((",
                parts_of!("$1::oid[]"),
                " = $2 AND to_regclass($3) = $1[1]) IS TRUE)::int"
            ),
        }
    }

    /// The pieces of the print that it compares, to be joined by blanks.
    pub(in crate::postgres) fn expected(self, print: &Print) -> impl Iterator<Item = &str> {
        let (triggers, columns) = match self {
            Self::Table { triggers, columns } => (triggers, columns),
            Self::Parts => (false, false),
        };
        let triggers = print.triggers.as_deref().filter(|_| triggers);
        let columns = Some(&*print.columns).filter(|_| columns);
        [Some(&*print.table), triggers, columns]
            .into_iter()
            .flatten()
    }
}
