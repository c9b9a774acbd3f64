//! The functions that the servers have, by what they may do.
//!
//! If a server does not have a name, a user may have stored a function with it. So the lists of
//! harmless functions contain only names that MySQL 8.0.19, MariaDB 10.5 and all newer versions
//! have.

use super::modes::Modes;
use crate::word::listed;

/// Functions of both servers whose value depends only on their arguments, the time, chance, and the
/// settings of a lane.
#[rustfmt::skip]
const HARMLESS: [&str; 210] = [
    "abs", "acos", "adddate", "addtime", "ascii", "asin", "atan", "atan2", "bin", "bit_count",
    "bit_length", "cast", "ceil", "ceiling", "char", "char_length", "character_length", "coalesce",
    "compress", "concat", "concat_ws", "conv", "convert", "convert_tz", "cos", "cot", "crc32",
    "curdate", "current_date", "current_time", "current_timestamp", "curtime", "date", "date_add",
    "date_format", "date_sub", "datediff", "day", "dayname", "dayofmonth", "dayofweek", "dayofyear",
    "degrees", "elt", "exp", "export_set", "extract", "field", "find_in_set", "floor", "format",
    "from_base64", "from_days", "from_unixtime", "greatest", "hex", "hour", "if", "ifnull",
    "inet6_aton", "inet6_ntoa", "inet_aton", "inet_ntoa", "insert", "instr", "is_ipv4",
    "is_ipv4_compat", "is_ipv4_mapped", "is_ipv6", "isnull", "json_array", "json_array_append",
    "json_array_insert", "json_contains", "json_contains_path", "json_depth", "json_extract",
    "json_insert", "json_keys", "json_length", "json_merge", "json_merge_patch",
    "json_merge_preserve", "json_object", "json_quote", "json_remove", "json_replace",
    "json_search", "json_set", "json_type", "json_unquote", "json_valid", "last_day", "lcase",
    "least", "left", "length", "ln", "localtime", "localtimestamp", "locate", "log", "log10",
    "log2", "lower", "lpad", "ltrim", "make_set", "makedate", "maketime", "microsecond", "mid",
    "minute", "mod", "month", "monthname", "now", "nullif", "oct", "octet_length", "ord",
    "period_add", "period_diff", "pi", "position", "pow", "power", "quarter", "quote", "radians",
    "repeat", "replace", "reverse", "right", "round", "rpad", "rtrim", "sec_to_time", "second",
    "sha2", "sign", "sin", "soundex", "space", "sqrt", "st_area", "st_asbinary", "st_asgeojson",
    "st_astext", "st_aswkb", "st_aswkt", "st_contains", "st_distance", "st_equals",
    "st_geomcollfromtext", "st_geometrycollectionfromtext", "st_geometryfromtext",
    "st_geomfromgeojson", "st_geomfromtext", "st_geomfromwkb", "st_intersects", "st_linefromtext",
    "st_mlinefromtext", "st_mpointfromtext", "st_mpolyfromtext", "st_pointfromtext",
    "st_pointfromwkb", "st_polyfromtext", "st_polygonfromtext", "st_srid", "st_within", "st_x",
    "st_y", "str_to_date", "strcmp", "subdate", "substr", "substring", "substring_index", "subtime",
    "sysdate", "tan", "time", "time_format", "time_to_sec", "timediff", "timestamp", "timestampadd",
    "timestampdiff", "to_base64", "to_days", "to_seconds", "trim", "truncate", "ucase",
    "uncompress", "uncompressed_length", "unhex", "unix_timestamp", "upper", "utc_date", "utc_time",
    "utc_timestamp", "uuid", "uuid_short", "week", "weekday", "weekofyear", "year", "yearweek",
];

/// Further harmless functions of MariaDB. MySQL 9.6 does not have MD5 and SHA1.
#[rustfmt::skip]
const HARMLESS_OF_MARIADB: [&str; 15] = [
    "chr", "json_compact", "json_detailed", "json_exists", "json_loose", "json_query", "json_value",
    "md5", "nvl", "nvl2", "regexp_instr", "regexp_replace", "regexp_substr", "sha", "sha1",
];

/// Further harmless functions of MySQL.
#[rustfmt::skip]
const HARMLESS_OF_MYSQL: [&str; 12] = [
    "bin_to_uuid", "is_uuid", "json_overlaps", "json_pretty", "json_storage_size", "regexp_instr",
    "regexp_like", "regexp_replace", "regexp_substr", "st_latitude", "st_longitude", "uuid_to_bin",
];

/// All other functions that a version of either server has. They read the session, take locks,
/// wait, or are possible only in queries.
#[rustfmt::skip]
const OTHERS: [&str; 291] = [
    "add_months", "aes_decrypt", "aes_encrypt", "any_value", "area", "asbinary", "astext", "aswkb",
    "aswkt", "avg", "benchmark", "bin_to_uuid", "binlog_gtid_pos", "bit_and", "bit_or", "bit_xor",
    "boundary", "buffer", "centroid", "charset", "chr", "coercibility", "collation", "column_add",
    "column_check", "column_create", "column_delete", "column_exists", "column_get", "column_json",
    "column_list", "connection_id", "contains", "convexhull", "count", "crc32c", "crosses",
    "cume_dist", "current_role", "current_user", "database", "decode", "default", "dense_rank",
    "des_decrypt", "des_encrypt", "dimension", "disjoint", "encode", "encrypt", "endpoint",
    "envelope", "equals", "exteriorring", "extractvalue", "first_value", "format_bytes",
    "format_pico_time", "found_rows", "from_vector", "geomcollection", "geomcollfromtext",
    "geomcollfromwkb", "geometrycollection", "geometrycollectionfromtext",
    "geometrycollectionfromwkb", "geometryfromtext", "geometryfromwkb", "geometryn", "geometrytype",
    "geomfromtext", "geomfromwkb", "get_format", "get_lock", "glength", "group_concat", "grouping",
    "gtid_subset", "gtid_subtract", "icu_version", "interiorringn", "intersects", "is_free_lock",
    "is_used_lock", "is_uuid", "isclosed", "isempty", "isring", "issimple", "json_arrayagg",
    "json_compact", "json_detailed", "json_equals", "json_exists", "json_loose", "json_normalize",
    "json_objectagg", "json_overlaps", "json_pretty", "json_query", "json_schema_valid",
    "json_schema_validation_report", "json_storage_free", "json_storage_size", "json_table",
    "json_value", "lag", "last_insert_id", "last_value", "lastval", "lead", "lengthb",
    "linefromtext", "linefromwkb", "linestring", "linestringfromtext", "linestringfromwkb",
    "load_file", "master_gtid_wait", "master_pos_wait", "max", "mbrcontains", "mbrcoveredby",
    "mbrcovers", "mbrdisjoint", "mbrequal", "mbrequals", "mbrintersects", "mbroverlaps",
    "mbrtouches", "mbrwithin", "md5", "median", "min", "mlinefromtext", "mlinefromwkb",
    "mpointfromtext", "mpointfromwkb", "mpolyfromtext", "mpolyfromwkb", "multilinestring",
    "multilinestringfromtext", "multilinestringfromwkb", "multipoint", "multipointfromtext",
    "multipointfromwkb", "multipolygon", "multipolygonfromtext", "multipolygonfromwkb",
    "name_const", "natural_sort_key", "nextval", "nth_value", "ntile", "numgeometries",
    "numinteriorrings", "numpoints", "nvl", "nvl2", "old_password", "overlaps", "password",
    "percent_rank", "percentile_cont", "percentile_disc", "point", "pointfromtext", "pointfromwkb",
    "pointn", "pointonsurface", "polyfromtext", "polyfromwkb", "polygon", "polygonfromtext",
    "polygonfromwkb", "ps_current_thread_id", "ps_thread_id", "rand", "random_bytes", "rank",
    "regexp_instr", "regexp_like", "regexp_replace", "regexp_substr", "release_all_locks",
    "release_lock", "roles_graphml", "row", "row_count", "row_number", "schema", "session_user",
    "setval", "sformat", "sha", "sha1", "sleep", "source_pos_wait", "srid", "st_boundary",
    "st_buffer", "st_buffer_strategy", "st_centroid", "st_collect", "st_convexhull", "st_crosses",
    "st_difference", "st_dimension", "st_disjoint", "st_distance_sphere", "st_endpoint",
    "st_envelope", "st_exteriorring", "st_frechetdistance", "st_geohash", "st_geomcollfromwkb",
    "st_geometrycollectionfromwkb", "st_geometryfromwkb", "st_geometryn", "st_geometrytype",
    "st_hausdorffdistance", "st_interiorringn", "st_intersection", "st_isclosed", "st_isempty",
    "st_isring", "st_issimple", "st_isvalid", "st_latfromgeohash", "st_latitude", "st_length",
    "st_linefromwkb", "st_lineinterpolatepoint", "st_lineinterpolatepoints",
    "st_linestringfromtext", "st_linestringfromwkb", "st_longfromgeohash", "st_longitude",
    "st_makeenvelope", "st_mlinefromwkb", "st_mpointfromwkb", "st_mpolyfromwkb", "st_numgeometries",
    "st_numinteriorrings", "st_numpoints", "st_overlaps", "st_pointatdistance",
    "st_pointfromgeohash", "st_pointn", "st_pointonsurface", "st_polyfromwkb", "st_polygonfromwkb",
    "st_relate", "st_simplify", "st_startpoint", "st_swapxy", "st_symdifference", "st_touches",
    "st_transform", "st_union", "st_validate", "startpoint", "statement_digest",
    "statement_digest_text", "std", "stddev", "stddev_pop", "stddev_samp", "string_to_vector",
    "sum", "system_user", "to_char", "to_vector", "touches", "updatexml", "user", "uuid_to_bin",
    "validate_password_strength", "value", "values", "var_pop", "var_samp", "variance",
    "vector_dim", "vector_to_string", "version", "wait_for_executed_gtid_set", "weight_string",
    "within", "x", "y",
];

/// The effect of a call on writes that are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallKind {
    /// A function that may be called in a joined write.
    Harmless,
    /// A function of the server that may read or change its session.
    OfSession,
    /// Possibly a function that a user has stored.
    Stored,
}

/// Returns the harmless functions that only this server has.
fn own(modes: Modes) -> &'static [&'static str] {
    match modes.is_mariadb {
        true => &HARMLESS_OF_MARIADB,
        false => &HARMLESS_OF_MYSQL,
    }
}

/// Returns the kind of a function without a schema.
pub(super) fn call(name: &str, modes: Modes) -> CallKind {
    if listed(&HARMLESS, name) || listed(own(modes), name) {
        CallKind::Harmless
    } else if [&OTHERS[..], &HARMLESS_OF_MARIADB, &HARMLESS_OF_MYSQL]
        .iter()
        .any(|list| listed(list, name))
    {
        CallKind::OfSession
    } else {
        CallKind::Stored
    }
}

/// Returns the names of all harmless functions.
pub fn harmless_functions(modes: Modes) -> impl Iterator<Item = &'static str> {
    HARMLESS.into_iter().chain(own(modes).iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted() {
        assert!(HARMLESS.is_sorted());
        assert!(HARMLESS_OF_MARIADB.is_sorted());
        assert!(HARMLESS_OF_MYSQL.is_sorted());
        assert!(OTHERS.is_sorted());
    }

    #[test]
    fn functions_are_known_by_server() {
        let (mysql, mariadb) = (
            Modes::default(),
            Modes {
                is_mariadb: true,
                ..Modes::default()
            },
        );
        assert_eq!(call("Now", mysql), CallKind::Harmless);
        assert_eq!(call("MD5", mariadb), CallKind::Harmless);
        assert_eq!(call("md5", mysql), CallKind::OfSession);
        assert_eq!(call("uuid_to_bin", mysql), CallKind::Harmless);
        assert_eq!(call("uuid_to_bin", mariadb), CallKind::OfSession);
        assert_eq!(call("last_insert_id", mysql), CallKind::OfSession);
        assert_eq!(call("my_function", mariadb), CallKind::Stored);
    }
}
