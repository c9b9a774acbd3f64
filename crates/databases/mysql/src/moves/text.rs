//! Writes parts that several statements have in common.

use windrow_core::Name;
use windrow_database::quote::backtick::push_ident;

use crate::values::column::Kind;

/// Appends the route's value as text; binary data as it is, for the server would put a `?` in the
/// place of what is no text.
pub(super) fn push_route(sql: &mut String, route: &Name, kind: Kind) {
    if matches!(kind, Kind::Binary | Kind::Blob) {
        return push_ident(sql, route);
    }
    sql.push_str("CAST(");
    push_ident(sql, route);
    sql.push_str(" AS CHAR)");
}

/// The bytes of the route's value, whatever its collation holds for equal.
pub(super) fn bytes_of_route(route: &Name, kind: Kind) -> String {
    let mut sql = "CAST(".to_owned();
    push_route(&mut sql, route, kind);
    sql.push_str(" AS BINARY)");
    sql
}
