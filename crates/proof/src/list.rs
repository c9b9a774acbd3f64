//! Properties of built-in functions, and of some functions of extensions.

use crate::settings;

/// The behaviour of a function if rows of several clients are evaluated together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Company {
    /// The function returns the same as if it ran for one client alone.
    Same,
    /// The function depends on the session, transaction or snapshot, or changes something, but
    /// leaves no state in the session.
    Differs,
    /// The function reads a setting: that of the client, unless Windrow's connection has one for
    /// itself.
    Setting,
    /// The function takes a value from a sequence, or reads the last one.
    Sequence,
    /// The function is unknown: it may leave something behind.
    Unknown,
}

/// Returns the behaviour of a built-in function. `volatility` is `pg_proc.provolatile`.
pub fn company(name: &str, volatility: u8) -> Company {
    let name = name.strip_prefix("pg_catalog.").unwrap_or(name);
    let is_in = |list: &str| list.split_ascii_whitespace().any(|known| known == name);
    if name == settings::FUNCTION {
        Company::Setting
    } else if is_in(SEQUENCE) {
        Company::Sequence
    } else if is_in(RUNS) {
        Company::Unknown
    } else if volatility == b'i' || is_in(SAME) {
        Company::Same
    } else if volatility == b's' || is_in(LEAVES_NOTHING) {
        Company::Differs
    } else {
        Company::Unknown
    }
}

/// The functions for sequences.
const SEQUENCE: &str = "nextval currval lastval setval";

/// Functions that are not volatile or look harmless, but run a given query or read a view.
const RUNS: &str = "cursor_to_xml cursor_to_xmlschema query_to_xml query_to_xml_and_xmlschema query_to_xmlschema \
    table_to_xml table_to_xml_and_xmlschema table_to_xmlschema schema_to_xml schema_to_xml_and_xmlschema \
    schema_to_xmlschema database_to_xml database_to_xml_and_xmlschema database_to_xmlschema ts_stat ts_rewrite \
    pg_get_publication_tables pg_event_trigger_ddl_commands pg_event_trigger_dropped_objects";

/// Stable and volatile functions whose value for a row depends neither on the rows beside it nor on
/// the connection: the transaction's time, the role, chance, conversions that settings guide, the
/// catalog. Functions that tell how a value is stored or typed (`pg_column_size`) are none of them:
/// in company a value comes out of an array.
const SAME: &str = "now transaction_timestamp statement_timestamp clock_timestamp timeofday \
    random random_normal gen_random_uuid uuidv4 uuidv7 \
    current_user session_user current_database current_schema current_schemas getpgusername \
    getdatabaseencoding version pg_client_encoding get_current_ts_config \
    anytextcat textanycat concat concat_ws format format_type array_to_string length convert convert_from convert_to \
    quote_literal quote_nullable xml xml_is_well_formed \
    array_in array_out array_recv array_send array_to_json bpcharrecv bpcharsend cash_in cash_out date_in date_out \
    domain_in domain_recv enum_in enum_out enum_recv enum_send enum_first enum_last enum_range \
    interval_in interval_out multirange_in multirange_out multirange_recv multirange_send namerecv namesend \
    range_in range_out range_recv range_send record_in record_out record_recv record_send \
    regclass regclassin regclassout regcollationin regcollationout regconfigin regconfigout regdictionaryin \
    regdictionaryout regnamespacein regnamespaceout regoperatorin regoperatorout regoperin regoperout regprocedurein \
    regprocedureout regprocin regprocout regrolein regroleout regtypein regtypeout textrecv textsend time_in time_out \
    timestamp_in timestamp_out timestamptz_in timestamptz_out timetz_in timetz_out varcharrecv varcharsend xml_in \
    xml_recv xml_send \
    date date_cmp_timestamptz date_eq_timestamptz date_ge_timestamptz date_gt_timestamptz date_le_timestamptz \
    date_lt_timestamptz date_ne_timestamptz date_part date_trunc date_add date_subtract extract generate_series in_range \
    interval_pl_timestamptz make_timestamptz money numeric overlaps time timestamp timestamp_cmp_timestamptz \
    timestamp_eq_timestamptz timestamp_ge_timestamptz timestamp_gt_timestamptz timestamp_le_timestamptz \
    timestamp_lt_timestamptz timestamp_ne_timestamptz timestamptz timestamptz_cmp_date timestamptz_cmp_timestamp \
    timestamptz_eq_date timestamptz_eq_timestamp timestamptz_ge_date timestamptz_ge_timestamp timestamptz_gt_date \
    timestamptz_gt_timestamp timestamptz_le_date timestamptz_le_timestamp timestamptz_lt_date \
    timestamptz_lt_timestamp timestamptz_mi_interval timestamptz_ne_date timestamptz_ne_timestamp \
    timestamptz_pl_interval timetz timezone to_char to_date to_number to_timestamp \
    json_build_array json_build_object json_object_agg json_agg jsonb_agg jsonb_object_agg json_populate_record \
    json_to_record json_to_tsvector jsonb_build_array jsonb_build_object jsonb_path_exists_tz jsonb_path_match_tz \
    jsonb_path_query_array_tz jsonb_path_query_first_tz jsonb_path_query_tz jsonb_populate_record jsonb_to_record \
    jsonb_to_tsvector row_to_json to_json to_jsonb \
    to_regclass to_regcollation to_regnamespace to_regoper to_regoperator to_regproc to_regprocedure to_regrole \
    to_regtype phraseto_tsquery plainto_tsquery to_tsquery to_tsvector ts_headline ts_match_tq ts_match_tt \
    websearch_to_tsquery";

/// Volatile functions that leave nothing in their session once the transaction has ended.
const LEAVES_NOTHING: &str = "pg_notify pg_sleep pg_sleep_for pg_sleep_until current_query pg_cancel_backend \
    pg_terminate_backend pg_is_in_recovery pg_relation_size pg_table_size pg_indexes_size pg_total_relation_size \
    pg_database_size pg_tablespace_size pg_advisory_xact_lock pg_advisory_xact_lock_shared pg_try_advisory_xact_lock \
    pg_try_advisory_xact_lock_shared pg_blocking_pids pg_safe_snapshot_blocking_pids pg_xact_status txid_status \
    pg_current_wal_lsn pg_current_wal_insert_lsn pg_current_wal_flush_lsn pg_last_wal_receive_lsn \
    pg_last_wal_replay_lsn pg_last_xact_replay_timestamp pg_lock_status pg_notification_queue_usage \
    pg_partition_tree pg_partition_ancestors pg_prepared_xact pg_sequence_last_value pg_stat_file pg_read_file \
    pg_read_binary_file pg_ls_dir pg_ls_logdir pg_ls_waldir pg_ls_tmpdir pg_current_logfile pg_reload_conf \
    lo_create lo_creat lo_from_bytea lo_get lo_put lo_unlink lo_import lo_export lo_open lo_close loread lowrite lo_lseek \
    lo_lseek64 lo_tell lo_tell64 lo_truncate lo_truncate64 pg_xact_commit_timestamp pg_last_committed_xact \
    bernoulli system";

/// Functions of extensions, written in C, that are not immutable but return the same together with
/// other rows.
const OF_EXTENSIONS: &str = "uuid_generate_v1 uuid_generate_v1mc uuid_generate_v3 uuid_generate_v4 uuid_generate_v5 \
    gen_random_bytes gen_random_uuid gen_salt unaccent time_bucket ulid_generate";

/// Returns true for such a function, by the name without its schema.
pub(crate) fn is_of_extension(name: &str) -> bool {
    OF_EXTENSIONS
        .split_ascii_whitespace()
        .any(|known| known == name)
}

/// Returns true for trigger functions that only read their row. `built_in` is true for the server's
/// own.
pub(crate) fn guards(name: &str, built_in: bool) -> bool {
    match built_in {
        true => {
            name.starts_with("RI_FKey_")
                || matches!(
                    name,
                    "unique_key_recheck"
                        | "tsvector_update_trigger"
                        | "tsvector_update_trigger_column"
                        | "suppress_redundant_updates_trigger"
                )
        }
        // TimescaleDB's guard of a hypertable's root, and its note of changes for continuous
        // aggregates. The note consists of ranges, so several rows may share one.
        false => matches!(
            name,
            "moddatetime"
                | "insert_username"
                | "ts_insert_blocker"
                | "insert_blocker"
                | "continuous_agg_invalidation_trigger"
                | "citus_truncate_trigger"
        ),
    }
}

/// Returns true for functions that the body of a harmless trigger may call: they are built in and
/// depend only on their row.
pub(crate) fn may_call(name: &str) -> bool {
    PLAIN.split_ascii_whitespace().any(|known| known == name)
}

const PLAIN: &str = "now transaction_timestamp statement_timestamp clock_timestamp timeofday random gen_random_uuid \
    current_setting current_database to_char to_date to_number to_timestamp date_trunc date_part make_date make_time \
    make_timestamp make_timestamptz make_interval isfinite timezone justify_days justify_hours justify_interval \
    lower upper initcap length char_length character_length octet_length bit_length trim btrim ltrim rtrim substr \
    substring left right lpad rpad repeat reverse replace translate overlay split_part strpos starts_with concat \
    concat_ws format chr ascii md5 sha224 sha256 sha384 sha512 encode decode quote_ident quote_literal \
    quote_nullable regexp_replace regexp_match regexp_like regexp_count regexp_substr string_to_array array_to_string to_hex \
    abs ceil ceiling floor round trunc mod power sqrt exp ln log sign div gcd lcm width_bucket degrees radians \
    sin cos tan asin acos atan atan2 pi hashtext hashtextextended \
    array_append array_prepend array_cat array_remove array_replace array_length array_upper array_lower array_position \
    array_ndims cardinality \
    to_json to_jsonb row_to_json json_build_object json_build_array jsonb_build_object jsonb_build_array jsonb_set \
    jsonb_set_lax jsonb_insert jsonb_strip_nulls json_strip_nulls jsonb_typeof json_typeof jsonb_pretty \
    jsonb_extract_path jsonb_extract_path_text json_extract_path json_extract_path_text jsonb_array_length \
    json_array_length jsonb_exists jsonb_contains to_tsvector setweight strip plainto_tsquery to_tsquery \
    num_nulls num_nonnulls int4range int8range numrange daterange tsrange tstzrange isempty lower_inc upper_inc \
    host network masklen family point uuidv4 uuidv7 pg_typeof normalize unistr";
