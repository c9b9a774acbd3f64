//! Keywords of PostgreSQL 18 (`kwlist.h`), by what they may be used as, and the folding of
//! identifiers.

/// Words that are names of neither columns nor functions: they have a meaning of their own
/// everywhere.
#[rustfmt::skip]
const RESERVED: &[&str] = &[
    "all",
    "analyse",
    "analyze",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "asymmetric",
    "both",
    "case",
    "cast",
    "check",
    "collate",
    "column",
    "constraint",
    "create",
    "current_catalog",
    "current_date",
    "current_role",
    "current_time",
    "current_timestamp",
    "current_user",
    "default",
    "deferrable",
    "desc",
    "distinct",
    "do",
    "else",
    "end",
    "except",
    "false",
    "fetch",
    "for",
    "foreign",
    "from",
    "grant",
    "group",
    "having",
    "in",
    "initially",
    "intersect",
    "into",
    "lateral",
    "leading",
    "limit",
    "localtime",
    "localtimestamp",
    "not",
    "null",
    "offset",
    "on",
    "only",
    "or",
    "order",
    "placing",
    "primary",
    "references",
    "returning",
    "select",
    "session_user",
    "some",
    "symmetric",
    "system_user",
    "table",
    "then",
    "to",
    "trailing",
    "true",
    "union",
    "unique",
    "user",
    "using",
    "variadic",
    "when",
    "where",
    "window",
    "with",
];

/// Words that may name functions and types, but not columns.
#[rustfmt::skip]
const FUNCTIONS: &[&str] = &[
    "authorization",
    "binary",
    "collation",
    "concurrently",
    "cross",
    "current_schema",
    "freeze",
    "full",
    "ilike",
    "inner",
    "is",
    "isnull",
    "join",
    "left",
    "like",
    "natural",
    "notnull",
    "outer",
    "overlaps",
    "right",
    "similar",
    "tablesample",
    "verbose",
];

/// Words that may name columns, but not functions: they have a syntax of their own before a
/// parenthesis.
#[rustfmt::skip]
const COLUMNS: &[&str] = &[
    "between",
    "bigint",
    "bit",
    "boolean",
    "char",
    "character",
    "coalesce",
    "dec",
    "decimal",
    "exists",
    "extract",
    "float",
    "graph_table",
    "greatest",
    "grouping",
    "inout",
    "int",
    "integer",
    "interval",
    "json",
    "json_array",
    "json_arrayagg",
    "json_exists",
    "json_object",
    "json_objectagg",
    "json_query",
    "json_scalar",
    "json_serialize",
    "json_table",
    "json_value",
    "least",
    "merge_action",
    "national",
    "nchar",
    "none",
    "normalize",
    "nullif",
    "numeric",
    "out",
    "overlay",
    "position",
    "precision",
    "real",
    "row",
    "setof",
    "smallint",
    "substring",
    "time",
    "timestamp",
    "treat",
    "trim",
    "values",
    "varchar",
    "xmlattributes",
    "xmlconcat",
    "xmlelement",
    "xmlexists",
    "xmlforest",
    "xmlnamespaces",
    "xmlparse",
    "xmlpi",
    "xmlroot",
    "xmlserialize",
    "xmltable",
];

/// The names for which a word may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Any name.
    Any,
    /// Names of columns and tables.
    Column,
    /// Names of functions and types.
    Function,
    /// No name: the word is reserved.
    Reserved,
}

/// Returns true if a sorted list has a word, ignoring the case of ASCII letters.
pub(crate) fn listed(list: &[&str], word: &str) -> bool {
    let folded = word.bytes().map(|b| b.to_ascii_lowercase());
    list.binary_search_by(|entry| entry.bytes().cmp(folded.clone()))
        .is_ok()
}

/// Returns the names for which an unquoted word may be used.
pub(crate) fn usage(word: &str) -> Use {
    if listed(RESERVED, word) {
        Use::Reserved
    } else if listed(COLUMNS, word) {
        Use::Column
    } else if listed(FUNCTIONS, word) {
        Use::Function
    } else {
        Use::Any
    }
}

/// The longest identifier that the server keeps whole, in bytes.
pub(crate) const MAX_NAME: usize = 63;

/// Folds an unquoted identifier as the server does. `None` if that depends on the database's
/// encoding (a capital letter outside of ASCII), and for names that the server would cut.
pub(crate) fn fold(word: &str) -> Option<String> {
    let foldable = word.is_ascii()
        || word
            .chars()
            .all(|c| c.is_ascii() || c.to_lowercase().eq(std::iter::once(c)));
    (foldable && word.len() <= MAX_NAME).then(|| word.to_ascii_lowercase())
}

/// Returns the name in a quoted identifier. `None` for an empty name, which the server refuses, and
/// for a name that the server would truncate.
pub(crate) fn unquote(quoted: &str) -> Option<String> {
    let inside = quoted.strip_prefix('"')?.strip_suffix('"')?;
    let name = inside.replace("\"\"", "\"");
    (!name.is_empty() && name.len() <= MAX_NAME).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted() {
        for list in [RESERVED, FUNCTIONS, COLUMNS] {
            assert!(list.is_sorted());
        }
    }

    #[test]
    fn names_are_folded_as_the_server_folds_them() {
        assert_eq!(fold("OrDers_1$").as_deref(), Some("orders_1$"));
        assert_eq!(fold("größe").as_deref(), Some("größe"));
        assert_eq!(fold("GRÖSSE"), None);
        assert_eq!(fold(&"a".repeat(64)), None);
        assert_eq!(unquote("\"A\"\"b\"").as_deref(), Some("A\"b"));
        assert_eq!(unquote("\"\""), None);
        assert_eq!(usage("Select"), Use::Reserved);
        assert_eq!(usage("TIMESTAMP"), Use::Column);
        assert_eq!(usage("left"), Use::Function);
        assert_eq!(usage("name"), Use::Any);
    }
}
