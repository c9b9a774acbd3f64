use super::*;

const PLAIN: Modes = Modes {
    ansi_quotes: false,
    no_backslash_escapes: false,
    is_mariadb: false,
};

/// A text's lifted text and its literals.
#[track_caller]
fn gives(text: &str, lifted: &str, literals: &[&str]) {
    gives_in(PLAIN, text, lifted, literals);
}

#[track_caller]
fn gives_in(modes: Modes, text: &str, lifted: &str, literals: &[&str]) {
    let found = lift(text, modes).unwrap_or_else(|| panic!("not lifted: {text}"));
    let places = found.literals.iter();
    let spelled: Vec<_> = places.map(|place| &text[place.clone()]).collect();
    assert_eq!((&*found.text, &*spelled), (lifted, literals), "{text}");
}

#[track_caller]
fn stays(text: &str) {
    assert_eq!(lift(text, PLAIN), None, "{text}");
}

#[test]
fn literals_of_all_kinds_are_lifted() {
    for literal in [
        "1",
        "-1",
        "+1",
        "- 1",
        "1.5",
        "1.",
        ".5",
        "-.5",
        "1e3",
        "1E+3",
        "1.5e-3",
        "0x1F",
        "0b01",
        "x'1F'",
        "X'1f'",
        "b'01'",
        "B''",
        "'x'",
        "\"x\"",
        "N'x'",
        "n'x'",
        "_utf8mb4'x'",
        "_utf8mb4 'x'",
        "_latin1 0x41",
        "_binary x'41'",
        "'a' 'b'",
        "'a'\n\"b\" 'c'",
        "_utf8'a' 'b'",
        "DATE'2026-01-01'",
        "timestamp '2026-01-01 00:00:00'",
        "TIME \"1:2:3\"",
        "NULL",
        "null",
        "True",
        "false",
        r"'a\'b'",
        "'a\0b'",
        "'\\\0'",
        "'a''b'",
        r#"'a"b'"#,
        r#""a'b""#,
        r#""a""b""#,
        r"'\\'",
        r"'--'",
        "'#'",
        "'/*!'",
        "'?'",
        "';'",
        "'größe'",
        "'\u{1F600}'",
        "''",
    ] {
        for (before, after) in [("(", ")"), ("(a, ", ", b)"), ("( ", " )")] {
            let text = format!("INSERT INTO t VALUES {before}{literal}{after}");
            let lifted = format!("INSERT INTO t VALUES {before}?{after}");
            gives(&text, &lifted, &[literal]);
        }
        gives(
            &format!("UPDATE t SET a={literal} WHERE b"),
            "UPDATE t SET a=? WHERE b",
            &[literal],
        );
    }
}

#[test]
fn words_that_are_no_whole_value_stay() {
    gives(
        "INSERT INTO t VALUES (NULL IS NULL, IF(TRUE, NULL, 1), a.null, NULL)",
        "INSERT INTO t VALUES (NULL IS NULL, IF(TRUE, NULL, ?), a.null, ?)",
        &["1", "NULL"],
    );
    gives(
        "UPDATE t SET a = NULL, b = NULL + 1 WHERE c = NULL AND d IS NULL",
        "UPDATE t SET a = ?, b = NULL + ? WHERE c = NULL AND d IS NULL",
        &["NULL", "1"],
    );
    gives(
        "INSERT t SET a = NULL ON DUPLICATE KEY UPDATE a = NULL, b = VALUES(b) + 1",
        "INSERT t SET a = ? ON DUPLICATE KEY UPDATE a = ?, b = VALUES(b) + ?",
        &["NULL", "NULL", "1"],
    );
    gives(
        "INSERT INTO t VALUES (DATE(a), date, timestamp, _a)",
        "INSERT INTO t VALUES (DATE(a), date, timestamp, _a)",
        &[],
    );
}

#[test]
fn a_sign_belongs_to_the_number_where_an_expression_begins() {
    gives(
        "UPDATE t SET a = a - 5, b = -5, c = 5--5, d = -a WHERE id = - 7",
        "UPDATE t SET a = a - ?, b = ?, c = ?--?, d = -a WHERE id = ?",
        &["5", "-5", "5", "5", "- 7"],
    );
}

#[test]
fn space_and_comments_make_no_difference() {
    for text in [
        "INSERT INTO t VALUES (1, 'a')",
        " INSERT\n\tINTO  t VALUES\r\n(1, 'a') ; ",
        "/* x */ INSERT /**/ INTO t -- it's\nVALUES # \"\n(1,/*;*/'a')--",
        "INSERT INTO t VALUES (1, 'a')-- \n#",
        "INSERT INTO t VALUES (1, 'a');\t \n",
    ] {
        gives(text, "INSERT INTO t VALUES (?, ?)", &["1", "'a'"]);
    }
    gives(
        "UPDATE t SET a='x'WHERE b=1 AND/**/c=2",
        "UPDATE t SET a=? WHERE b=? AND c=?",
        &["'x'", "1", "2"],
    );
    gives(
        "INSERT INTO t VALUES (NOW/**/())",
        "INSERT INTO t VALUES (NOW ())",
        &[],
    );
}

#[test]
fn nothing_is_lifted_behind_limit_and_returning() {
    gives(
        "DELETE FROM t WHERE a = 1 LIMIT 1",
        "DELETE FROM t WHERE a = ? LIMIT 1",
        &["1"],
    );
    gives(
        "INSERT INTO t VALUES (1) RETURNING a + 1, 'x'",
        "INSERT INTO t VALUES (?) RETURNING a + 1, 'x'",
        &["1"],
    );
}

#[test]
fn settings_decide_where_strings_end() {
    let backslash = Modes {
        no_backslash_escapes: true,
        ..PLAIN
    };
    gives_in(
        backslash,
        r"INSERT INTO t VALUES ('a\', 'b')",
        "INSERT INTO t VALUES (?, ?)",
        &[r"'a\'", "'b'"],
    );
    let ansi = Modes {
        ansi_quotes: true,
        ..PLAIN
    };
    gives_in(
        ansi,
        r#"INSERT INTO "t" ("a\") VALUES ('"')"#,
        r#"INSERT INTO "t" ("a\") VALUES (?)"#,
        &["'\"'"],
    );
    gives(
        "INSERT INTO `t``'` (`a\\`) VALUES (1)",
        "INSERT INTO `t``'` (`a\\`) VALUES (?)",
        &["1"],
    );
}

#[test]
fn any_doubt_keeps_a_text() {
    for text in [
        "",
        "SELECT 1",
        "INSERTED",
        "REPLACE INTO t SELECT 1",
        "INSERT INTO t VALUES (1), (2)",
        "INSERT INTO t VALUES (1); DELETE FROM t",
        "INSERT INTO t VALUES (?)",
        "INSERT INTO t VALUES (@a)",
        "INSERT INTO t VALUES (@@a)",
        "INSERT INTO t VALUES (a := 1)",
        r"INSERT INTO t VALUES (\N)",
        "INSERT /*! IGNORE */ INTO t VALUES (1)",
        "INSERT /*M! IGNORE */ INTO t VALUES (1)",
        "INSERT /*+ x */ INTO t VALUES (1)",
        "INSERT INTO t VALUES ('a)",
        "INSERT INTO t VALUES (1) /* a",
        "INSERT INTO 1a VALUES (1)",
        "INSERT INTO t.1a VALUES (1)",
        "INSERT INTO t VALUES (1a)",
        "INSERT INTO t VALUES (0x)",
        "INSERT INTO t VALUES (0X1F)",
        "INSERT INTO t VALUES (0b12)",
        "INSERT INTO t VALUES (x'123')",
        "INSERT INTO t VALUES (x'1g')",
        "INSERT INTO t VALUES (1.2.3)",
        "INSERT INTO t VALUES (1e)",
        "INSERT INTO t VALUES (1.e5x)",
        "INSERT INTO größe VALUES (1)",
        "INSERT INTO t VALUES (1) */",
        "INSERT INTO t VALUES ({d '2026-01-01'})",
        "INSERT INTO t VALUES (1))",
        "INSERT INTO $a VALUES (1)",
        "INSERT INTO t VALUES (1)\0",
        "INSERT INTO t VALUES ('a' /* \0 */)",
        "INSERT INTO t VALUES ('a') -- \0",
        "INSERT INTO `t\0` VALUES ('a')",
        "INSERT INTO t VALUES (N'\0')",
        "INSERT INTO t VALUES (a=!1)",
        "INSERT INTO t VALUES ('a' \\'b')",
        "INSERT INTO t VALUES (1);;",
        "INSERT INTO t VALUES (1); -- x",
        "INSERT INTO t VALUES (1);/**/",
        "INSERT INTO t VALUES (5--/**/5)",
        "INSERT INTO t VALUES (5--#",
        "UPDATE t SET a = (SELECT 1)",
    ] {
        stays(text);
    }
}
