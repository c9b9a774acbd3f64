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
    assert_eq!(types(&db, "t").last().unwrap(), "late NUMERIC");
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
        ["b TEXT pk2", "a INTEGER pk1", "v NUMERIC"]
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
async fn a_column_keeps_its_type_and_refuses_what_it_would_not_keep() {
    for (first, declared, taken, refused) in [
        (
            5.into(),
            "NUMERIC",
            vec![
                7.into(),
                "8".into(),
                number("0.5"),
                i64::MAX.into(),
                "9007199254740993".into(),
            ],
            vec![
                number("0.10000000000000000000001"),
                "x".into(),
                true.into(),
                "05".into(),
            ],
        ),
        (
            number("21.5"),
            "REAL",
            vec![3.into(), number("0.1"), "1.5".into()],
            vec![
                "n/a".into(),
                i64::MAX.into(),
                number("0.10000000000000000000001"),
                json("{}"),
            ],
        ),
        (
            true.into(),
            "BOOLEAN",
            vec![false.into(), "true".into()],
            vec![1.into(), "yes".into()],
        ),
        (
            json("[1]"),
            "JSON",
            vec!["x".into(), 1.into()],
            vec![Value::Bytes([1].into())],
        ),
        (
            "x".into(),
            "TEXT",
            vec![1.into(), true.into(), json("{}")],
            vec![],
        ),
        (
            "2024-01-05T10:00:00Z".into(),
            "TIMESTAMPTZ",
            vec!["2024-01-05".into(), "2024-01-05 10:00:00.5+02".into()],
            vec!["n/a".into(), 1.into(), "10:00:00".into()],
        ),
        (
            "2024-01-05".into(),
            "DATE",
            vec!["2024-02-29".into()],
            vec!["2024-01-05T10:00:00".into(), "2023-02-29".into()],
        ),
    ] {
        let mut db = Db::creating().await;
        let into = insert("t", &["v"]);
        let first: Value = first;
        db.one(into.write([first.clone()])).await.unwrap();
        for value in taken {
            let value: Value = value;
            let done = db.one(into.write([value.clone()])).await;
            assert!(done.is_ok(), "{declared} {value:?}: {done:?}");
        }
        for value in refused {
            let value: Value = value;
            let fault = db.one(into.write([value.clone()])).await.unwrap_err();
            assert_eq!(
                (fault.class, &*fault.code),
                (FaultClass::Value, "22P02"),
                "{value:?}"
            );
            assert_eq!((fault.table(), fault.column()), (Some("t"), Some("v")));
            assert!(fault.message.contains(declared), "{fault}");
            assert!(
                fault
                    .hint()
                    .is_some_and(|hint| hint.contains("never changes the type"))
            );
        }
        assert_eq!(types(&db, "t"), [format!("v {declared}")]);
    }
}

/// Spellings of one moment are one key and one value, in the order of time.
#[tokio::test]
async fn moments_are_stored_in_one_form() {
    let mut db = Db::creating().await;
    let into = insert("t", &["id", "at"]);
    db.one(into.write([
        "2026-01-01T00:00:00Z".into(),
        "2026-01-01 01:00:00.50+01".into(),
    ]))
    .await
    .unwrap();
    let same = into.write(["2026-01-01 00:00:00+00".into(), Value::Null]);
    assert_eq!(&*db.one(same).await.unwrap_err().code, "23505");
    let found = get("t").write(["2026-01-01T02:00:00+02:00".into()]);
    assert_eq!(db.one(found).await.unwrap().rows, 1);
    assert_eq!(
        db.rows("SELECT * FROM t"),
        ["'2026-01-01T00:00:00+00:00'|'2026-01-01T00:00:00.500000+00:00'"]
    );
    // Tables of others keep what they get.
    db.look()
        .execute_batch("CREATE TABLE theirs (at TIMESTAMPTZ)")
        .unwrap();
    let theirs = insert("theirs", &["at"]);
    db.one(theirs.write(["2026-01-01T00:00:00Z".into()]))
        .await
        .unwrap();
    assert_eq!(db.rows("SELECT * FROM theirs"), ["'2026-01-01T00:00:00Z'"]);
}

#[tokio::test]
async fn keys_keep_their_types() {
    let mut db = Db::creating().await;
    let into = insert("t", &["id", "u"]);
    db.one(into.write([1.into(), 1.into()])).await.unwrap();
    // A whole number spelled as one is that number; the others of a batch are not harmed by one
    // that is refused.
    let units = [
        into.unit(["5".into(), 5.into()]),
        into.unit([true.into(), 6.into()]),
        into.unit([6.into(), "n/a".into()]),
        insert("t", &["id", "new"]).unit(["x".into(), 7.into()]),
        insert("t", &["id", "new"]).unit([8.into(), 8.into()]),
    ];
    assert_eq!(
        brief(&db.outcomes(&units).await),
        ["[1]", "22P02@0", "22P02@0", "22P02@0", "[1]"]
    );
    assert_eq!(
        types(&db, "t"),
        ["id INTEGER pk1", "u NUMERIC", "new NUMERIC"]
    );
    assert_eq!(
        db.rows("SELECT id, u, new FROM t ORDER BY id"),
        ["1|1|NULL", "5|5|NULL", "8|NULL|8"]
    );
}

#[tokio::test]
async fn tables_of_strange_names_are_made_and_extended() {
    let mut db = Db::creating().await;
    let table = "\"we\"\"ird; \"";
    let into = insert(table, &["id", "a\"b"]);
    db.one(into.write([1.into(), 1.into()])).await.unwrap();
    let grown = insert(table, &["id", "c"]);
    db.one(grown.write([2.into(), 1.into()])).await.unwrap();
    let refused = db.one(into.write([3.into(), "x".into()])).await;
    assert_eq!(refused.unwrap_err().code, "22P02");
    assert_eq!(
        db.rows("SELECT * FROM \"we\"\"ird; \" ORDER BY rowid"),
        ["1|1|NULL", "2|NULL|1"]
    );
}

#[tokio::test]
async fn tables_of_others_are_left_alone_unless_that_is_asked_for() {
    let schema = "CREATE TABLE own (id INTEGER PRIMARY KEY, n NUMERIC);
         CREATE TABLE firm (id INTEGER PRIMARY KEY) STRICT;
         CREATE VIEW v AS SELECT id FROM own;";
    let more = || insert("own", &["n", "more"]).write([1.into(), true.into()]);
    let mut db = Db::with(schema, &creating()).await;
    let units = [
        insert("own", &["n", "more"]).unit([1.into(), true.into()]),
        insert("own", &["n"]).unit([2.into()]),
        insert("own", &["n"]).unit(["as SQLite likes".into()]),
    ];
    let outcomes = db.outcomes(&units).await;
    assert_eq!(brief(&outcomes), ["42703@0", "[1]", "[1]"]);
    let hint = outcomes[0]
        .as_ref()
        .unwrap_err()
        .fault
        .hint()
        .map(str::to_owned);
    assert!(hint.is_some_and(|hint| hint.contains("extend_tables")));
    assert_eq!(types(&db, "own"), ["id INTEGER pk1", "n NUMERIC"]);
    let extending = windrow_database::Options {
        extend_tables: true,
        ..creating()
    };
    let mut db = Db::with(schema, &extending).await;
    assert!(db.one(more()).await.is_ok());
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
}

#[tokio::test]
async fn a_table_stays_windrows_when_it_is_renamed_or_altered() {
    let mut db = Db::creating().await;
    db.one(insert("t", &["id"]).write([1.into()]))
        .await
        .unwrap();
    db.look()
        .execute_batch(
            "ALTER TABLE t ADD COLUMN c INTEGER CHECK (c > 0); ALTER TABLE t RENAME TO u",
        )
        .unwrap();
    let fault = db.one(insert("u", &["c"]).write(["x".into()])).await;
    assert_eq!(fault.unwrap_err().code, "22P02");
    db.one(insert("u", &["id", "d"]).write([2.into(), 1.into()]))
        .await
        .unwrap();
    assert_eq!(
        types(&db, "u"),
        ["id INTEGER pk1", "c INTEGER", "d NUMERIC"]
    );
}

/// Other programs read JSON in a column of JSON, and Windrow returns what was sent.
#[tokio::test]
async fn json_columns_keep_texts_apart_from_what_they_spell() {
    let mut db = Db::new("CREATE TABLE t (id INTEGER PRIMARY KEY, j JSON)").await;
    let values: Vec<Value> = vec![
        "true".into(),
        "1".into(),
        "{}".into(),
        "abc".into(),
        "null".into(),
        "a \"quoted\"\n".into(),
        "".into(),
        true.into(),
        1.into(),
        json("{\"a\":[\"1\"]}"),
        json("\"in JSON\""),
    ];
    let put = insert("t", &["id", "j"]);
    for (id, value) in (0_i64..).zip(&values) {
        db.one(put.write([id.into(), value.clone()])).await.unwrap();
        let got = db.one(get("t").returning(&["j"]).write([id.into()])).await;
        // A string is JSON on its way out, as in an answer over HTTP.
        let expected = match value {
            Value::Text(text) => json(&serde_json::to_string(&**text).unwrap()),
            value => value.clone(),
        };
        assert_eq!(returned(&got.unwrap()), [[expected]]);
    }
    assert_eq!(
        db.rows("SELECT count(*) FROM t WHERE json_valid(j)"),
        ["11"]
    );
    assert_eq!(
        db.rows("SELECT json_type(j) FROM t WHERE id < 5"),
        ["'text'", "'text'", "'text'", "'text'", "'text'"]
    );
    let broken = db.one(put.write([99.into(), json("{a}")])).await;
    assert_eq!(broken.unwrap_err().code, "22P02");
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
    assert_eq!(types(&db, "t"), ["id INTEGER pk1", "v NUMERIC"]);
}

#[tokio::test]
async fn a_row_that_asks_too_much_fails_alone() {
    let mut db = Db::creating().await;
    let columns: Vec<String> = (0..2100).map(|i| format!("c{i}")).collect();
    let half = |range: std::ops::Range<usize>| {
        let names: Vec<&str> = columns[range].iter().map(String::as_str).collect();
        let shape = insert("t", &names).shape();
        Unit::one(windrow_core::Write::new(
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
