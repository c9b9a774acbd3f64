//! Writes parts that several statements have in common.

use windrow_core::Name;
use windrow_database::quote::push_ident;

/// Appends a table of the file itself, and never a temporary one of the same name.
pub(super) fn push_table(sql: &mut String, table: &str) {
    sql.push_str("main.");
    push_ident(sql, table);
}

/// Appends the route's value as text.
pub(super) fn push_route(sql: &mut String, of: &str, route: &Name) {
    sql.push_str("CAST(");
    sql.push_str(of);
    push_ident(sql, route);
    sql.push_str(" AS TEXT)");
}
