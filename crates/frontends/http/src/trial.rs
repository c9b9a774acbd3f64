//! Checks for arbitrary bytes: `./test fuzz` generates them, and every test run uses those that
//! were kept.

use http::Method;
use windrow_core::{Op, TableName};

use crate::plan::Plans;
use crate::{query, routes, rows};

/// Checks bodies of rows.
pub fn rows(bytes: &[u8]) {
    rows::trial::rows(bytes);
}

/// Checks a path and its parameters: an accepted path names a table that can be named again, and
/// that is not one of the database's own.
pub fn path(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let (path, parameters) = text.split_once('?').unwrap_or((text, ""));
    for (method, op) in [
        (Method::POST, Op::Insert),
        (Method::PATCH, Op::Update),
        (Method::DELETE, Op::Delete),
        (Method::GET, Op::Get),
    ] {
        let Ok(found) = routes::find(&method, path) else {
            continue;
        };
        assert!(path.contains(found.table) && path.contains(found.key));
        drop(query::key_parts(found.key));
        let Ok(plan) = Plans::default().get(op, found.table, parameters) else {
            continue;
        };
        let table = &plan.shape(Vec::new()).table;
        let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        let schema = table.schema.iter().map(|schema| quoted(schema) + ".");
        let again = schema.collect::<String>() + &quoted(&table.table);
        let again = TableName::parse(&again);
        assert_eq!(again.ok().as_ref(), Some(table), "{text}");
    }
}

#[cfg(test)]
#[path = "../../../../fuzz/corpus.rs"]
mod corpus;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_chance_has_found() {
        corpus::each("rows", rows);
        corpus::each("path", path);
    }
}
