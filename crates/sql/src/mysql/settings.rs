//! The effect of SET, and of statements in general.

use super::reader::{Reader, unquote};
use crate::lex::TokenKind;
use crate::parse::{Refusal, SYNTAX};
use crate::word::listed;

/// The effect of a statement on its session, as far as joined writes depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEffect {
    /// Nothing that a joined write depends on.
    Nothing,
    /// Settings may have changed, so their values must be asked for again.
    Settings,
    /// The same, and parameters of prepared statements have the collation of texts: SET NAMES.
    Names,
    /// The same, but parameters of prepared statements may have another collation than texts, which
    /// no variable shows.
    Collations,
    /// The session may differ from others in a way that is not tracked: it is relayed until it is
    /// reset. The reason is a short phrase.
    Unknown(&'static str),
}

impl SessionEffect {
    /// Returns the effect of this one and one that follows it.
    pub fn and(self, next: Self) -> Self {
        match (self, next) {
            (Self::Unknown(_), _) | (_, Self::Nothing) => self,
            (Self::Names | Self::Collations, Self::Settings) => self,
            _ => next,
        }
    }

    /// Returns true if settings may have changed, so their values must be asked for again.
    pub fn changes_settings(self) -> bool {
        matches!(self, Self::Settings | Self::Names | Self::Collations)
    }
}

const READ_ONLY: Refusal = "a session that may not write";
const ONE_TRANSACTION: Refusal = "a setting of the next transaction";

/// Variables whose values decide in which lane a session's writes are joined.
#[rustfmt::skip]
const OF_LANES: [&str; 26] = [
    "auto_increment_increment", "auto_increment_offset", "character_set_client",
    "character_set_connection", "character_set_results", "check_constraint_checks",
    "collation_connection", "default_week_format", "div_precision_increment",
    "explicit_defaults_for_timestamp", "foreign_key_checks", "innodb_lock_wait_timeout",
    "lc_messages", "lc_time_names", "max_error_count", "old_mode", "session_track_gtids",
    "session_track_transaction_info", "sql_mode", "sql_notes", "sql_quote_show_create",
    "sql_safe_updates", "time_zone", "transaction_isolation", "tx_isolation", "unique_checks",
];

/// Variables whose change leaves parameters of prepared statements another collation than texts:
/// parameters keep that of the last SET NAMES, or of the login.
const OF_COLLATIONS: [&str; 3] = [
    "character_set_client",
    "character_set_connection",
    "collation_connection",
];

/// Variables that no single-row write depends on, and the one that the status of each answer shows.
#[rustfmt::skip]
const HARMLESS: [&str; 46] = [
    "autocommit", "bulk_insert_buffer_size", "character_set_server", "collation_server",
    "cte_max_recursion_depth", "default_storage_engine",
    "default_tmp_storage_engine", "eq_range_index_dive_limit", "group_concat_max_len",
    "histogram_size", "histogram_type", "in_predicate_conversion_threshold",
    "information_schema_stats_expiry", "innodb_strict_mode", "interactive_timeout",
    "join_buffer_size", "log_slow_verbosity", "long_query_time", "max_delayed_threads",
    "max_execution_time", "max_heap_table_size", "max_length_for_sort_data",
    "max_recursive_iterations", "min_examined_row_limit", "myisam_sort_buffer_size",
    "net_buffer_length", "net_read_timeout", "net_retry_count", "net_write_timeout",
    "preload_buffer_size", "profiling_history_size", "query_cache_type", "read_buffer_size",
    "read_rnd_buffer_size", "session_track_schema", "session_track_state_change",
    "session_track_system_variables", "slow_query_log", "sort_buffer_size", "sql_buffer_result",
    "sql_log_off", "sql_select_limit", "storage_engine", "tmp_table_size", "use_stat_tables",
    "wait_timeout",
];

/// Variables that are harmless while they are off. Otherwise they change a write, its answer, or
/// what the server keeps about it.
#[rustfmt::skip]
const HARMLESS_OFF: [&str; 5] = [
    "max_statement_time", "profiling", "sql_auto_is_null", "transaction_read_only", "tx_read_only",
];

/// Variables that a write reads, with the reason why a session that sets them is relayed.
const OF_WRITES: [(&str, Refusal); 12] = [
    ("gtid", "a setting of replication"),
    ("binlog", "a setting of replication"),
    ("identity", "LAST_INSERT_ID with a value"),
    ("insert_id", "the id of the next row"),
    ("last_insert_id", "LAST_INSERT_ID with a value"),
    ("pseudo", "a setting of replication"),
    ("rand_seed", "a seed of RAND"),
    ("server_id", "a setting of replication"),
    ("skip_replication", "a setting of replication"),
    ("sql_log_bin", "a setting of replication"),
    ("timestamp", "a time of its own"),
    ("wsrep", "a setting of replication"),
];

/// Returns the effect of a SET.
pub(super) fn set(reader: &mut Reader<'_>) -> Result<SessionEffect, Refusal> {
    reader.at = 1;
    for (word, reason) in [
        ("statement", "SET STATEMENT"),
        ("role", "SET ROLE"),
        ("password", "SET PASSWORD"),
        ("resource", "SET RESOURCE GROUP"),
        ("transaction", ONE_TRANSACTION),
    ] {
        let is_variable = reader.is_operator_at(2, "=") || reader.is_operator_at(2, ":=");
        if reader.is_word_at(1, word) && (!is_variable || word == "password") {
            return Err(reason);
        }
    }
    if reader.words(&["default", "role"]) {
        return Ok(SessionEffect::Nothing);
    }
    if reader.is_word_at(2, "transaction") {
        return transactions(reader);
    }
    let effects = reader.list(assignment)?;
    let effect = effects
        .into_iter()
        .fold(SessionEffect::Nothing, SessionEffect::and);
    match reader.kind() {
        TokenKind::End => Ok(effect),
        _ => Err(SYNTAX),
    }
}

/// Returns the effect of `SET SESSION TRANSACTION`.
fn transactions(reader: &Reader<'_>) -> Result<SessionEffect, Refusal> {
    if reader.is_word_at(1, "global") {
        return Ok(SessionEffect::Nothing);
    }
    let mut at = 3;
    while reader.kind_at(at) != TokenKind::End {
        if reader.is_word_at(at, "only") {
            return Err(READ_ONLY);
        }
        at += 1;
    }
    Ok(SessionEffect::Settings)
}

/// The sessions in which an assignment has an effect.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// This session.
    Session,
    /// This session, or only its next transaction.
    Next,
    /// Later sessions.
    Global,
}

fn assignment(reader: &mut Reader<'_>) -> Result<SessionEffect, Refusal> {
    if reader.word("names") {
        skip_value(reader);
        return Ok(SessionEffect::Names);
    }
    if reader.word("charset") || reader.words(&["character", "set"]) {
        skip_value(reader);
        return Ok(SessionEffect::Collations);
    }
    if reader.is_operator_at(reader.at, "@") {
        reader.at += 1;
        name(reader)?;
        while reader.take(TokenKind::Dot) {
            name(reader)?;
        }
        value(reader)?;
        return Ok(SessionEffect::Nothing);
    }
    let (scope, name) = variable(reader)?;
    let value = value(reader)?;
    match scope {
        Scope::Global => Ok(SessionEffect::Nothing),
        _ => classify(&name, scope, value),
    }
}

fn classify(name: &str, scope: Scope, value: &str) -> Result<SessionEffect, Refusal> {
    let is_off = ["0", "off", "false", "'off'"]
        .iter()
        .any(|off| off.eq_ignore_ascii_case(value));
    let is_of_transaction = matches!(
        name,
        "tx_isolation" | "transaction_isolation" | "tx_read_only" | "transaction_read_only"
    );
    if scope == Scope::Next && is_of_transaction {
        return Err(ONE_TRANSACTION);
    }
    if OF_COLLATIONS.contains(&name) {
        return Ok(SessionEffect::Collations);
    }
    if listed(&OF_LANES, name) {
        return Ok(SessionEffect::Settings);
    }
    let is_harmless = listed(&HARMLESS, name)
        || (name.starts_with("optimizer_") && !name.starts_with("optimizer_trace"))
        || (is_off && listed(&HARMLESS_OFF, name));
    if is_harmless {
        return Ok(SessionEffect::Nothing);
    }
    if matches!(name, "tx_read_only" | "transaction_read_only") {
        return Err(READ_ONLY);
    }
    let mut reasons = OF_WRITES.iter();
    let known = reasons.find(|(beginning, _)| name.starts_with(beginning));
    Err(known.map_or("a variable that is not followed", |(_, reason)| *reason))
}

/// Reads the name of a system variable with its scope.
fn variable(reader: &mut Reader<'_>) -> Result<(Scope, String), Refusal> {
    let has_signs = reader.is_operator_at(reader.at, "@@");
    reader.at += usize::from(has_signs);
    let is_scope = match has_signs {
        true => reader.kind_at(reader.at + 1) == TokenKind::Dot,
        false => matches!(
            reader.kind_at(reader.at + 1),
            TokenKind::Word | TokenKind::Quoted
        ),
    };
    if !is_scope {
        let scope = match has_signs {
            true => Scope::Next,
            false => Scope::Session,
        };
        return Ok((scope, name(reader)?));
    }
    let scope = match &*name(reader)? {
        "session" | "local" => Scope::Session,
        "global" | "persist" | "persist_only" => Scope::Global,
        _ => return Err(SYNTAX),
    };
    if has_signs {
        reader.expect(TokenKind::Dot)?;
    }
    Ok((scope, name(reader)?))
}

/// Reads a name, folded. The name of a user variable may be in quotes of any kind.
pub(super) fn name(reader: &mut Reader<'_>) -> Result<String, Refusal> {
    let slice = reader.slice_at(reader.at);
    let name = match reader.kind() {
        TokenKind::Word => slice.to_ascii_lowercase(),
        TokenKind::Quoted | TokenKind::Text => unquote(slice).to_ascii_lowercase(),
        _ => return Err(SYNTAX),
    };
    reader.at += 1;
    Ok(name)
}

/// Reads `= value` and returns the value.
fn value<'a>(reader: &mut Reader<'a>) -> Result<&'a str, Refusal> {
    if !reader.is_operator_at(reader.at, "=") && !reader.is_operator_at(reader.at, ":=") {
        return Err(SYNTAX);
    }
    reader.at += 1;
    let from = reader.at;
    skip_value(reader);
    Ok(reader.text_of(from, reader.at))
}

/// Skips up to the next assignment.
pub(super) fn skip_value(reader: &mut Reader<'_>) {
    let mut depth = 0_u32;
    loop {
        match reader.kind() {
            TokenKind::Comma if depth == 0 => return,
            TokenKind::End => return,
            TokenKind::Open => depth += 1,
            TokenKind::Close => depth = depth.saturating_sub(1),
            _ => {}
        }
        reader.at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted() {
        assert!(OF_LANES.is_sorted());
        assert!(HARMLESS.is_sorted());
        assert!(HARMLESS_OFF.is_sorted());
    }
}
