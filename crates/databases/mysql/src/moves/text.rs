//! Writes parts that several statements have in common.

use windrow_core::Name;
use windrow_database::quote::backtick::push_ident;

use crate::values::column::Kind;

/// Appends the route's value as text. Binary data is left as it is, because the server would
/// replace invalid text by `?`.
pub(super) fn push_route(sql: &mut String, route: &Name, kind: Kind) {
    if matches!(kind, Kind::Binary | Kind::Blob) {
        return push_ident(sql, route);
    }
    sql.push_str("CAST(");
    push_ident(sql, route);
    sql.push_str(" AS CHAR)");
}

/// Returns the bytes of the route's value as SQL, so that the collation does not treat different
/// values as equal.
pub(super) fn bytes_of_route(route: &Name, kind: Kind) -> String {
    let mut sql = "CAST(".to_owned();
    push_route(&mut sql, route, kind);
    sql.push_str(" AS BINARY)");
    sql
}
