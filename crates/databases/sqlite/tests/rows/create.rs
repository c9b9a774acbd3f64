//! Tables made from the rows that come.

use windrow_core::{FaultClass, Unit, Value};

use crate::support::*;

fn types(db: &Db, table: &str) -> Vec<String> {
    let sql = format!(
        "SELECT name || ' ' || type || iif(pk, ' pk' || pk, '') FROM pragma_table_info('{table}')"
    );
    let cells = db.rows(&sql);
    cells
        .iter()
        .map(|c| c.trim_matches('\'').to_owned())
        .collect()
}

#[tokio::test]
async fn the_first_row_makes_the_table() {
    let mut db = Db::creating().await;
    let columns = ["id", "on", "x", "big", "s", "doc", "raw", "late"];
    let row = [
        1.into(),
        true.into(),
        number("1.5"),
        number("18446744073709551616"),
        "t".into(),
        json("[1]"),
        Value::Bytes([1].into()),
        Value::Null,
    ];
    let into = insert("t", &columns);
    let done = db.one(into.write(row.clone())).await.unwrap();
    assert_eq!(done.rows, 1);
    assert_eq!(
        types(&db, "t"),
        [
            "id INTEGER pk1",
            "on BOOLEAN",
            "x REAL",
            "big DECIMAL_TEXT",
            "s TEXT",
            "doc JSON",
            "raw BLOB"
        ]
    );
    let got = db.one(get("t").write([1.into()])).await.unwrap();
    assert_eq!(returned(&got), [row[..7].to_vec()]);
    // A value where there was only NULL adds the column; NULL alone does not.
    let mut second = row.clone();
    (second[0], second[7]) = (2.into(), 9.into());
    assert!(db.one(into.write(second)).await.is_ok());
    assert_eq!(types(&db, "t").last().unwrap(), "late INTEGER");
    assert_eq!(db.rows("SELECT id, late FROM t"), ["1|NULL", "2|9"]);
    assert_eq!(
        db.one(insert("t", &["id", "never"]).write([3.into(), Value::Null]))
            .await
            .unwrap()
            .rows,
        1
    );
    assert!(!types(&db, "t").iter().any(|t| t.starts_with("never")));
}

#[tokio::test]
async fn one_batch_makes_one_table_that_fits_all_its_rows() {
    let mut db = Db::creating().await;
    let units = [
        insert("t", &["id", "v"]).unit([1.into(), 1.into()]),
        insert("t", &["id", "v"]).unit([2.into(), number("0.5")]),
        insert("t", &["id", "w"]).unit([3.into(), "x".into()]),
        insert("t", &["w", "id"]).unit([true.into(), 4.into()]),
    ];
    let report = db.run(&units).await;
    assert!(report.tally.commits <= 2);
    assert_eq!(types(&db, "t"), ["id INTEGER pk1", "v REAL", "w TEXT"]);
    assert_eq!(
        db.rows("SELECT * FROM t"),
        ["1|1.0|NULL", "2|0.5|NULL", "3|NULL|'x'", "4|NULL|'true'"]
    );
}

#[tokio::test]
async fn the_key_that_is_named_becomes_the_primary_key() {
    let mut db = Db::creating().await;
    let upsert = insert("t", &["b", "a", "v"]).upsert().key(&["a", "b"]);
    let units = [
        upsert.unit(["x".into(), 1.into(), 1.into()]),
        upsert.unit(["x".into(), 1.into(), 2.into()]),
        insert("t", &["a", "v"]).unit([1.into(), 3.into()]),
    ];
    assert_eq!(brief(&db.outcomes(&units).await), ["[1]", "[1]", "23502@0"]);
    assert_eq!(
        types(&db, "t"),
        ["b TEXT pk2", "a INTEGER pk1", "v INTEGER"]
    );
    assert_eq!(db.rows("SELECT a, b, v FROM t"), ["1|'x'|2"]);
    // No key named and no id: none.
    assert!(
        db.one(insert("log", &["line"]).write(["x".into()]))
            .await
            .is_ok()
    );
    assert_eq!(types(&db, "log"), ["line TEXT"]);
    let fault = db.one(delete("log").write([1.into()])).await.unwrap_err();
    assert!(fault.message.contains("no primary key"));
    let fault = db
        .one(insert("u", &["v"]).key(&["k"]).upsert().write([1.into()]))
        .await
        .unwrap_err();
    assert_eq!(fault.class, FaultClass::NoColumn);
    assert_eq!(
        db.rows("SELECT 1 FROM sqlite_schema WHERE name = 'u'"),
        Vec::<String>::new()
    );
}

#[tokio::test]
async fn ids_are_numbered_where_they_are_null() {
    let mut db = Db::creating().await;
    let into = insert("t", &["id", "v"]).returning(&["id"]);
    let units = [
        into.unit([Value::Null, 1.into()]),
        into.unit([Value::Null, 2.into()]),
    ];
    let outcomes = db.outcomes(&units).await;
    assert_eq!(
        returned(&outcomes[1].as_ref().unwrap()[0]),
        [[Value::Int(2)]]
    );
}

#[tokio::test]
async fn columns_are_widened_and_keep_what_they_have() {
    let mut db = Db::creating().await;
    let into = insert("t", &["id", "v"]);
    db.one(into.write([1.into(), 5.into()])).await.unwrap();
    db.look()
        .execute_batch(
            "CREATE INDEX by_v ON t (v); CREATE TABLE log (id);
             CREATE TRIGGER logged AFTER INSERT ON t BEGIN INSERT INTO log VALUES (new.id); END;
             CREATE VIEW seen AS SELECT v FROM t;
             CREATE TABLE child (t INTEGER REFERENCES t ON DELETE CASCADE);
             INSERT INTO child VALUES (1);",
        )
        .unwrap();
    let mut expected = vec!["5".to_owned()];
    for (id, value, declared) in [
        (2, number("0.1"), "v REAL"),
        (3, number("0.10000000000000000000001"), "v DECIMAL_TEXT"),
        (4, "word".into(), "v TEXT"),
        (5, true.into(), "v TEXT"),
        (6, json("{}"), "v TEXT"),
    ] {
        db.one(into.write([id.into(), value])).await.unwrap();
        assert_eq!(types(&db, "t"), ["id INTEGER pk1", declared]);
    }
    expected.clear();
    expected.extend(
        [
            "5.0",
            "0.1",
            "0.10000000000000000000001",
            "word",
            "true",
            "{}",
        ]
        .map(|v| format!("'{v}'")),
    );
    assert_eq!(db.rows("SELECT v FROM t ORDER BY id"), expected);
    assert_eq!(db.rows("SELECT v FROM seen").len(), 6);
    assert_eq!(db.rows("SELECT id FROM log").len(), 5);
    assert_eq!(db.rows("SELECT t FROM child"), ["1"]);
    assert_eq!(
        db.rows(
            "SELECT name FROM sqlite_schema WHERE tbl_name = 't' AND type <> 'table' ORDER BY 1"
        ),
        ["'by_v'", "'logged'"]
    );
    assert_eq!(db.rows("PRAGMA foreign_key_check"), Vec::<String>::new());
    assert_eq!(db.rows("PRAGMA integrity_check"), ["'ok'"]);
    // Foreign keys are minded again afterwards.
    let fault = db
        .one(insert("child", &["t"]).write([99.into()]))
        .await
        .unwrap_err();
    assert_eq!(fault.class, FaultClass::ForeignKey);
}

#[tokio::test]
async fn each_kind_is_widened_exactly() {
    for (old, new, declared, expected) in [
        (5.into(), "x".into(), "TEXT", ["'5'", "'x'"]),
        (5.into(), number("0.5"), "REAL", ["5.0", "0.5"]),
        (
            i64::MAX.into(),
            number("0.5"),
            "DECIMAL_TEXT",
            ["'9223372036854775807'", "'0.5'"],
        ),
        (
            5.into(),
            number("1e400"),
            "DECIMAL_TEXT",
            ["'5'", "'1e400'"],
        ),
        (
            number("0.1"),
            i64::MAX.into(),
            "DECIMAL_TEXT",
            ["'0.1'", "'9223372036854775807'"],
        ),
        (
            number("0.30000000000000004"),
            "x".into(),
            "TEXT",
            ["'0.30000000000000004'", "'x'"],
        ),
        (true.into(), "x".into(), "TEXT", ["'true'", "'x'"]),
        (false.into(), 3.into(), "TEXT", ["'false'", "'3'"]),
        (json("[1]"), "x".into(), "TEXT", ["'[1]'", "'x'"]),
        (Value::Bytes([1].into()), 3.into(), "TEXT", ["x'01'", "'3'"]),
        (
            "x".into(),
            Value::Bytes([1].into()),
            "TEXT",
            ["'x'", "x'01'"],
        ),
        (
            Value::Bytes([1].into()),
            "AQ==".into(),
            "BLOB",
            ["x'01'", "x'01'"],
        ),
    ] {
        let mut db = Db::creating().await;
        let into = insert("t", &["v"]);
        for value in [&old, &new] {
            let value: Value = Clone::clone(value);
            db.one(into.write([value])).await.unwrap();
        }
        assert_eq!(
            types(&db, "t"),
            [format!("v {declared}")],
            "{old:?} {new:?}"
        );
        assert_eq!(db.rows("SELECT v FROM t ORDER BY rowid"), expected);
    }
}

#[tokio::test]
async fn keys_keep_their_types() {
    let mut db = Db::creating().await;
    let into = insert("t", &["id", "u"]);
    db.one(into.write([1.into(), 1.into()])).await.unwrap();
    db.look()
        .execute_batch("CREATE UNIQUE INDEX one_u ON t (u)")
        .unwrap();
    let columns = [("id", Value::from("abc")), ("u", number("0.5"))];
    for (column, value) in columns {
        let row = match column {
            "id" => [value, 2.into()],
            _ => [2.into(), value],
        };
        let fault = db.one(into.write(row)).await.unwrap_err();
        assert_eq!((fault.class, &*fault.code), (FaultClass::Value, "22P02"));
        assert_eq!((fault.table(), fault.column()), (Some("t"), Some(column)));
        for word in ["table t", "INTEGER", "part of a key", column] {
            assert!(fault.message.contains(word), "{fault}");
        }
        assert!(fault.hint().is_some_and(|hint| hint.contains("TEXT")));
    }
    for odd in ["05", "5 ", "", "1.0", "9223372036854775808"] {
        let row = [odd.into(), 3.into()];
        assert_eq!(db.one(into.write(row)).await.unwrap_err().code, "22P02");
    }
    // A whole number spelled as one is that number; those who share the batch are not harmed by one
    // who is refused.
    let units = [
        into.unit(["5".into(), 5.into()]),
        into.unit([true.into(), 6.into()]),
        insert("t", &["id", "new"]).unit(["x".into(), 7.into()]),
        insert("t", &["id", "new"]).unit([8.into(), 8.into()]),
    ];
    assert_eq!(
        brief(&db.outcomes(&units).await),
        ["[1]", "22P02@0", "22P02@0", "[1]"]
    );
    assert_eq!(
        types(&db, "t"),
        ["id INTEGER pk1", "u INTEGER", "new INTEGER"]
    );
    assert_eq!(
        db.rows("SELECT id, u, new FROM t ORDER BY id"),
        ["1|1|NULL", "5|5|NULL", "8|NULL|8"]
    );
}

#[tokio::test]
async fn tables_of_strange_names_are_widened_too() {
    let mut db = Db::creating().await;
    let table = "\"we\"\"ird; \"";
    let into = insert(table, &["id", "a\"b"]);
    db.one(into.write([1.into(), 1.into()])).await.unwrap();
    let grown = insert(table, &["id", "c"]);
    db.one(grown.write([2.into(), 1.into()])).await.unwrap();
    db.one(into.write([3.into(), "x".into()])).await.unwrap();
    db.one(grown.write([4.into(), "x".into()])).await.unwrap();
    assert_eq!(
        db.rows("SELECT * FROM \"we\"\"ird; \" ORDER BY rowid"),
        ["1|'1'|NULL", "2|NULL|'1'", "3|'x'|NULL", "4|NULL|'x'"]
    );
    let outcome = db
        .one(into.write([3.into(), "y".into()]))
        .await
        .unwrap_err();
    assert_eq!(outcome.class, FaultClass::Unique);
}

#[tokio::test]
async fn tables_of_others_keep_their_types() {
    let mut db = Db::with(
        "CREATE TABLE own (id INTEGER PRIMARY KEY, n NUMERIC);
         CREATE TABLE firm (id INTEGER PRIMARY KEY) STRICT;
         CREATE VIEW v AS SELECT id FROM own;",
        &creating(),
    )
    .await;
    let fault = db
        .one(insert("own", &["n"]).write([number("18446744073709551616")]))
        .await
        .unwrap_err();
    assert_eq!(fault.class, FaultClass::Value);
    assert!(
        db.one(insert("own", &["n", "more"]).write([1.into(), true.into()]))
            .await
            .is_ok()
    );
    assert_eq!(
        types(&db, "own"),
        ["id INTEGER pk1", "n NUMERIC", "more BOOLEAN"]
    );
    let columns = ["a", "b", "c"];
    let row = [true.into(), json("{}"), number("1e400")];
    assert!(db.one(insert("firm", &columns).write(row)).await.is_ok());
    assert_eq!(
        types(&db, "firm"),
        ["id INTEGER pk1", "a INTEGER", "b TEXT", "c TEXT"]
    );
    let fault = db
        .one(insert("v", &["x"]).write([1.into()]))
        .await
        .unwrap_err();
    assert_eq!(fault.class, FaultClass::NoColumn);
    // A table that Windrow made and somebody has altered since is not Windrow's to rebuild.
    db.one(insert("t", &["id"]).write([1.into()]))
        .await
        .unwrap();
    db.look()
        .execute_batch("ALTER TABLE t ADD COLUMN c INTEGER CHECK (c > 0)")
        .unwrap();
    db.one(insert("t", &["c"]).write(["x".into()]))
        .await
        .unwrap();
    assert_eq!(types(&db, "t"), ["id INTEGER pk1", "c INTEGER"]);
}

#[tokio::test]
async fn only_inserts_make_tables() {
    let mut db = Db::creating().await;
    let units = [
        get("t").unit([1.into()]),
        delete("t").unit([1.into()]),
        update("t", &["v"]).unit([1.into(), 1.into()]),
        insert("t", &["v"]).unit([Value::Null]),
        insert("t", &[]).unit([]),
        insert("other.t", &["v"]).unit([1.into()]),
        insert("sqlite_x", &["v"]).unit([1.into()]),
        insert("t", &["id"]).unit([1.into()]),
        delete("t").unit([1.into()]),
        update("t", &["v"]).unit([1.into(), 1.into()]),
        insert("t", &["v"]).unit([Value::Null]),
    ];
    let outcomes = db.outcomes(&units).await;
    assert_eq!(
        brief(&outcomes),
        [
            "42P01@0", "42P01@0", "42P01@0", "42P01@0", "42P01@0", "3F000@0", "42939@0", "[1]",
            "[1]", "[0]", "[1]"
        ]
    );
    assert_eq!(types(&db, "t"), ["id INTEGER pk1", "v INTEGER"]);
}

#[tokio::test]
async fn a_row_that_asks_too_much_fails_alone() {
    let mut db = Db::creating().await;
    let columns: Vec<String> = (0..2100).map(|i| format!("c{i}")).collect();
    let half = |range: std::ops::Range<usize>| {
        let names: Vec<&str> = columns[range].iter().map(String::as_str).collect();
        let shape = insert("t", &names).shape();
        Unit::one(windrow_core::RowWrite::new(
            shape,
            vec![Value::Int(1); names.len()],
        ))
    };
    // Together they want more columns than SQLite has; the first ones fit.
    let units = [half(0..1200), half(1100..2100), half(1000..1300)];
    let outcomes = db.outcomes(&units).await;
    assert_eq!(brief(&outcomes), ["[1]", "54011@0", "[1]"]);
    assert_eq!(db.rows("SELECT count(*) FROM t"), ["2"]);
}

#[tokio::test]
async fn units_of_several_writes_make_what_they_need() {
    let mut db = Db::creating().await;
    let unit = Unit::of([
        insert("a", &["id"]).write([1.into()]),
        insert("b", &["id"]).write([1.into()]),
        insert("a", &["id", "v"]).write([2.into(), "x".into()]),
    ]);
    let bad = Unit::of([
        insert("c", &["id"]).write([1.into()]),
        insert("a", &["id"]).write([1.into()]),
    ]);
    let outcomes = db.outcomes(&[unit, bad]).await;
    assert_eq!(brief(&outcomes), ["[1, 1, 1]", "23505@1"]);
    assert_eq!(db.rows("SELECT * FROM a"), ["1|NULL", "2|'x'"]);
    assert_eq!(db.rows("SELECT count(*) FROM c"), ["0"]);
}

#[tokio::test]
async fn rows_keep_their_numbers_when_a_column_is_widened() {
    let mut db = Db::creating().await;
    let into = insert("t", &["v"]);
    for v in 1..4 {
        db.one(into.write([v.into()])).await.unwrap();
    }
    db.look()
        .execute_batch("DELETE FROM t WHERE v = 2")
        .unwrap();
    db.one(into.write(["x".into()])).await.unwrap();
    assert_eq!(
        db.rows("SELECT rowid, v FROM t"),
        ["1|'1'", "3|'3'", "4|'x'"]
    );
    // A column called rowid hides the number; its values are kept.
    let named = insert("u", &["rowid", "v"]);
    db.one(named.write([7.into(), 1.into()])).await.unwrap();
    db.one(named.write([5.into(), "x".into()])).await.unwrap();
    assert_eq!(db.rows("SELECT rowid, v FROM u"), ["7|'1'", "5|'x'"]);
}

#[tokio::test]
async fn a_unit_of_many_rows_may_bring_a_column_with_its_last() {
    let mut db = Db::creating().await;
    let into = insert("t", &["id"]);
    let rows = (0..12_000).map(|id| into.write([Value::Int(id)]));
    let last = insert("t", &["id", "late"]).write([12_000.into(), "x".into()]);
    let unit = Unit::of(rows.chain([last]));
    let outcomes = db.outcomes(&[unit]).await;
    assert_eq!(counts(&outcomes[0]).len(), 12_001);
    assert_eq!(db.rows("SELECT count(*), count(late) FROM t"), ["12001|1"]);
}
