use super::*;

#[test]
fn the_lists_are_sorted() {
    assert!(HARMLESS.is_sorted());
    assert!(NO_CALLS.is_sorted());
}

#[track_caller]
fn is(text: &str, expected: SessionEffect) {
    for is_mariadb in [true, false] {
        let modes = Modes {
            is_mariadb,
            ..Modes::default()
        };
        assert_eq!(effect(text, modes), expected, "{text}");
    }
}

#[test]
fn most_statements_leave_nothing() {
    for text in [
        "",
        ";",
        "-- x",
        "SELECT 1",
        "select a, count(*) from t where b in (1, 2) group by a having (a) > 1;",
        "(SELECT 1) UNION (SELECT 2)",
        "WITH x (a, b) AS (SELECT 1, 2), `y` (c) AS (SELECT 1) SELECT MAX(a) FROM x",
        "SELECT * FROM a JOIN (SELECT 1) AS b USING (id) LEFT JOIN c ON (a.x = c.x)",
        "SELECT GET_LOCK('a', 1), RELEASE_LOCK('a')",
        "SELECT LAST_INSERT_ID()",
        "SELECT @x := 5",
        "SELECT 1 INTO @x",
        "SELECT a INTO OUTFILE '/x' FROM t",
        "SELECT ROW_NUMBER() OVER (PARTITION BY a) FROM t",
        "SELECT CAST(a AS DECIMAL(5, 2)), CONVERT(a, DATETIME(6)) FROM t",
        "SELECT * FROM t USE INDEX (i) FOR UPDATE",
        "SELECT MATCH (a) AGAINST ('x') FROM t",
        "VALUES ROW(1, 2)",
        "TABLE t",
        "INSERT INTO t (a, b) VALUES (1, 2), (3, 4)",
        "INSERT INTO `s`.`t` (`a`) SELECT NOW()",
        "REPLACE t(a) VALUES (1)",
        "INSERT INTO t (a) VALUES (1) AS n (x) ON DUPLICATE KEY UPDATE a = VALUES (a)",
        "UPDATE t SET id = LAST_INSERT_ID(id + 1)",
        "DELETE FROM t WHERE a = NOW()",
        "DO SLEEP(0)",
        "BEGIN",
        "BEGIN WORK",
        "START TRANSACTION READ ONLY",
        "COMMIT AND CHAIN",
        "ROLLBACK TO x",
        "SAVEPOINT x",
        "RELEASE SAVEPOINT x",
        "SHOW TABLES LIKE 'x'",
        "EXPLAIN SELECT 1",
        "DESC t",
        "CREATE TABLE t (a INT, KEY k (a))",
        "CREATE TABLE t (a INT) SELECT NOW() AS a",
        "ALTER TABLE t ADD KEY k (a)",
        "DROP TABLE t",
        "TRUNCATE t",
        "GRANT SELECT (a) ON t TO x",
        "KILL 5",
        "UNLOCK TABLES",
        "FLUSH PRIVILEGES",
        "FLUSH TABLES t",
        "LOAD DATA LOCAL INFILE 'x' INTO TABLE t (a, b)",
        "ANALYZE TABLE t",
        "ANALYZE TABLE t PERSISTENT FOR COLUMNS (a) INDEXES (b)",
        "SET autocommit=0",
        "SET @x = 1",
        "SET @x := 1, @`y z` = NOW(), @'q' = 'a,b'",
        "SET GLOBAL max_connections = 5",
        "SET @@global.timestamp = 5",
        "SET PERSIST x = 1",
        "SET sql_auto_is_null = 0",
        "SET SESSION wait_timeout = 5, @@net_write_timeout = 7",
        "SET optimizer_switch = 'x=on'",
        "SET profiling = 0, tx_read_only = OFF",
    ] {
        is(text, SessionEffect::Nothing);
    }
}

#[test]
fn settings_are_asked_for_again() {
    for text in [
        "USE shop",
        "USE `shop`;",
        "SET SESSION sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES')",
        "SET @@session.time_zone = '+00:00', @x = 1",
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        "SET SESSION TRANSACTION READ WRITE",
        "SET foreign_key_checks = OFF",
        "SET @@local.unique_checks := 0",
        "SET session_track_gtids = OWN_GTID",
        "DROP DATABASE x",
        "SET LOCAL tx_isolation = 'READ-COMMITTED'",
        "SET transaction_isolation = 'READ-COMMITTED'",
    ] {
        is(text, SessionEffect::Settings);
    }
}

#[test]
fn only_set_names_gives_parameters_the_collation_of_texts() {
    for text in [
        "SET NAMES utf8mb4",
        "set names 'utf8' collate 'utf8_bin'",
        "SET NAMES utf8mb4, @@SESSION.sql_mode = 'ANSI', wait_timeout = 5",
        "SET collation_connection = utf8mb4_bin, NAMES utf8mb4",
    ] {
        is(text, SessionEffect::Names);
    }
    for text in [
        "SET CHARACTER SET latin1",
        "SET CHARSET latin1",
        "SET collation_connection = utf8mb4_bin, sql_mode = ''",
        "SET SESSION character_set_connection = latin1",
        "SET NAMES utf8mb4, @@character_set_client = latin1",
    ] {
        is(text, SessionEffect::Collations);
    }
}

#[test]
fn any_other_statement_keeps_its_session_apart() {
    for (text, reason) in [
        ("CALL p()", "CALL"),
        ("SELECT mine(1)", "a function that may be stored"),
        ("SELECT mine (1)", "a function that may be stored"),
        ("SELECT `now`(1)", "a function that may be stored"),
        ("SELECT s.now(1)", "a function that may be stored"),
        (
            "INSERT INTO t (a) VALUES (mine(1))",
            "a function that may be stored",
        ),
        (
            "INSERT INTO t VALUES (mine(1))",
            "a function that may be stored",
        ),
        ("UPDATE t SET a = mine(1)", "a function that may be stored"),
        (
            "DELETE FROM t WHERE mine(1)",
            "a function that may be stored",
        ),
        (
            "WITH x (a) AS (SELECT mine(1)) SELECT 1",
            "a function that may be stored",
        ),
        (
            "WITH x (a) AS (SELECT 1) SELECT mine(1)",
            "a function that may be stored",
        ),
        (
            "ANALYZE UPDATE t SET a = mine(1)",
            "a function that may be stored",
        ),
        (
            "CREATE TABLE t SELECT mine(1)",
            "a function that may be stored",
        ),
        ("SET @x = mine(1)", "a function that may be stored"),
        ("DO mine(1)", "a function that may be stored"),
        ("SELECT LAST_INSERT_ID(5)", "LAST_INSERT_ID with a value"),
        ("SET last_insert_id = 5", "LAST_INSERT_ID with a value"),
        ("SET insert_id = 5", "the id of the next row"),
        ("SET @@session.timestamp = DEFAULT", "a time of its own"),
        ("SET rand_seed1 = 5", "a seed of RAND"),
        ("SET sql_log_bin = 0", "a setting of replication"),
        ("SET gtid_next = 'AUTOMATIC'", "a setting of replication"),
        (
            "SET sql_auto_is_null = 1",
            "a variable that is not followed",
        ),
        ("SET made_up = 1", "a variable that is not followed"),
        ("SET profiling = 1", "a variable that is not followed"),
        (
            "SET optimizer_trace = 'enabled=on'",
            "a variable that is not followed",
        ),
        (
            "SET TRANSACTION READ ONLY",
            "a setting of the next transaction",
        ),
        (
            "SET @@transaction_isolation = 'SERIALIZABLE'",
            "a setting of the next transaction",
        ),
        (
            "SET SESSION TRANSACTION READ ONLY",
            "a session that may not write",
        ),
        ("SET tx_read_only = 1", "a session that may not write"),
        ("SET ROLE x", "SET ROLE"),
        ("SET PASSWORD = 'x'", "SET PASSWORD"),
        (
            "SET STATEMENT max_statement_time = 1 FOR SELECT 1",
            "SET STATEMENT",
        ),
        ("CREATE TEMPORARY TABLE t (a INT)", "a temporary table"),
        (
            "CREATE OR REPLACE TEMPORARY TABLE t (a INT)",
            "a temporary table",
        ),
        ("LOCK TABLES t WRITE", "locks of tables"),
        ("FLUSH TABLES WITH READ LOCK", "locks of tables"),
        ("FLUSH TABLES t FOR EXPORT", "locks of tables"),
        ("FLUSH LOCAL TABLES WITH READ LOCK", "locks of tables"),
        ("HANDLER t OPEN", "HANDLER"),
        ("PREPARE s FROM 'SELECT 1'", "PREPARE in a text"),
        ("EXECUTE IMMEDIATE 'SELECT 1'", "PREPARE in a text"),
        ("XA START 'x'", "XA"),
        ("BEGIN NOT ATOMIC SELECT 1; END", "a compound statement"),
        ("IF 1 THEN SELECT 1; END IF", "a compound statement"),
        (
            "SELECT 1; SET timestamp = 5",
            "several statements in one text",
        ),
        ("SELECT 1 /*!, 2 */", "a comment that the server executes"),
        (
            "/*!40101 SET NAMES utf8 */",
            "a comment that the server executes",
        ),
        ("SELECT 'a", "not understood"),
        ("FROBNICATE", "a statement that is not known"),
    ] {
        is(text, SessionEffect::Unknown(reason));
    }
}

#[test]
fn what_strings_and_names_hold_means_nothing() {
    for text in [
        "SELECT 'CALL p(); mine(1)'",
        "SELECT `a;mine(` FROM t",
        "SELECT 1 -- ; mine(1)",
        "SELECT \"a\\\"; b\"",
    ] {
        is(text, SessionEffect::Nothing);
    }
}

#[test]
fn without_its_modes_a_text_has_its_worst_effect() {
    for (text, expected) in [
        (
            "SELECT \"a\", 'b\\'c'",
            SessionEffect::Unknown("not understood"),
        ),
        (
            "SELECT 'a\\', mine('",
            SessionEffect::Unknown("a function that may be stored"),
        ),
        ("SELECT 'a\\\\', \"b\"", SessionEffect::Nothing),
        (
            "SELECT \"a\\\"; SET timestamp = 1 -- \"",
            SessionEffect::Unknown("several statements in one text"),
        ),
        ("SET NAMES \"utf8\"", SessionEffect::Names),
        (
            "SELECT \"a\" (1)",
            SessionEffect::Unknown("a function that may be stored"),
        ),
        ("SELECT 1", SessionEffect::Nothing),
    ] {
        assert_eq!(effect_in_any_mode(text, true), expected, "{text}");
    }
}
