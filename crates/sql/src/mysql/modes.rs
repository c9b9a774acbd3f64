//! The settings of a session that decide how its texts are parsed.

/// The parts of `sql_mode` and of the connection that decide how a text is cut into tokens and
/// read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Modes {
    /// True if `".."` is a name and not a string.
    pub ansi_quotes: bool,
    /// True if a backslash in a string is an ordinary character.
    pub no_backslash_escapes: bool,
    /// True if the server is MariaDB.
    pub is_mariadb: bool,
}

/// Modes that do not change how a text is parsed here. Some change the meaning of expressions, but
/// of none that is taken apart here.
#[rustfmt::skip]
const HARMLESS: [&str; 27] = [
    "allow_invalid_dates", "empty_string_is_null", "error_for_division_by_zero",
    "high_not_precedence", "ignore_bad_table_options", "ignore_space", "no_auto_create_user",
    "no_auto_value_on_zero", "no_dir_in_create", "no_engine_substitution", "no_field_options",
    "no_key_options", "no_table_options", "no_unsigned_subtraction", "no_zero_date",
    "no_zero_in_date", "not_used", "only_full_group_by", "pad_char_to_full_length",
    "pipes_as_concat", "real_as_float", "simultaneous_assignment", "strict_all_tables",
    "strict_trans_tables", "time_round_fractional", "time_truncate_fractional", "traditional",
];

impl Modes {
    /// Reads the value of `sql_mode` as the server shows it. `None` if it contains a mode under
    /// which nothing is joined: `ORACLE`, `MSSQL` and similar ones, and unknown modes.
    pub fn of(sql_mode: &str, is_mariadb: bool) -> Option<Self> {
        let mut modes = Self {
            is_mariadb,
            ..Self::default()
        };
        for mode in sql_mode.split(',').filter(|mode| !mode.is_empty()) {
            match &*mode.to_ascii_lowercase() {
                // The server also lists the modes that ANSI stands for.
                "ansi" => {}
                "ansi_quotes" => modes.ansi_quotes = true,
                "no_backslash_escapes" => modes.no_backslash_escapes = true,
                mode if HARMLESS.binary_search(&mode).is_ok() => {}
                _ => return None,
            }
        }
        Some(modes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_read_as_the_server_shows_them() {
        assert!(HARMLESS.is_sorted());
        assert_eq!(Modes::of("", false), Some(Modes::default()));
        let modes = Modes::of(
            "REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,ANSI,STRICT_TRANS_TABLES",
            true,
        );
        let expected = Modes {
            ansi_quotes: true,
            is_mariadb: true,
            ..Modes::default()
        };
        assert_eq!(modes, Some(expected));
        for mode in ["ORACLE", "MSSQL", "POSTGRESQL", "DB2", "MAXDB", "INVENTED"] {
            assert_eq!(Modes::of(&format!("STRICT_ALL_TABLES,{mode}"), true), None);
        }
    }
}
