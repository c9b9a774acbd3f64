//! Words that MySQL and MariaDB reserve: they are names only in quotes.

use super::modes::Modes;
use crate::word::listed;

/// Words that MySQL and MariaDB reserve.
#[rustfmt::skip]
const EVERYWHERE: [&str; 229] = [
    "accessible", "add", "all", "alter", "analyze", "and", "as", "asc", "asensitive", "before",
    "between", "bigint", "binary", "blob", "both", "by", "call", "cascade", "case", "change",
    "char", "character", "check", "collate", "column", "condition", "constraint", "continue",
    "convert", "create", "cross", "current_date", "current_time", "current_timestamp",
    "current_user", "cursor", "databases", "day_hour", "day_microsecond", "day_minute",
    "day_second", "dec", "decimal", "declare", "default", "delayed", "delete", "desc", "describe",
    "deterministic", "distinct", "distinctrow", "div", "double", "drop", "dual", "each", "else",
    "elseif", "enclosed", "escaped", "except", "exists", "exit", "explain", "false", "fetch",
    "float", "float4", "float8", "for", "force", "foreign", "from", "fulltext", "grant", "group",
    "having", "high_priority", "hour_microsecond", "hour_minute", "hour_second", "if", "ignore",
    "in", "index", "infile", "inner", "inout", "insensitive", "insert", "int", "int1", "int2",
    "int3", "int4", "int8", "integer", "intersect", "interval", "into", "is", "iterate", "join",
    "key", "keys", "kill", "leading", "leave", "left", "like", "limit", "linear", "lines", "load",
    "localtime", "localtimestamp", "lock", "long", "longblob", "longtext", "loop", "low_priority",
    "match", "maxvalue", "mediumblob", "mediumint", "mediumtext", "middleint", "minute_microsecond",
    "minute_second", "mod", "modifies", "natural", "no_write_to_binlog", "not", "null", "numeric",
    "on", "optimize", "optionally", "or", "order", "out", "outer", "outfile", "over", "partition",
    "precision", "primary", "procedure", "purge", "range", "read", "read_write", "reads", "real",
    "recursive", "references", "regexp", "release", "rename", "repeat", "replace", "require",
    "resignal", "restrict", "return", "revoke", "right", "rlike", "row_number", "rows", "schemas",
    "second_microsecond", "select", "sensitive", "separator", "set", "show", "signal", "smallint",
    "spatial", "specific", "sql", "sql_big_result", "sql_calc_found_rows", "sql_small_result",
    "sqlexception", "sqlstate", "sqlwarning", "ssl", "starting", "straight_join", "table",
    "terminated", "then", "tinyblob", "tinyint", "tinytext", "to", "trailing", "trigger", "true",
    "undo", "union", "unique", "unlock", "unsigned", "update", "usage", "use", "using", "utc_date",
    "utc_time", "utc_timestamp", "values", "varbinary", "varchar", "varcharacter", "varying",
    "when", "where", "while", "with", "write", "xor", "year_month", "zerofill",
];

/// Words that only MySQL reserves.
#[rustfmt::skip]
const MYSQL: [&str; 35] = [
    "cube", "cume_dist", "database", "dense_rank", "empty", "external", "first_value", "function",
    "generated", "get", "grouping", "groups", "io_after_gtids", "io_before_gtids", "json_table",
    "lag", "last_value", "lateral", "lead", "library", "nth_value", "ntile", "of",
    "optimizer_costs", "option", "percent_rank", "qualify", "rank", "row", "schema", "stored",
    "system", "tablesample", "virtual", "window",
];

/// Words that only MariaDB reserves.
#[rustfmt::skip]
const MARIADB: [&str; 19] = [
    "current_role", "delete_domain_id", "do_domain_ids", "ignore_domain_ids",
    "master_demote_to_replica", "master_demote_to_slave", "master_ssl_verify_server_cert", "offset",
    "page_checksum", "parse_vcol_expr", "portion", "ref_system_id", "returning",
    "sql_after_gtids", "sql_before_gtids", "stats_auto_recalc", "stats_persistent",
    "stats_sample_pages", "vector",
];

/// Returns true if a word without quotes is not a name.
pub(super) fn is_reserved(word: &str, modes: Modes) -> bool {
    let own = match modes.is_mariadb {
        true => listed(&MARIADB, word),
        false => listed(&MYSQL, word),
    };
    own || listed(&EVERYWHERE, word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted() {
        assert!(EVERYWHERE.is_sorted());
        assert!(MYSQL.is_sorted());
        assert!(MARIADB.is_sorted());
    }
}
