//! Portions of many rows and of wide ones.

use windrow_core::{Field, Rows};

use crate::support::*;
use windrow_testkit::loads::WritePortion as _;

#[tokio::test]
async fn a_hundred_thousand_rows() {
    let bed = Bed::new("create table t (id int primary key, v text, n numeric, f float8)").await;
    let mut rows = Rows::new(4);
    for id in 0..100_000_u64 {
        let (id, n) = (id.to_string(), format!("{id}.25"));
        let fields = [&*id, "ä\t\\N", &n, "0.5"].map(Field::Plain);
        assert!(rows.push(1, fields));
    }
    assert_eq!(
        bed.load(&plan("t", &["id", "v", "n", "f"]), &rows).await,
        Ok(written(100_000))
    );
    let sums = "select count(*), sum(id), sum(n), sum(f), min(v) = max(v), max(length(v)) from t";
    assert_eq!(bed.sql(sums), "100000|4999950000|4999975000.00|50000|t|4");
}

#[tokio::test]
async fn rows_of_ten_megabytes() {
    let bed =
        Bed::new("create table t (id int primary key, v text, j jsonb, b bytea, odd interval)")
            .await;
    let text = "ä\\\t".repeat(2_500_000);
    let json = format!("[{}1]", "1,".repeat(1_000_000));
    let bytes = vec![0xff_u8; 10_000_000];
    for columns in [&["id", "v", "j", "b"][..], &["id", "v", "j", "b", "odd"]] {
        bed.sql("truncate t");
        let mut rows = Rows::new(columns.len());
        for id in ["1", "2"] {
            let fields = [
                Field::Plain(id),
                Field::Text(&text),
                Field::Json(&json),
                Field::Bytes(&bytes),
                Field::Plain("1 day"),
            ];
            assert!(rows.push(1, fields));
        }
        assert_eq!(bed.load(&plan("t", columns), &rows).await, Ok(written(2)));
        let lengths = "select length(v), octet_length(v), jsonb_array_length(j), length(b), md5(b) = md5(decode(repeat('ff', 10000000), 'hex')) from t";
        let expected = "7500000|10000000|1000001|10000000|t";
        assert_eq!(bed.sql(lengths), format!("{expected}\n{expected}"));
    }
}

#[tokio::test]
async fn no_rows_at_all() {
    let bed = Bed::new("create table t (id int primary key)").await;
    let marks = bed.bulk.marks().unwrap();
    marks.prepare().await.unwrap();
    let mut loader = bed.loader(&plan("t", &["id"])).await;
    let empty = Rows::new(1);
    assert_eq!(
        loader.load(&empty, Some(&mark("l", 0, 5))).await,
        Ok(written(0))
    );
    assert_eq!(marks.read("l").await.unwrap().len(), 1);
}
