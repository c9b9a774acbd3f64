//! The source for a mover: its statements, and the kinds of its columns.

use windrow_core::{Fault, FaultClass, MovePlan, Name, TableName};
use windrow_database::moved::{self, push_filter};
use windrow_database::quote::backtick::{push_ident, push_idents, push_table};

use super::survey;
use super::text::{bytes_of_route, push_route};
use crate::catalog::information::about;
use crate::session::Session;
use crate::values::cell::get;
use crate::values::column::Kind;

/// A table that rows are moved from.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) name: TableName,
    /// The columns of the key, with their kinds.
    pub(super) key: Vec<(Name, Kind)>,
    /// All columns of the table with their kinds, for dead letters.
    pub(super) all: Vec<(Name, Kind)>,
    /// The types of the key's columns, for plans across databases.
    pub(super) names: Vec<Kind>,
    /// The types of the columns that are read, for plans across databases.
    pub(super) read: Vec<Kind>,
    /// The columns that are copied, in the plan's order.
    pub(super) columns: Vec<Name>,
    /// The name of a unique index over columns of the key.
    pub(super) index: String,
    /// The route's value as text, compared by its bytes.
    pub(super) route: Option<String>,
    /// The statement that locks rows and reads them. Its one parameter is the number of rows.
    pub(super) lock: String,
    /// The same for rows whose key is greater than its first parameter; `None` if the key is not
    /// one integer.
    pub(super) lock_after: Option<String>,
    /// The query that tells if there are rows.
    pub(super) left: String,
}

impl Source {
    /// Reads the table and makes the statements.
    ///
    /// # Errors
    /// [`FaultClass::NoTable`], [`FaultClass::NoColumn`], [`FaultClass::Unsupported`] if the engine
    /// has no transactions or the key holds values that cannot be looked up exactly; the server's
    /// own errors.
    pub(super) async fn read(session: &mut Session, plan: &MovePlan) -> Result<Self, Fault> {
        let name = &plan.source;
        let Some(facts) = survey::facts(session, name).await? else {
            return Err(moved::no_source(name));
        };
        if !facts.transactional {
            return Err(no_transactions(name));
        }
        let kind_of = |column: &Name| match facts.place_of(column) {
            Some(place) => Ok(facts.columns.get(place).map_or(Kind::Other, |c| c.kind)),
            None => Err(no_column(name, column)),
        };
        let kinds = |columns: &[Name]| -> Result<Vec<Kind>, Fault> {
            columns.iter().map(kind_of).collect()
        };
        let key: Vec<(Name, Kind)> = plan.key.iter().cloned().zip(kinds(&plan.key)?).collect();
        for (column, kind) in &key {
            check_key(name, column, *kind)?;
        }
        let index = index(session, name, &plan.key).await?;
        let read = kinds(if plan.across { &plan.columns } else { &[] })?;
        let names = kinds(if plan.across { &plan.names } else { &[] })?;
        let route = match &plan.route {
            Some(name) => Some((name, kind_of(name)?)),
            None => None,
        };
        let texts = Texts {
            plan,
            route,
            index: &index,
        };
        let counts = matches!(key.as_slice(), [(_, Kind::Int)]);
        Ok(Self {
            name: name.clone(),
            names,
            read,
            all: facts
                .columns
                .iter()
                .map(|c| (c.name.clone(), c.kind))
                .collect(),
            columns: plan.columns.to_vec(),
            route: route.map(|(name, kind)| bytes_of_route(name, kind)),
            lock: texts.lock(false),
            lock_after: counts.then(|| texts.lock(true)),
            left: texts.left(),
            key,
            index: index.name,
        })
    }
}

/// An index that finds keys.
struct Index {
    name: String,
    /// True if the index has the key's columns in the key's order, so that rows are read in that
    /// order without sorting.
    ordered: bool,
}

struct Texts<'a> {
    plan: &'a MovePlan,
    route: Option<(&'a Name, Kind)>,
    index: &'a Index,
}

impl Texts<'_> {
    fn lock(&self, after: bool) -> String {
        let plan = self.plan;
        let mut sql = "SELECT ".to_owned();
        push_idents(&mut sql, &plan.key);
        if let Some((route, kind)) = self.route {
            sql.push_str(", ");
            push_route(&mut sql, route, kind);
        }
        if plan.across {
            for columns in [&plan.names, &plan.columns] {
                sql.push_str(if columns.is_empty() { "" } else { ", " });
                push_idents(&mut sql, columns);
            }
        }
        sql.push_str(" FROM ");
        push_table(&mut sql, &plan.source);
        if self.index.ordered {
            // Sorting would lock every row before the first is returned.
            sql.push_str(" FORCE INDEX (");
            push_ident(&mut sql, &self.index.name);
            sql.push(')');
        }
        push_filter(&mut sql, plan.filter.as_deref());
        if after {
            sql.push_str(if plan.filter.is_some() {
                " AND "
            } else {
                " WHERE "
            });
            push_idents(&mut sql, &plan.key);
            sql.push_str(" > ?");
        }
        sql.push_str(" ORDER BY ");
        push_idents(&mut sql, &plan.key);
        sql.push_str(" LIMIT ? FOR UPDATE SKIP LOCKED");
        sql
    }

    fn left(&self) -> String {
        let mut sql = "SELECT EXISTS (SELECT 1 FROM ".to_owned();
        push_table(&mut sql, &self.plan.source);
        push_filter(&mut sql, self.plan.filter.as_deref());
        sql.push(')');
        sql
    }
}

/// Finds a unique index over columns of the key. Prefers one in the key's own order.
async fn index(session: &mut Session, table: &TableName, key: &[Name]) -> Result<Index, Fault> {
    let more = " AND NON_UNIQUE = 0 ORDER BY INDEX_NAME <> 'PRIMARY', INDEX_NAME, SEQ_IN_INDEX";
    let sql = about(
        "STATISTICS",
        "INDEX_NAME, COLUMN_NAME, SUB_PART, NULLABLE",
        "TABLE",
        table,
        more,
    );
    let rows = session.rows(&sql).await?;
    let mut indexes: Vec<(String, Vec<Option<String>>)> = Vec::new();
    for row in &rows {
        let name: String = get(row, 0).unwrap_or_default();
        if indexes.last().is_none_or(|(last, _)| *last != name) {
            indexes.push((name, Vec::new()));
        }
        let whole =
            get::<u64>(row, 2).is_none() && get::<String>(row, 3).is_none_or(|n| n != "YES");
        if let Some((_, columns)) = indexes.last_mut() {
            columns.push(get::<String>(row, 1).filter(|_| whole));
        }
    }
    let same = |column: &Option<String>, name: &Name| {
        column
            .as_ref()
            .is_some_and(|c| c.to_lowercase() == name.to_lowercase())
    };
    let covered = |columns: &[Option<String>]| {
        columns
            .iter()
            .all(|column| key.iter().any(|name| same(column, name)))
    };
    let ordered = |columns: &[Option<String>]| {
        columns.len() == key.len()
            && columns
                .iter()
                .zip(key)
                .all(|(column, name)| same(column, name))
    };
    let found = indexes
        .iter()
        .find(|(_, columns)| ordered(columns))
        .or_else(|| indexes.iter().find(|(_, columns)| covered(columns)));
    match found {
        Some((name, columns)) => Ok(Index {
            name: name.clone(),
            ordered: ordered(columns),
        }),
        None => Err(Fault::invalid(format!(
            "no unique index of {table} over columns that are NOT NULL lies within the key {}; rows cannot be identified by it",
            key.join(", ")
        ))),
    }
}

/// Refuses keys whose values the server does not return exactly as they were stored.
fn check_key(table: &TableName, column: &Name, kind: Kind) -> Result<(), Fault> {
    match kind {
        Kind::Float | Kind::Double | Kind::Json => Err(Fault::new(
            FaultClass::Unsupported,
            "0A000",
            format!(
                "the column {column} of {table} cannot be a part of a move's key: its values cannot be looked up exactly; \
                 name another unique key by --key"
            ),
        )),
        _ => Ok(()),
    }
}

/// Returns the fault of a table whose engine has no transactions.
pub(super) fn no_transactions(table: &TableName) -> Fault {
    Fault::new(
        FaultClass::Unsupported,
        "0A000",
        format!(
            "the storage engine of {table} knows no transactions, so rows that are moved could be lost or doubled"
        ),
    )
}

fn no_column(table: &TableName, column: &Name) -> Fault {
    Fault::new(
        FaultClass::NoColumn,
        "42703",
        format!("the table {table} has no column {column}"),
    )
}
