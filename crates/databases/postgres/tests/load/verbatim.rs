//! Records of CSV that the server splits: each field means what it means in a write of its own.

use windrow_core::{CsvStyle, CsvText, Field, LoadFault, OnConflict, Span};

use crate::alike::{OWN_TYPES, TYPES};
use crate::support::*;
use windrow_testkit::loads::WritePortion as _;

fn style(delimiter: u8, quote: u8, null: &str) -> CsvStyle {
    CsvStyle {
        delimiter,
        quote,
        null: null.into(),
    }
}

fn usual() -> CsvStyle {
    style(b',', b'"', "")
}

fn csv<'a>(style: &'a CsvStyle, text: &'a str, records: usize) -> CsvText<'a> {
    CsvText {
        style,
        text,
        records,
    }
}

/// A field as it may stand in a file, with what it is; in columns of JSON it is the text of that.
fn spellings<'t>(type_name: &str, text: &'t str) -> Vec<(String, Field<'t>)> {
    let is_json = type_name.starts_with("json")
        || text.starts_with('[') && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    let field = |other| if is_json { Field::Json(text) } else { other };
    let quoted = format!("\"{}\"", text.replace('"', "\"\""));
    let mut all = vec![(quoted, field(Field::Text(text)))];
    if !text.contains(['"', '~', '\n', '\r']) {
        all.push((text.to_owned(), field(Field::Plain(text))));
    }
    all
}

#[tokio::test]
async fn texts_of_every_type() {
    let bed = Bed::new(OWN_TYPES).await;
    let style = style(b'~', b'"', "<null>");
    let mut executor = bed.executor().await;
    let mut compared = 0;
    for (type_name, texts) in TYPES {
        if !bed.has_type(type_name) {
            continue;
        }
        bed.sql(&format!(
            "drop table if exists passed, alone; create table passed (v {type_name}); create table alone (v {type_name})"
        ));
        let mut loader = bed.loader(&plan("passed", &["v"])).await;
        if !loader.passes(&style) {
            continue;
        }
        // Neither is passed on.
        let texts = texts
            .iter()
            .filter(|text| !text.contains('\0') && !text.contains("\\."));
        let mut all: Vec<_> = texts.flat_map(|text| spellings(type_name, text)).collect();
        all.push(("<null>".to_owned(), Field::Null));
        for (spelled, field) in all {
            let what = format!("{type_name} {spelled:?}");
            let text = format!("{spelled}\n");
            let passed = loader.pass(csv(&style, &text, 1), None).await;
            let alone = alone(&mut *executor, &plan("alone", &["v"]), &[field]).await;
            match (&passed, &alone) {
                (Ok(loaded), Ok(_)) => assert_eq!(*loaded, written(1), "{what}"),
                (Err(LoadFault::Refused(_)), Err(_)) => {}
                other => panic!("{what}: {other:?}"),
            }
            compared += 1;
        }
        let values = |table: &str| {
            bed.sql(&format!(
                "select coalesce(v::text, 'NULL') from {table} order by ctid"
            ))
        };
        assert_eq!(values("passed"), values("alone"), "{type_name}");
    }
    assert!(compared > 300, "{compared}");
}

#[tokio::test]
async fn what_the_server_would_read_otherwise_is_not_passed_on() {
    let bed = Bed::new(
        "create table plain (id int primary key, v text);
         create table odd (id int primary key, b bytea, a int[], j json, jb jsonb)",
    )
    .await;
    let loader = bed.loader(&plan("plain", &["id", "v"])).await;
    assert!(bed.bulk.passes() && loader.passes(&usual()));
    for refused in [
        style(b',', b',', ""),
        style(b',', b'"', "a,b"),
        style(b',', b'"', "\""),
        style(b',', b'"', "\n"),
        style(b'\n', b'"', ""),
        style(0xe9, b'"', ""),
    ] {
        assert!(!loader.passes(&refused), "{refused:?}");
    }
    for (column, passes) in [("b", false), ("a", false), ("j", true), ("jb", true)] {
        let loader = bed.loader(&plan("odd", &["id", column])).await;
        assert_eq!(loader.passes(&usual()), passes, "{column}");
    }
    for on_conflict in [OnConflict::Ignore, OnConflict::Update] {
        let plan = with(plan("plain", &["id", "v"]), on_conflict);
        assert!(!bed.loader(&plan).await.passes(&usual()));
    }
}

#[tokio::test]
async fn styles_are_told_to_the_server() {
    let bed = Bed::new("create table t (id int, v text)").await;
    let mut loader = bed.loader(&plan("t", &["id", "v"])).await;
    for (style, text, records) in [
        (
            usual(),
            "1,a\n2,\"\"\n3,\n4,\"x,\ny\"\"z\"\n5,p\"q,\"r\n",
            5,
        ),
        (usual(), "6,a\r\n7,\"b\r\nc\"\r\n", 2),
        (usual(), "8,a\r9,b\r", 2),
        (style(b';', b'\'', "NA"), "10;NA\n11;'NA'\n12;it''s\n", 3),
        (style(b'\t', b'\\', "NU'LL"), "13\tx\n14\tNU'LL\n", 2),
        (style(b'\'', b'|', "\\N"), "15'|a'b|\n16'\\N\n", 2),
    ] {
        assert!(loader.passes(&style), "{style:?}");
        let outcome = loader.pass(csv(&style, text, records), None).await;
        assert_eq!(outcome, Ok(written(records as u64)), "{text:?}");
    }
    let found = bed.sql(
        "select string_agg(id || '=' || coalesce(replace(replace(v, E'\\r', 'R'), E'\\n', 'N'), 'null'), ' ' order by id) from t",
    );
    assert_eq!(
        found,
        "1=a 2= 3=null 4=x,Ny\"z 5=pq,r 6=a 7=bRNc 8=a 9=b 10=null 11=NA 12=its 13=x 14=null 15=a'b 16=null"
    );
}

#[tokio::test]
async fn it_is_all_or_nothing_with_its_mark() {
    let bed = Bed::new("create table t (id int primary key, v text)").await;
    let marks = bed.bulk.marks().unwrap();
    marks.prepare().await.unwrap();
    let mut loader = bed.loader(&plan("t", &["id", "v"])).await;
    let style = usual();
    let long = "x".repeat(300_000);
    let text = format!("1,a\n2,{long}\n3,c\n");
    let done = loader
        .pass(csv(&style, &text, 3), Some(&mark("l", 0, 3)))
        .await;
    assert_eq!(done, Ok(written(3)));
    for bad in [
        "4,a\n5\n",
        "4,a\n5,b,c\n",
        "4,a\nx,b\n",
        "4,a\n3,b\n",
        "4,a\n5,b\r\n",
        "4,a\n5,\"b\n",
    ] {
        let outcome = loader
            .pass(csv(&style, bad, 2), Some(&mark("l", 3, 5)))
            .await;
        refused(outcome);
    }
    let again = loader
        .pass(csv(&style, "9,z\n", 1), Some(&mark("l", 0, 1)))
        .await;
    hopeless(again);
    assert_eq!(
        bed.sql("select count(*), sum(length(v)) from t"),
        "3|300002"
    );
    assert_eq!(marks.read("l").await.unwrap(), [Span { first: 0, end: 3 }]);
    // The connection is still good.
    let plain = loader.pass(csv(&style, "4,d\n", 1), None).await;
    assert_eq!(plain, Ok(written(1)));
}
