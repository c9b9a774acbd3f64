//! The settings of a lane's sessions that decide which rows another session stores the same.
//!
//! Rows that clients have spooled, or write under a key, are written by a connection of Windrow's
//! own: in UTC, with all checks, and otherwise with the server's settings for a new connection.

use windrow_mysqlwire::LaneLogin;

use super::lane_settings::ServerVariables;

/// Settings that must be on, as in the connection that writes rows.
const CHECKS: [&str; 3] = [
    "check_constraint_checks",
    "foreign_key_checks",
    "unique_checks",
];

/// Settings that must be those of a new connection.
const NUMBERING: [&str; 2] = ["auto_increment_increment", "auto_increment_offset"];

/// Settings that may decide what an expression of the table gives.
const OF_EXPRESSIONS: [&str; 4] = [
    "default_week_format",
    "div_precision_increment",
    "lc_time_names",
    "old_mode",
];

/// Parts of `sql_mode` that no value and no expression of a table depends on.
const MODES_OF_TEXTS: [&str; 9] = [
    "ANSI",
    "ANSI_QUOTES",
    "IGNORE_SPACE",
    "NO_AUTO_CREATE_USER",
    "NO_BACKSLASH_ESCAPES",
    "NO_DIR_IN_CREATE",
    "NO_ENGINE_SUBSTITUTION",
    "ONLY_FULL_GROUP_BY",
    "PAD_CHAR_TO_FULL_LENGTH",
];

/// The facts about the settings of a lane's sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowSettings {
    /// The reason why no other session may write their rows.
    pub(super) refusal: Option<&'static str>,
    /// True if times are in UTC.
    pub(super) is_utc: bool,
    /// True if expressions of a table give the same in the connection that writes rows.
    pub(super) is_usual: bool,
    /// True if both refuse values that do not fit.
    pub(super) is_strict: bool,
    /// The last character that texts keep on their way to a column.
    pub(super) last_char: char,
    /// True if the bytes of a text are the bytes that the client has sent.
    pub(super) keeps_bytes: bool,
    /// True if a backslash in a text is an escape.
    pub(super) has_escapes: bool,
    /// True if `".."` is a name.
    pub(super) has_ansi_quotes: bool,
}

impl RowSettings {
    /// The settings of a connection that has not been asked for its own.
    pub(super) const UNKNOWN: Self = Self {
        refusal: Some("the settings of the session are not known"),
        is_utc: false,
        is_usual: false,
        is_strict: false,
        last_char: '\x7f',
        keeps_bytes: false,
        has_escapes: true,
        has_ansi_quotes: false,
    };

    /// Returns the facts. `known`: the variables of a new connection.
    pub(super) fn of(login: &LaneLogin, known: &ServerVariables) -> Self {
        let of_session = |name: &str| login.variable(name).unwrap_or_default();
        let usual = |name: &str| known.of_new_connection(login, name);
        let is_same = |name: &&str| login.variable(name).is_none_or(|set| set == usual(name));
        let modes = |list: &str| list.split(',').map(str::to_owned).collect::<Vec<_>>();
        let (mode, usual_mode) = (modes(of_session("sql_mode")), modes(usual("sql_mode")));
        let has = |list: &[String], name: &str| list.iter().any(|mode| mode == name);
        let is_strict =
            |list: &[String]| has(list, "STRICT_TRANS_TABLES") || has(list, "STRICT_ALL_TABLES");
        let is_utc = match of_session("time_zone") {
            "SYSTEM" => known.get("system_time_zone") == "UTC",
            zone => matches!(zone, "+00:00" | "UTC"),
        };
        let charsets = ["character_set_client", "character_set_connection"].map(of_session);
        let last = charsets.map(last_char);
        let is_on = |name: &&str| login.variable(name).is_none_or(|set| set == "1");
        let refusal = if !CHECKS.iter().all(is_on) {
            Some("foreign_key_checks, unique_checks or check_constraint_checks is off")
        } else if !NUMBERING.iter().all(is_same) {
            Some("auto_increment_increment or auto_increment_offset is not the server's")
        } else if [&mode, &usual_mode].map(|list| has(list, "EMPTY_STRING_IS_NULL")) != [false; 2] {
            Some("sql_mode has EMPTY_STRING_IS_NULL")
        } else if last.contains(&None) {
            Some("the character set of the session is none of utf8mb4, utf8mb3, latin1 and ascii")
        } else {
            None
        };
        Self {
            refusal,
            is_utc,
            is_usual: is_utc
                && OF_EXPRESSIONS.iter().all(is_same)
                && of_values(&mode) == of_values(&usual_mode),
            is_strict: is_strict(&mode) && is_strict(&usual_mode),
            last_char: last.into_iter().flatten().min().unwrap_or('\x7f'),
            keeps_bytes: charsets[0] == charsets[1],
            has_escapes: !has(&mode, "NO_BACKSLASH_ESCAPES"),
            has_ansi_quotes: has(&mode, "ANSI_QUOTES"),
        }
    }
}

/// Returns the modes that values or expressions of a table may depend on.
fn of_values(modes: &[String]) -> Vec<&str> {
    let modes = modes.iter().map(String::as_str);
    modes
        .filter(|mode| !MODES_OF_TEXTS.contains(mode))
        .collect()
}

/// Returns the last character that a text in a character set certainly keeps. `None`: a byte below
/// 0x80 may not be a character of its own.
fn last_char(charset: &str) -> Option<char> {
    match charset {
        "utf8mb4" => Some(char::MAX),
        "utf8mb3" | "utf8" => Some('\u{ffff}'),
        "latin1" | "ascii" => Some('\x7f'),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use windrow_mysqlwire::Credential;

    use super::*;

    /// Returns the facts about a session with settings, if a new connection has others.
    fn of(set: &[(&'static str, &str)]) -> RowSettings {
        let usual = [
            ("auto_increment_increment", "1"),
            ("character_set_client", "utf8mb4"),
            ("character_set_connection", "utf8mb4"),
            ("div_precision_increment", "4"),
            ("foreign_key_checks", "1"),
            ("sql_mode", "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION"),
            ("time_zone", "SYSTEM"),
        ];
        let value = |name, usual: &str| {
            let set = set.iter().find(|(known, _)| *known == name);
            Some(set.map_or(usual, |(_, value)| value).into())
        };
        let variables = usual
            .iter()
            .map(|(name, usual)| (*name, value(*name, usual)));
        let login = LaneLogin {
            user: b"app"[..].into(),
            credential: Credential::Password("".into()),
            database: None,
            counts_found_rows: false,
            ignores_space: false,
            has_extended_metadata: false,
            variables: variables.collect(),
        };
        let zone = ("system_time_zone".to_owned(), "UTC".to_owned());
        let known = ServerVariables {
            shown: [zone].into(),
            of_login: usual.map(|(_, value)| Some(value.to_owned())).into(),
        };
        RowSettings::of(&login, &known)
    }

    #[test]
    fn the_servers_own_settings_allow_all() {
        let all = of(&[]);
        assert_eq!(all.refusal, None);
        assert!(all.is_utc && all.is_usual && all.is_strict && all.keeps_bytes);
        assert_eq!(all.last_char, char::MAX);
    }

    #[test]
    fn settings_that_change_values_are_noticed() {
        assert!(!of(&[("time_zone", "+02:00")]).is_utc);
        assert!(of(&[("time_zone", "+00:00")]).is_usual);
        assert!(!of(&[("div_precision_increment", "5")]).is_usual);
        assert!(of(&[("sql_mode", "STRICT_TRANS_TABLES,ONLY_FULL_GROUP_BY")]).is_usual);
        let lax = of(&[("sql_mode", "")]);
        assert!(!lax.is_usual && !lax.is_strict && lax.refusal.is_none());
        assert!(!of(&[("sql_mode", "NO_BACKSLASH_ESCAPES")]).has_escapes);
        let latin = of(&[("character_set_connection", "latin1")]);
        assert_eq!((latin.last_char, latin.keeps_bytes), ('\x7f', false));
        for set in [
            ("foreign_key_checks", "0"),
            ("auto_increment_increment", "10"),
            ("character_set_client", "sjis"),
            ("sql_mode", "EMPTY_STRING_IS_NULL"),
        ] {
            assert!(of(&[set]).refusal.is_some(), "{set:?}");
        }
    }
}
