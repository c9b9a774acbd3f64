//! By the lane or by a load: the same contents, the same faults.

use proptest::prelude::*;
use windrow_core::{Field, LoadFault};

use crate::support::*;
use windrow_testkit::loads::WritePortion as _;

const TYPES: &[&str] = &[
    "",
    "INTEGER",
    "INT NOT NULL",
    "BIGINT",
    "REAL",
    "DOUBLE",
    "NUMERIC",
    "DECIMAL(10,2)",
    "DECIMAL_TEXT",
    "TEXT",
    "VARCHAR(3)",
    "TEXT NOT NULL",
    "BLOB",
    "BOOLEAN",
    "DATE",
    "DATETIME",
    "JSON",
    "TEXT CHECK (v <> 'abc')",
    "INTEGER UNIQUE",
];

const STRICT: &[&str] = &["INTEGER", "REAL", "TEXT", "BLOB", "ANY"];

const TEXTS: &[&str] = &[
    "",
    " ",
    "0",
    "-0",
    "1",
    "-1",
    "+1",
    "007",
    "1.0",
    "1.5",
    "1.50",
    "1e3",
    "1e400",
    "-1e400",
    "0.1",
    "3.14159265358979323846",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "123456789012345678901234567890",
    "1.",
    ".5",
    "0x10",
    "1 ",
    "a",
    "abc",
    "true",
    "false",
    "NULL ",
    "\\N",
    "\\",
    "a\tb\nc",
    "a\0b",
    "\0",
    "'",
    "\"",
    "é",
    "\u{1f600}",
    "2013-01-02",
    "2013-01-02T03:04:05Z",
    "{}",
    "[1, 2]",
    "\"x\"",
    "{bad",
    "AP8=",
    "AP8",
    "A===",
    "AAECAw==",
    "inf",
    "NaN",
];

fn fields(text: &str) -> Vec<Field<'_>> {
    let mut fields = vec![
        Field::Plain(text),
        Field::Text(text),
        Field::Json(text),
        Field::Bytes(text.as_bytes()),
    ];
    if windrow_core::value::is_number(text.as_bytes()) {
        fields.push(Field::Number(text));
    }
    fields
}

async fn compare(of: &str, strict: &str) {
    let mut all: Vec<Field<'_>> = TEXTS.iter().flat_map(|text| fields(text)).collect();
    all.extend([
        Field::Null,
        Field::Bool(true),
        Field::Bool(false),
        Field::Bytes(b"\0\xff"),
    ]);
    let db = Db::new(&format!(
        "create table lane (id integer primary key, v {of}) {strict}; create table bulk (id integer primary key, v {of}) {strict};"
    ))
    .await;
    let ids: Vec<String> = (0..all.len()).map(|id| id.to_string()).collect();
    let rows: Vec<Vec<Field<'_>>> = ids
        .iter()
        .zip(&all)
        .map(|(id, field)| vec![Field::Plain(id), *field])
        .collect();
    let told = db.alone(&plan("lane", &["id", "v"]), &rows).await;
    let mut loader = db.loader(&plan("bulk", &["id", "v"])).await;
    for (row, fault) in rows.iter().zip(told) {
        let outcome = loader.load(&portion(std::slice::from_ref(row)), None).await;
        let expected = match fault {
            None => Ok(written(1)),
            Some(fault) if fault.constraint() == Some("lane.v") => {
                refused(outcome);
                continue;
            }
            Some(fault) => Err(fault.message.replace("lane", "bulk")),
        };
        let outcome = outcome.map_err(|fault| match fault {
            LoadFault::Refused(fault) => fault.message.to_string(),
            other => panic!("{of}: {row:?}: {other:?}"),
        });
        assert_eq!(outcome, expected, "{of}: {row:?}");
    }
    let dump = |table: &str| format!("select id, typeof(v), v from {table} order by id");
    assert_eq!(db.rows(&dump("bulk")), db.rows(&dump("lane")), "{of}");
}

#[tokio::test]
async fn all_types_take_what_they_take_alone() {
    for of in TYPES {
        compare(of, "").await;
    }
}

#[tokio::test]
async fn strict_tables_too() {
    for of in STRICT {
        compare(of, "strict").await;
    }
}

#[test]
fn any_text_is_as_by_the_lane() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let table =
        "(id integer primary key, i integer, n numeric, r real, t text, b blob, a any, j json)";
    let schema = format!("create table lane {table}; create table bulk {table};");
    let db = runtime.block_on(Db::new(&schema));
    let config = ProptestConfig {
        cases: 100,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let text = prop_oneof![
        ".{0,8}",
        any::<f64>().prop_map(|x| x.to_string()),
        any::<i64>().prop_map(|n| n.to_string()),
        "-?[0-9]{1,25}(\\.[0-9]{0,20})?(e-?[0-9]{1,3})?",
    ];
    let cell = (0..7_usize, text, any::<bool>());
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let result = runner.run(&proptest::collection::vec(cell, 1..20), |cells| {
        let columns = ["id", "i", "n", "r", "t", "b", "a", "j"];
        let ids: Vec<String> = (0..cells.len()).map(|id| id.to_string()).collect();
        let row = |(id, (place, text, typed)): (usize, &'_ (usize, String, bool))| {
            let mut row = vec![None; columns.len()];
            if let Some(cell) = row.get_mut(place + 1) {
                *cell = Some((text.clone(), *typed));
            }
            (id, row)
        };
        let owned: Vec<_> = cells.iter().enumerate().map(row).collect();
        let rows: Vec<Vec<Field<'_>>> = owned
            .iter()
            .zip(&ids)
            .map(|((_, row), id)| {
                let fields = row.iter().skip(1).map(|cell| match cell {
                    None => Field::Null,
                    Some((text, true)) => Field::Text(text),
                    Some((text, false)) => Field::Plain(text),
                });
                std::iter::once(Field::Plain(id)).chain(fields).collect()
            })
            .collect();
        runtime.block_on(async {
            db.run("delete from lane; delete from bulk;");
            let told = db.alone(&plan("lane", &columns), &rows).await;
            let mut loader = db.loader(&plan("bulk", &columns)).await;
            let all = loader.load(&portion(&rows), None).await;
            if told.iter().any(Option::is_some) {
                refused(all);
                assert_eq!(db.number("select count(*) from bulk"), 0);
                db.run("delete from lane;");
                let good = rows.iter().zip(&told).filter(|(_, fault)| fault.is_none());
                let good: Vec<_> = good.map(|(row, _)| row.clone()).collect();
                db.alone(&plan("lane", &columns), &good).await;
                if !good.is_empty() {
                    loader.load(&portion(&good), None).await.unwrap();
                }
            }
            let dump = |table: &str| format!("select *, typeof(i), typeof(n), typeof(r), typeof(a), typeof(j) from {table} order by id");
            assert_eq!(db.rows(&dump("bulk")), db.rows(&dump("lane")));
        });
        Ok(())
    });
    result.unwrap();
}
