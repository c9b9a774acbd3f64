use super::*;
use windrow_core::Piece;

const MYSQL: Modes = Modes {
    ansi_quotes: false,
    no_backslash_escapes: false,
    is_mariadb: false,
};

const MARIADB: Modes = Modes {
    is_mariadb: true,
    ..MYSQL
};

#[track_caller]
fn parsed(text: &str) -> ParsedStatement {
    read(text, MARIADB).unwrap_or_else(|reason| panic!("{reason}: {text}"))
}

#[track_caller]
fn refused(text: &str, reason: &str) {
    assert_eq!(read(text, MARIADB).err(), Some(reason), "{text}");
}

/// An expression with `{n}` for its parameters.
fn spelled(expression: &Expression) -> String {
    match expression {
        Expression::Default => "DEFAULT".into(),
        Expression::Sql(pieces) => pieces
            .iter()
            .map(|piece| match piece {
                Piece::Text(text) => text.to_string(),
                Piece::Parameter(number) => format!("{{{number}}}"),
            })
            .collect(),
    }
}

fn pairs(pairs: &[(Name, Expression)]) -> Vec<String> {
    let pair = |(name, value): &(Name, Expression)| format!("{name}={}", spelled(value));
    pairs.iter().map(pair).collect()
}

#[test]
fn an_insert_of_one_row_is_taken_apart() {
    let statement = parsed(
        "INSERT INTO `sh op`.t (a, `b c`, t.d) VALUES (?, NOW() + INTERVAL ? DAY, DEFAULT);",
    );
    assert_eq!(statement.table.schema.as_deref(), Some("sh op"));
    assert_eq!(&*statement.table.table, "t");
    let columns = statement.columns.as_deref().unwrap();
    assert_eq!(columns, ["a".into(), "b c".into(), "d".into()]);
    let values: Vec<_> = statement.values.iter().map(spelled).collect();
    assert_eq!(values, ["{0}", "NOW() + INTERVAL {1} DAY", "DEFAULT"]);
    assert_eq!(&*statement.functions, [TableName::bare("NOW")]);
    assert!(statement.set_based);
    assert_eq!(statement.conflict, None);

    let same = parsed("insert t set a = ?, `b` = concat(?, 'x')");
    assert_eq!(same.columns.as_deref(), Some(&["a".into(), "b".into()][..]));
    let values: Vec<_> = same.values.iter().map(spelled).collect();
    assert_eq!(values, ["{0}", "concat({1}, 'x')"]);
    assert!(same.set_based);

    let bare = parsed("INSERT t VALUE ()");
    assert_eq!(
        (bare.columns, bare.values.len(), bare.set_based),
        (None, 0, true)
    );
}

#[test]
fn only_plain_inserts_are_set_based() {
    for (text, update) in [
        ("INSERT IGNORE INTO t VALUES (?)", false),
        ("REPLACE INTO t VALUES (?)", true),
        ("REPLACE t SET a = ?", true),
        (
            "INSERT INTO t VALUES (?) ON DUPLICATE KEY UPDATE a = VALUES(a) + ?, b = DEFAULT",
            true,
        ),
        (
            "INSERT IGNORE INTO t VALUES (?) ON DUPLICATE KEY UPDATE a = a",
            true,
        ),
        (
            "INSERT INTO t VALUES (?) AS new (x) ON DUPLICATE KEY UPDATE a = new.x",
            true,
        ),
    ] {
        let statement = parsed(text);
        assert_eq!(
            statement.conflict.map(|conflict| conflict.update),
            Some(update),
            "{text}"
        );
        assert!(!statement.set_based);
    }
    assert!(!parsed("INSERT INTO t (a, b) VALUES (?, a + 1)").set_based);
    let conflict = parsed("INSERT INTO t VALUES (?) ON DUPLICATE KEY UPDATE a = ?, b = 1")
        .conflict
        .unwrap();
    assert_eq!(pairs(&conflict.assignments), ["a={1}", "b=1"]);
    assert_eq!(
        spelled(&conflict.sql),
        "ON DUPLICATE KEY UPDATE a = {1}, b = 1"
    );
    let statement = parsed("INSERT INTO t VALUES (?) RETURNING id, t.*, now() AS x");
    assert_eq!(statement.returning.as_deref(), Some("id, t.*, now() AS x"));
    assert!(statement.set_based);
}

#[test]
fn conditions_are_keys_or_others() {
    for (condition, keys, others) in [
        ("id = ?", &["id={0}"][..], None),
        ("t.id=-5 AND `b` = 'x'", &["id=-5", "b='x'"], None),
        (
            "(id = ? && (b = ? AND c > 1))",
            &["id={0}", "b={1}"],
            Some("(c > 1)"),
        ),
        ("id = ? AND id = ?", &["id={0}"], Some("(id = {1})")),
        ("id IN (?) AND b in(-1)", &["id={0}", "b=-1"], None),
        (
            "id = 1 AND a BETWEEN 1 AND 2 AND b IN (1, 2)",
            &["id=1"],
            Some("(a BETWEEN 1 AND 2) AND (b IN (1, 2))"),
        ),
        (
            "id = 1 AND CASE WHEN a AND b THEN 1 END",
            &["id=1"],
            Some("(CASE WHEN a AND b THEN 1 END)"),
        ),
        (
            "id = 1 AND (b = 1 OR c = 2)",
            &["id=1"],
            Some("(b = 1 OR c = 2)"),
        ),
        (
            "id = 1 AND NOT b = 1 AND c <=> NULL",
            &["id=1"],
            Some("(NOT b = 1) AND (c <=> NULL)"),
        ),
        ("id = 1 AND b = c", &["id=1"], Some("(b = c)")),
    ] {
        for text in [
            format!("DELETE FROM t WHERE {condition}"),
            format!("UPDATE t SET z = 1 WHERE {condition} LIMIT 1"),
        ] {
            let statement = parsed(&text);
            assert_eq!(pairs(&statement.keys), keys, "{text}");
            assert_eq!(
                statement.conditions.as_ref().map(spelled).as_deref(),
                others,
                "{text}"
            );
            assert!(!statement.set_based);
        }
    }
    for condition in [
        "a > 1",
        "id = 1 OR b = 2",
        "id IN (1, 2)",
        "id NOT IN (1)",
        "id IN ((1))",
        "id IN (1) = 0",
        "id = 1 || b",
        "id = 1 XOR 1",
        "NOT id = 1",
        "id = b",
        "id = 1 + 1",
        "id = 1 = 1",
        "(id = 1 OR a = 2)",
        "id = 1 AND b = 2 OR c = 3",
        "a.b.c.d = 1",
    ] {
        refused(
            &format!("DELETE FROM t WHERE {condition}"),
            "no condition column = value",
        );
    }
    refused("DELETE FROM t", "no condition column = value");
}

#[test]
fn an_update_is_taken_apart() {
    let statement =
        parsed("UPDATE s.t AS x SET x.a = x.a + ?, b = DEFAULT, `c` = UPPER(?) WHERE x.id = ?");
    assert_eq!(statement.alias.as_deref(), Some("x"));
    assert_eq!(
        pairs(&statement.assignments),
        ["a=x.a + {0}", "b=DEFAULT", "c=UPPER({1})"]
    );
    assert_eq!(pairs(&statement.keys), ["id={2}"]);
    assert_eq!(
        parsed("DELETE FROM t x WHERE id = 1").alias.as_deref(),
        Some("x")
    );
}

#[test]
fn expressions_may_depend_on_their_row_only() {
    for (expression, reason) in [
        ("@a", "a variable"),
        ("@@sql_mode", "a variable"),
        ("(SELECT 1)", "a subquery"),
        ("EXISTS (SELECT 1)", "a subquery"),
        ("LAST_INSERT_ID()", "a function that depends on the session"),
        ("ROW_COUNT()", "a function that depends on the session"),
        ("CURRENT_USER", "a function that depends on the session"),
        ("USER()", "a function that depends on the session"),
        ("CONNECTION_ID()", "a function that depends on the session"),
        ("GET_LOCK('a', 1)", "a function that depends on the session"),
        ("SLEEP(1)", "a function that depends on the session"),
        ("RAND(1)", "a function that depends on the session"),
        ("NEXTVAL(s)", "a function that depends on the session"),
        ("NEXT VALUE FOR s", "a sequence"),
        ("mine(1)", "a function that the server may not have itself"),
        ("mine (1)", "a function that the server may not have itself"),
        ("s.now()", "a function that the server may not have itself"),
        ("`now`()", "a function that the server may not have itself"),
        ("now ()", "a function that the server may not have itself"),
        (
            "now/**/()",
            "a function that the server may not have itself",
        ),
        ("DEFAULT(a)", "a function that depends on the session"),
        ("(VALUES (1))", "a form that is not taken apart"),
        (", 1", "a form that is not taken apart"),
        ("(1", "a form that is not taken apart"),
    ] {
        refused(&format!("INSERT INTO t VALUES ({expression})"), reason);
        refused(
            &format!("UPDATE t SET a = {expression} WHERE id = 1"),
            reason,
        );
        if expression != "(1" {
            refused(
                &format!("DELETE FROM t WHERE id = 1 AND a = {expression}"),
                reason,
            );
        }
    }
    for expression in [
        "1 + 2 * -3",
        "CURRENT_TIMESTAMP",
        "CURRENT_TIMESTAMP(6)",
        "UUID()",
        "CONCAT('a', LOWER(?))",
        "CAST(? AS CHAR(10))",
        "CAST(? AS DECIMAL(10, 2))",
        "CONVERT(? USING utf8mb4)",
        "? COLLATE utf8mb4_bin",
        "IF(? > 1, 2, 3)",
        "CASE ? WHEN 1 THEN 2 ELSE 3 END",
        "JSON_OBJECT('a', ?)",
        "TRIM(LEADING 'x' FROM ?)",
        "EXTRACT(YEAR FROM ?)",
        "NOW() - INTERVAL 1 DAY",
        "? IS NULL",
        "? NOT IN (1, 2)",
        "? LIKE 'a' ESCAPE 'b'",
        "UNHEX(SHA2(?, 256))",
        "SUBSTRING(? FROM 1 FOR 2)",
        "MD5(?)",
        "a -> '$.x'",
        "BINARY ?",
        "(1)",
        "_utf8mb4'x'",
        "DATE'2026-01-01'",
    ] {
        let _ = parsed(&format!("INSERT INTO t VALUES ({expression})"));
        let _ = parsed(&format!("UPDATE t SET a = {expression} WHERE id = 1"));
    }
}

#[test]
fn other_forms_are_refused_with_a_reason() {
    for (text, reason) in [
        ("SELECT 1", "no write of rows"),
        ("INSERT INTO t VALUES (1), (2)", "several rows of VALUES"),
        ("INSERT INTO t SELECT 1", "INSERT .. SELECT"),
        ("INSERT INTO t (SELECT 1)", "INSERT .. SELECT"),
        ("INSERT INTO t (a) (SELECT 1)", "INSERT .. SELECT"),
        ("INSERT INTO t TABLE u", "INSERT .. SELECT"),
        (
            "INSERT INTO t (a) WITH x AS (SELECT 1) SELECT 1",
            "INSERT .. SELECT",
        ),
        ("INSERT INTO t PARTITION (p) VALUES (1)", "PARTITION"),
        (
            "INSERT DELAYED INTO t VALUES (1)",
            "LOW_PRIORITY, DELAYED, HIGH_PRIORITY or QUICK",
        ),
        (
            "DELETE QUICK FROM t WHERE a = 1",
            "LOW_PRIORITY, DELAYED, HIGH_PRIORITY or QUICK",
        ),
        (
            "UPDATE IGNORE t SET a = 1 WHERE b = 1",
            "IGNORE of an UPDATE or DELETE",
        ),
        ("UPDATE t, u SET a = 1 WHERE b = 1", "several tables"),
        ("UPDATE t JOIN u SET a = 1 WHERE b = 1", "several tables"),
        ("DELETE t FROM t WHERE a = 1", "several tables"),
        ("DELETE FROM t USING t WHERE a = 1", "several tables"),
        ("DELETE FROM t WHERE a = 1 ORDER BY b", "ORDER BY"),
        (
            "UPDATE t SET a = 1 WHERE b = 1 LIMIT 1, 2",
            "a form that is not taken apart",
        ),
        (
            "INSERT INTO t VALUES (1); -- x",
            "several statements in one text",
        ),
        (
            "INSERT INTO t VALUES (1); SELECT 1",
            "several statements in one text",
        ),
        (
            "INSERT /*! IGNORE */ INTO t VALUES (1)",
            "a comment that the server executes",
        ),
        ("INSERT /*+ x */ INTO t VALUES (1)", "a hint"),
        (
            "INSERT INTO größe VALUES (1)",
            "a name outside of ASCII without quotes",
        ),
        ("INSERT INTO select VALUES (1)", "a reserved word as a name"),
        ("INSERT INTO value VALUES (1)", "a reserved word as a name"),
        (
            "INSERT INTO t (a, order) VALUES (1, 2)",
            "a reserved word as a name",
        ),
        (
            "INSERT INTO `` VALUES (1)",
            "a name that the server would change",
        ),
        ("INSERT INTO t VALUES ('a)", "not understood"),
        (
            "INSERT INTO t VALUES (1) RETURNING ?",
            "a parameter in RETURNING",
        ),
        (
            "REPLACE INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = 1",
            "a form that is not taken apart",
        ),
    ] {
        refused(text, reason);
    }
    let text = "INSERT INTO t VALUES (1) RETURNING a";
    assert_eq!(
        read(text, MYSQL).err(),
        Some("RETURNING that MySQL does not have")
    );
}

#[test]
fn a_lifted_text_is_read_as_the_text_itself() {
    let text = "INSERT INTO t (a, b) VALUES (-1, DATE'2026-01-01') ON DUPLICATE KEY UPDATE b='x'";
    let lifted = super::super::lift(text, MARIADB).unwrap();
    let statement = parsed(&lifted.text);
    let values: Vec<_> = statement.values.iter().map(spelled).collect();
    assert_eq!(values, ["{0}", "{1}"]);
    assert_eq!(pairs(&statement.conflict.unwrap().assignments), ["b={2}"]);
}
