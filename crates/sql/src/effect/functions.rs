//! Functions of PostgreSQL that leave nothing behind in a session, as far as drivers and
//! applications use them in plain queries.

use crate::lex::Kind;
use crate::reading::Effect;
use crate::word::listed;
use crate::words::Words;

/// Built-in functions (in `pg_catalog`) that leave nothing behind. Those that wait for, or take, a
/// lock until the end of the
/// transaction belong to them; those that keep one for the session, set something or open something
/// do not.
#[rustfmt::skip]
const HARMLESS: &[&str] = &[
    "abs", "acos", "acosd", "acosh", "age", "any_value", "array_agg", "array_append", "array_cat", "array_dims",
    "array_fill", "array_length", "array_lower", "array_ndims", "array_position", "array_positions", "array_prepend",
    "array_remove", "array_replace", "array_reverse", "array_sample", "array_shuffle", "array_sort", "array_to_json",
    "array_to_string", "array_to_tsvector", "array_upper", "ascii", "asin", "asind", "asinh", "atan", "atan2",
    "atan2d", "atand", "atanh", "avg", "bernoulli", "bit_and", "bit_count", "bit_length", "bit_or", "bit_xor",
    "bool_and", "bool_or", "bpchar", "broadcast", "btrim", "bytea", "cardinality", "casefold", "cbrt", "ceil",
    "ceiling", "char_length", "character_length", "chr", "clock_timestamp", "col_description", "concat", "concat_ws",
    "convert", "convert_from", "convert_to", "corr", "cos", "cosd", "cosh", "cot", "cotd", "count", "covar_pop",
    "covar_samp", "cube", "cume_dist", "current_database", "current_query", "current_schema", "current_schemas",
    "current_setting", "date", "date_add", "date_bin", "date_part", "date_subtract", "date_trunc", "daterange",
    "decode", "degrees", "dense_rank", "div", "encode", "enum_first", "enum_last", "enum_range", "erf", "erfc",
    "every", "exp", "factorial", "family", "first_value", "float4", "float8", "floor", "format", "format_type",
    "gamma", "gcd", "gen_random_uuid", "generate_series", "generate_subscripts", "get_bit", "get_byte",
    "get_current_ts_config", "has_any_column_privilege", "has_column_privilege", "has_database_privilege",
    "has_foreign_data_wrapper_privilege", "has_function_privilege", "has_language_privilege",
    "has_parameter_privilege", "has_schema_privilege", "has_sequence_privilege", "has_server_privilege",
    "has_table_privilege", "has_tablespace_privilege", "has_type_privilege", "hashtext", "hashtextextended", "height",
    "host", "hostmask", "icu_unicode_version", "inet_client_addr", "inet_client_port", "inet_merge",
    "inet_same_family", "inet_server_addr", "inet_server_port", "initcap", "int2", "int4", "int4multirange",
    "int4range", "int8", "int8range", "isempty", "isfinite", "json_agg", "json_agg_strict", "json_array_elements",
    "json_array_elements_text", "json_array_length", "json_build_array", "json_build_object", "json_each",
    "json_each_text", "json_extract_path", "json_extract_path_text", "json_object_agg", "json_object_agg_strict",
    "json_object_agg_unique", "json_object_keys", "json_populate_record", "json_populate_recordset",
    "json_strip_nulls", "json_to_record", "json_to_recordset", "json_typeof", "jsonb", "jsonb_agg",
    "jsonb_agg_strict", "jsonb_array_elements", "jsonb_array_elements_text", "jsonb_array_length",
    "jsonb_build_array", "jsonb_build_object", "jsonb_each", "jsonb_each_text", "jsonb_extract_path",
    "jsonb_extract_path_text", "jsonb_insert", "jsonb_object", "jsonb_object_agg", "jsonb_object_keys",
    "jsonb_path_exists", "jsonb_path_match", "jsonb_path_query", "jsonb_path_query_array", "jsonb_path_query_first",
    "jsonb_populate_record", "jsonb_populate_recordset", "jsonb_pretty", "jsonb_set", "jsonb_set_lax",
    "jsonb_strip_nulls", "jsonb_to_record", "jsonb_to_recordset", "jsonb_typeof", "justify_days", "justify_hours",
    "justify_interval", "lag", "last_value", "lcm", "lead", "left", "length", "ln", "log", "log10", "lower",
    "lower_inc", "lower_inf", "lpad", "ltrim", "make_date", "make_interval", "make_time", "make_timestamp",
    "make_timestamptz", "masklen", "max", "md5", "min", "min_scale", "mod", "mode", "money", "name", "netmask",
    "network", "now", "nth_value", "ntile", "num_nonnulls", "num_nulls", "numnode", "numrange", "obj_description",
    "octet_length", "oid", "percent_rank", "percentile_cont", "percentile_disc", "pg_advisory_xact_lock",
    "pg_advisory_xact_lock_shared", "pg_backend_pid", "pg_blocking_pids", "pg_cancel_backend", "pg_char_to_encoding",
    "pg_client_encoding", "pg_collation_actual_version", "pg_collation_is_visible", "pg_column_compression",
    "pg_column_size", "pg_conf_load_time", "pg_conversion_is_visible", "pg_current_wal_lsn", "pg_current_xact_id",
    "pg_current_xact_id_if_assigned", "pg_database_size", "pg_describe_object", "pg_encoding_max_length",
    "pg_encoding_to_char", "pg_event_trigger_ddl_commands", "pg_function_is_visible", "pg_get_constraintdef",
    "pg_get_expr", "pg_get_function_arguments", "pg_get_function_identity_arguments", "pg_get_function_result",
    "pg_get_functiondef", "pg_get_indexdef", "pg_get_keywords", "pg_get_partition_ancestors",
    "pg_get_partition_constraintdef", "pg_get_partkeydef", "pg_get_publication_tables",
    "pg_get_replica_identity_index", "pg_get_ruledef", "pg_get_serial_sequence", "pg_get_statisticsobjdef",
    "pg_get_statisticsobjdef_columns", "pg_get_triggerdef", "pg_get_userbyid", "pg_get_viewdef", "pg_has_role",
    "pg_identify_object", "pg_index_column_has_property", "pg_index_has_property", "pg_indexam_has_property",
    "pg_indexes_size", "pg_is_in_recovery", "pg_is_other_temp_schema", "pg_is_wal_replay_paused", "pg_jit_available",
    "pg_last_wal_receive_lsn", "pg_last_wal_replay_lsn", "pg_last_xact_replay_timestamp", "pg_lock_status",
    "pg_notify", "pg_opclass_is_visible", "pg_operator_is_visible", "pg_opfamily_is_visible", "pg_options_to_table",
    "pg_partition_ancestors", "pg_partition_root", "pg_partition_tree", "pg_postmaster_start_time",
    "pg_relation_filenode", "pg_relation_filepath", "pg_relation_is_publishable", "pg_relation_size",
    "pg_safe_snapshot_blocking_pids", "pg_sequence_last_value", "pg_sequence_parameters", "pg_settings_get_flags",
    "pg_show_all_settings", "pg_size_bytes", "pg_size_pretty", "pg_sleep", "pg_sleep_for", "pg_sleep_until",
    "pg_snapshot_xmax", "pg_snapshot_xmin", "pg_stat_get_activity", "pg_statistics_obj_is_visible",
    "pg_table_is_visible", "pg_table_size", "pg_tablespace_databases", "pg_tablespace_location", "pg_tablespace_size",
    "pg_terminate_backend", "pg_timezone_abbrevs", "pg_timezone_names", "pg_total_relation_size", "pg_trigger_depth",
    "pg_try_advisory_xact_lock", "pg_try_advisory_xact_lock_shared", "pg_ts_config_is_visible",
    "pg_ts_dict_is_visible", "pg_ts_parser_is_visible", "pg_ts_template_is_visible", "pg_type_is_visible",
    "pg_typeof", "pg_wal_lsn_diff", "phraseto_tsquery", "pi", "plainto_tsquery", "power", "querytree", "quote_ident",
    "quote_literal", "quote_nullable", "radians", "random", "random_normal", "range_agg", "range_intersect_agg",
    "rank", "regclass", "regexp_count", "regexp_instr", "regexp_like", "regexp_match", "regexp_matches",
    "regexp_replace", "regexp_split_to_array", "regexp_split_to_table", "regexp_substr", "regnamespace", "regproc",
    "regr_avgx", "regr_avgy", "regr_count", "regr_intercept", "regr_r2", "regr_slope", "regr_sxx", "regr_sxy",
    "regr_syy", "regtype", "repeat", "replace", "reverse", "right", "round", "row_number", "row_security_active",
    "row_to_json", "rpad", "rtrim", "scale", "set_bit", "set_byte", "set_masklen", "setweight", "sha224", "sha256",
    "sha384", "sha512", "shobj_description", "sign", "sin", "sind", "sinh", "split_part", "sqrt", "starts_with",
    "statement_timestamp", "stddev", "stddev_pop", "stddev_samp", "string_agg", "string_to_array", "string_to_table",
    "strip", "strpos", "substr", "sum", "system", "tan", "tand", "tanh", "text", "timeofday", "timestamptz", "timetz",
    "timezone", "to_ascii", "to_bin", "to_char", "to_date", "to_hex", "to_json", "to_jsonb", "to_number", "to_oct",
    "to_regclass", "to_regcollation", "to_regnamespace", "to_regoper", "to_regoperator", "to_regproc",
    "to_regprocedure", "to_regrole", "to_regtype", "to_timestamp", "to_tsquery", "to_tsvector",
    "transaction_timestamp", "translate", "trim_array", "trim_scale", "trunc", "ts_debug", "ts_headline", "ts_lexize",
    "ts_rank", "ts_rank_cd", "ts_rewrite", "tsrange", "tstzrange", "tsvector_to_array", "txid_current",
    "txid_current_if_assigned", "txid_current_snapshot", "txid_status", "unistr", "unnest", "upper", "upper_inc",
    "upper_inf", "uuid", "uuid_extract_timestamp", "uuid_extract_version", "uuidv4", "uuidv7", "var_pop", "var_samp",
    "variance", "version", "websearch_to_tsquery", "width", "width_bucket",
];

/// Returns the effect of a call of a function. An unknown function may do anything.
pub(super) fn effect(name: &str) -> Effect {
    match name {
        "nextval" => Effect::Generates,
        "lastval" | "currval" => Effect::AsksForGenerated,
        _ if listed(HARMLESS, name) && !name.bytes().any(|b| b.is_ascii_uppercase()) => {
            Effect::Nothing
        }
        _ => Effect::Unknown,
    }
}

/// Built-in functions whose traces a session can be asked for: sequences' values, advisory locks.
const VISIBLE: [&str; 11] = [
    "nextval",
    "setval",
    "lastval",
    "currval",
    "pg_advisory_lock",
    "pg_advisory_lock_shared",
    "pg_advisory_unlock",
    "pg_advisory_unlock_all",
    "pg_advisory_unlock_shared",
    "pg_try_advisory_lock",
    "pg_try_advisory_lock_shared",
];

/// Listed functions that run what their arguments say.
const RUNNING: [&str; 1] = ["ts_rewrite"];

/// Returns true for a built-in function that leaves nothing in the session, or only state that can
/// be queried.
pub(crate) fn is_listed(name: &str) -> bool {
    VISIBLE.contains(&name) || (effect(name) == Effect::Nothing && !RUNNING.contains(&name))
}

/// Returns true if the word before a parenthesis is part of the syntax and not the name of a
/// function.
pub(super) fn is_syntax(words: Words<'_>, at: usize) -> bool {
    const BEFORE: &[(&str, &[&str])] = &[
        ("by", &["group", "order", "partition"]),
        ("conflict", &["on"]),
        ("insert", &["then"]),
        (
            "join",
            &["left", "right", "full", "inner", "outer", "cross"],
        ),
        ("materialized", &["as", "not"]),
        ("sets", &["grouping"]),
        ("zone", &["time"]),
    ];
    let before = |words_before: &[&str]| at > 0 && words.any(at - 1, words_before);
    let word = words.slice(at);
    let is = |other: &str| word.eq_ignore_ascii_case(other);
    if let Some((_, allowed)) = BEFORE.iter().find(|(known, _)| is(known)) {
        // A plain JOIN comes behind the table.
        return before(allowed) || is("join");
    }
    if is("over") || is("filter") {
        return at > 0 && words.kind(at - 1) == Kind::Close;
    }
    if is("set") {
        return words.is(0, "update") || words.has("update");
    }
    // Operators that are keywords; the functions that could be called so are built-in.
    ["like", "ilike", "is", "overlaps", "escape"]
        .iter()
        .any(|known| is(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted() {
        assert!(HARMLESS.is_sorted());
    }
}
