//! Tables of the database itself, and Windrow's own tables. Neither is served: the former show
//! other users, their rights and their statements to every client of the API, and a client that
//! writes to the latter could cause writes to be lost or executed twice.

use std::fmt;
use std::sync::Arc;

use windrow_core::moves::is_own;
use windrow_core::{Fault, FaultClass, TableName};

/// The schemas of databases themselves. PostgreSQL's begin with `pg_`, a prefix that no other
/// schema may have.
const SCHEMAS: [&str; 5] = [
    "crdb_internal",
    "information_schema",
    "mysql",
    "performance_schema",
    "sys",
];

/// Prefixes of system tables that are found without a schema: PostgreSQL's and SQLite's.
const PREFIXES: [&str; 2] = ["pg_", "sqlite_"];

/// A test of a name: true for a table of the database itself.
pub(crate) type SystemTableTest = Arc<dyn Fn(&TableName) -> bool + Send + Sync>;

/// The tables of the database itself, and those of them that are served nevertheless.
#[derive(Clone, Default)]
pub(crate) struct SystemTables {
    listed: Vec<Box<str>>,
    /// The test of the current database.
    owns: Option<SystemTableTest>,
}

impl fmt::Debug for SystemTables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SystemTables").field(&self.listed).finish()
    }
}

impl SystemTables {
    /// Serves the listed tables, by the names that requests use.
    pub(crate) fn new(listed: &[Box<str>], owns: SystemTableTest) -> Self {
        Self {
            listed: listed.to_vec(),
            owns: Some(owns),
        }
    }

    /// Refuses a table of the database itself, or one of Windrow's own.
    ///
    /// # Errors
    /// [`FaultClass::Denied`] with SQLSTATE 42501 and the remedy.
    pub(crate) fn check(&self, table: &TableName) -> Result<(), Fault> {
        let kept = is_own(&table.table);
        let owned = kept || self.owns.as_ref().is_some_and(|owns| owns(table));
        if !owned && !is_system(table) {
            return Ok(());
        }
        let name = table.to_string();
        if self.listed.iter().any(|listed| **listed == *name) {
            return Ok(());
        }
        let advice = match &table.schema {
            None if !owned => {
                " (a table of your own with such a name is served by its schema and name)"
            }
            _ => "",
        };
        let owner = if kept { "Windrow" } else { "the database" };
        let message = format!(
            "the table {name} belongs to {owner} itself and is not served{advice}; list it in http.system_tables if it is to be"
        );
        Err(Fault::new(FaultClass::Denied, "42501", message).with_table(Some(&*table.table)))
    }
}

fn is_system(table: &TableName) -> bool {
    let begins = |prefix: &&str| {
        let begin = table.table.get(..prefix.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(prefix))
    };
    match &table.schema {
        Some(schema) => {
            let own = |system: &&str| schema.eq_ignore_ascii_case(system);
            let postgres = schema
                .get(..3)
                .is_some_and(|begin| begin.eq_ignore_ascii_case("pg_"));
            postgres || SCHEMAS.iter().any(own) || begins(&"sqlite_")
        }
        None => PREFIXES.iter().any(begins),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_the_databases_own_is_served_only_where_it_is_listed() {
        let listed = ["pg_catalog.pg_stat_activity".into(), "_graphs".into()];
        let tables = SystemTables::new(&listed, Arc::new(|table| table.table.starts_with('_')));
        let allows = |name: &str| tables.check(&TableName::parse(name).unwrap()).is_ok();
        for system in [
            "pg_shadow",
            "PG_authid",
            "pg_catalog.pg_shadow",
            "\"pg_catalog\".\"pg_class\"",
            "Information_Schema.tables",
            "mysql.user",
            "\"MySQL\".\"user\"",
            "Performance_Schema.threads",
            "sys.session",
            "crdb_internal.cluster_sessions",
            "pg_toast_temp_1.x",
            "\"Pg_Temp_3\".x",
            "_users",
            "\"_users\"",
            "sqlite_master",
            "main.sqlite_schema",
            "windrow_progress",
            "windrow_idempotency",
            "public.Windrow_Rejected",
            "\"windrow_moved\"",
        ] {
            assert!(!allows(system), "{system}");
        }
        for own in [
            "readings",
            "public.pg_orders",
            "pgbench_accounts",
            "app.user",
            "pg_catalog.pg_stat_activity",
            "_graphs",
            "page.views",
            "windrow_readings",
        ] {
            assert!(allows(own), "{own}");
        }
    }
}
