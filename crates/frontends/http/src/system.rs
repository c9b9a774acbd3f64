//! Tables of the database itself, which are not served: they show other users, their rights and their statements to whoever
//! may use the API.

use windrow_core::{Fault, FaultClass, TableName};

/// Schemas that databases keep for themselves.
const SCHEMAS: [&str; 8] = [
    "crdb_internal",
    "information_schema",
    "mysql",
    "performance_schema",
    "pg_catalog",
    "pg_extension",
    "pg_toast",
    "sys",
];

/// What begins the names of tables that are found without a schema: PostgreSQL's and SQLite's own.
const PREFIXES: [&str; 2] = ["pg_", "sqlite_"];

/// Which of them are served all the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct SystemTables(Vec<Box<str>>);

impl SystemTables {
    /// Those that are listed, as requests name them.
    pub(crate) fn listed(names: &[Box<str>]) -> Self {
        Self(names.to_vec())
    }

    /// Refuses a table of the database itself.
    ///
    /// # Errors
    /// [`FaultClass::Denied`] with SQLSTATE 42501 and what to do.
    pub(crate) fn check(&self, table: &TableName) -> Result<(), Fault> {
        if !is_system(table) {
            return Ok(());
        }
        let name = table.to_string();
        if self.0.iter().any(|listed| **listed == *name) {
            return Ok(());
        }
        let advice = match &table.schema {
            None => " (a table of your own with such a name is served by its schema and name)",
            Some(_) => "",
        };
        let message = format!(
            "the table {name} belongs to the database itself and is not served{advice}; list it in http.system_tables if it is to be"
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
            SCHEMAS.iter().any(own) || begins(&"sqlite_")
        }
        None => PREFIXES.iter().any(begins),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_the_databases_own_is_served_only_where_it_is_listed() {
        let tables = SystemTables::listed(&["pg_catalog.pg_stat_activity".into()]);
        let told = |name: &str| tables.check(&TableName::parse(name).unwrap()).is_ok();
        for system in [
            "pg_shadow",
            "PG_authid",
            "pg_catalog.pg_shadow",
            "\"pg_catalog\".\"pg_class\"",
            "Information_Schema.tables",
            "mysql.user",
            "sqlite_master",
            "main.sqlite_schema",
        ] {
            assert!(!told(system), "{system}");
        }
        for own in [
            "readings",
            "public.pg_orders",
            "pgbench_accounts",
            "app.user",
            "pg_catalog.pg_stat_activity",
        ] {
            assert!(told(own), "{own}");
        }
    }
}
