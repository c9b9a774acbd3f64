use super::*;

#[track_caller]
fn asks(text: &str, asked: Asked, column: &str) {
    let expected = Question {
        asked,
        column: column.into(),
    };
    assert_eq!(question(text), Some(expected), "{text}");
}

#[test]
fn questions_are_recognized_in_any_spelling() {
    asks(
        "SELECT LAST_INSERT_ID()",
        Asked::LastInsertId,
        "LAST_INSERT_ID()",
    );
    asks(
        " select  last_insert_id ( ) ; ",
        Asked::LastInsertId,
        "last_insert_id ( )",
    );
    asks("SELECT LAST_INSERT_ID() AS id", Asked::LastInsertId, "id");
    asks(
        "SELECT LAST_INSERT_ID() `the id`",
        Asked::LastInsertId,
        "the id",
    );
    asks("SELECT LAST_INSERT_ID() as 'x'", Asked::LastInsertId, "x");
    asks(
        "/* ping */ SELECT @@identity",
        Asked::Identity,
        "@@identity",
    );
    asks("select ROW_COUNT()", Asked::RowCount, "ROW_COUNT()");
    asks("SELECT FOUND_ROWS()", Asked::FoundRows, "FOUND_ROWS()");
    asks(
        "SELECT @@warning_count",
        Asked::WarningCount,
        "@@warning_count",
    );
    asks("SELECT @@ERROR_COUNT", Asked::ErrorCount, "@@ERROR_COUNT");
    asks("SHOW COUNT(*) WARNINGS", Asked::CountWarnings, "");
    asks("show count(*) errors;", Asked::CountErrors, "");
    let (offset, limit) = (0, None);
    asks("SHOW WARNINGS", Asked::Warnings { offset, limit }, "");
    asks("SHOW ERRORS", Asked::Errors { offset, limit }, "");
    let limit = Some(10);
    asks(
        "SHOW WARNINGS LIMIT 10",
        Asked::Warnings { offset, limit },
        "",
    );
    let offset = 5;
    asks(
        "SHOW WARNINGS LIMIT 5, 10",
        Asked::Warnings { offset, limit },
        "",
    );
    asks(
        "SHOW ERRORS LIMIT 10 OFFSET 5",
        Asked::Errors { offset, limit },
        "",
    );
}

#[test]
fn any_other_text_is_no_question() {
    for text in [
        "SELECT LAST_INSERT_ID(), 1",
        "SELECT LAST_INSERT_ID(5)",
        "SELECT LAST_INSERT_ID",
        "SELECT LAST_INSERT_ID() FROM t",
        "SELECT LAST_INSERT_ID() LIMIT 1",
        "SELECT LAST_INSERT_ID() + 1",
        "SELECT @@session.identity",
        "SELECT @identity",
        "SELECT (LAST_INSERT_ID())",
        "SELECT LAST_INSERT_ID(/**/)",
        "SELECT ROW_COUNT(); SELECT 1",
        "SELECT ROW_COUNT(); -- x",
        "SHOW WARNINGS LIMIT x",
        "SHOW WARNINGS x",
        "SHOW COUNT(*) TABLES",
        "SHOW COUNT(1) WARNINGS",
        "SELECT x.LAST_INSERT_ID()",
        "SELECT `LAST_INSERT_ID`()",
        "SELECT LAST_INSERT_ID() AS from",
        "SELECT @@identity x y",
        "",
    ] {
        assert_eq!(question(text), None, "{text}");
    }
}

#[test]
fn texts_that_ask_in_another_way_are_noticed() {
    for text in [
        "SELECT ROW_COUNT() + 1",
        "select found_rows()",
        "SELECT @@session.warning_count",
        "SELECT @@error_count",
        "GET DIAGNOSTICS @a = NUMBER",
        "DO row_count()",
    ] {
        assert!(mentions_row_count(text), "{text}");
    }
    for text in [
        "SELECT SQL_CALC_FOUND_ROWS * FROM t",
        "SELECT my_row_count FROM t",
        "SELECT row_count2",
        "SELECT 1",
        "_",
        "row_coun",
    ] {
        assert!(!mentions_row_count(text), "{text}");
    }
    for text in [
        "SELECT last_insert_id()",
        "INSERT INTO t VALUES (LAST_INSERT_ID())",
        "SELECT @@identity",
        "SELECT @@session.identity",
        "SELECT @@last_insert_id",
    ] {
        assert!(mentions_insert_id(text), "{text}");
    }
    for text in [
        "SELECT my_last_insert_id",
        "SELECT identity FROM t",
        "SELECT 1",
    ] {
        assert!(!mentions_insert_id(text), "{text}");
    }
}
