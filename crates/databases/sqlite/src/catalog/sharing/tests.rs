use super::*;

fn texts(schema: &str) -> SchemaTexts {
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(schema).unwrap();
    SchemaTexts::read(&connection).unwrap()
}

/// What stands in the way, and whether the connection has to be fresh; nothing where nothing does.
fn why(schema: &str, table: &str) -> Option<(String, bool)> {
    match texts(schema).sharing(&TableName::bare(table)) {
        Sharing::Joined => None,
        Sharing::Apart { why, fresh } => Some((why.object.into(), fresh)),
    }
}

#[test]
fn what_stands_in_the_way_is_named() {
    let deferred = "CREATE TABLE p (id INTEGER PRIMARY KEY);
        CREATE TABLE Late (p REFERENCES P /* */ DEFERRABLE INITIALLY
            DEFERRED);
        CREATE TABLE free (a, p REFERENCES p);
        CREATE TRIGGER far AFTER UPDATE ON free WHEN new.a = 1 BEGIN DELETE FROM [p] WHERE id = old.a; END;
        CREATE TABLE other (a);
        CREATE VIEW v AS SELECT 1 AS a;
        CREATE TRIGGER instead INSTEAD OF INSERT ON v BEGIN INSERT INTO free VALUES (new.a, NULL); END;";
    let late = Some(("table late".to_owned(), false));
    for table in ["late", "LATE", "p", "free", "v"] {
        assert_eq!(why(deferred, table), late, "{table}");
    }
    assert_eq!(why(deferred, "other"), None);
    let memory = "CREATE TABLE t (a DEFAULT (\"Changes\" ( /* ) */ )));
        CREATE TABLE log (a);
        CREATE TABLE u (a); CREATE TRIGGER tr AFTER INSERT ON u BEGIN INSERT INTO log VALUES (last_insert_rowid()); END;
        CREATE TABLE changes (total_changes, of_changes, CHECK (total_changes <> 'last_insert_rowid'));";
    assert_eq!(
        why(memory, "t"),
        Some(("changes() in table t".to_owned(), true))
    );
    assert_eq!(
        why(memory, "u"),
        Some(("last_insert_rowid() in trigger tr on u".to_owned(), true))
    );
    assert_eq!(why(memory, "log"), None);
    assert_eq!(why(memory, "changes"), None);
}

/// A name that SQLite would find behind its quotation marks is found here.
#[test]
fn quoted_names_are_followed() {
    let schema = "CREATE TABLE \"a\"\"b\" (x REFERENCES t DEFERRABLE INITIALLY DEFERRED);
        CREATE TABLE t (x PRIMARY KEY);
        CREATE TABLE u (x);
        CREATE TRIGGER tr AFTER INSERT ON u BEGIN INSERT INTO \"a\"\"b\" VALUES (1); END;";
    assert!(why(schema, "u").is_some());
}

/// All functions of the library whose results do not follow from their arguments alone, each of
/// them looked at: only those of [`MEMORY`] tell what others have written on the connection. One
/// that is new has to be looked at too.
const REVIEWED: &str = "avg bm25 changes count cume_dist current_date current_time current_timestamp dense_rank first_value \
    fts3_tokenizer fts5 fts5_get_locale fts5_insttoken fts5_locale group_concat highlight lag last_insert_rowid \
    last_value lead load_extension match matchinfo max min nth_value ntile offsets optimize percent_rank random \
    randomblob rank row_number rtreecheck rtreedepth rtreenode snippet sqlite_compileoption_get \
    sqlite_compileoption_used sqlite_log sqlite_source_id sqlite_version string_agg sum total total_changes";

#[test]
fn no_other_function_remembers() {
    let connection = Connection::open_in_memory().unwrap();
    let mut ask = connection
        .prepare(
            "SELECT DISTINCT name FROM pragma_function_list WHERE NOT flags & 0x800 ORDER BY name",
        )
        .unwrap();
    let names = ask.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let names: Vec<String> = names.collect::<Result<_>>().unwrap();
    let reviewed: Vec<&str> = REVIEWED.split_ascii_whitespace().collect();
    assert_eq!(names, reviewed);
}
