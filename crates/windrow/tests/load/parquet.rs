//! Parquet files: their own types make the columns, and their texts are what a column of JSON
//! holds.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray,
    Float32Array, Float64Array, Int16Array, Int32Array, Int64Array, RecordBatch, StringArray,
    Time64MicrosecondArray, TimestampMicrosecondArray, UInt64Array,
};
use arrow_schema::extension::{Json, Uuid};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;

use crate::support::Db;

fn file(db: &Db, name: &str, columns: Vec<(Field, ArrayRef)>) -> String {
    let (fields, arrays): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(schema.clone(), arrays).unwrap();
    let path = db.path(name);
    let out = std::fs::File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(out, schema, None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    path.to_str().unwrap().to_owned()
}

fn column(name: &str, array: impl arrow_array::Array + 'static) -> (Field, ArrayRef) {
    let field = Field::new(name, array.data_type().clone(), true);
    (field, Arc::new(array))
}

/// Two rows of every usual type; the second has no value but its number.
fn every_type() -> Vec<(Field, ArrayRef)> {
    let cents = Decimal128Array::from(vec![Some(-1250), None]);
    let zoned = TimestampMicrosecondArray::from(vec![Some(1_500_000), None]);
    let id = FixedSizeBinaryArray::try_from_sparse_iter_with_size(
        [Some([0x11_u8; 16]), None].into_iter(),
        16,
    );
    let uuid = Field::new("u", DataType::FixedSizeBinary(16), true).with_extension_type(Uuid);
    let json = Field::new("j", DataType::Utf8, true).with_extension_type(Json::default());
    vec![
        column("id", Int64Array::from(vec![1, 2])),
        column("small", Int16Array::from(vec![Some(-7), None])),
        column("whole", Int32Array::from(vec![Some(70_000), None])),
        column("large", UInt64Array::from(vec![Some(u64::MAX), None])),
        column("single", Float32Array::from(vec![Some(0.5), None])),
        column("double", Float64Array::from(vec![Some(3.0), None])),
        column("cents", cents.with_precision_and_scale(10, 2).unwrap()),
        column("truth", BooleanArray::from(vec![Some(true), None])),
        column("day", Date32Array::from(vec![Some(20_484), None])),
        column(
            "clock",
            Time64MicrosecondArray::from(vec![Some(1_000_001), None]),
        ),
        column("at", TimestampMicrosecondArray::from(vec![Some(0), None])),
        column("zoned", zoned.with_timezone("UTC")),
        column("b", BinaryArray::from_opt_vec(vec![Some(b"\0\xff"), None])),
        (uuid, Arc::new(id.unwrap())),
        (
            json,
            Arc::new(StringArray::from(vec![Some("{\"a\": 1}"), None])),
        ),
        column("words", StringArray::from(vec![Some("2024-01-05"), None])),
    ]
}

#[test]
fn postgres_has_the_types_of_the_file() {
    let db = Db::postgres();
    let file = file(&db, "t.parquet", every_type());
    db.load(&[&file, "-t", "t", "--create"]).is(
        0,
        &[
            "2 rows written",
            "columns made as the file declares them: id bigint, small smallint, whole integer, large numeric, single real, \
             double double precision, cents numeric, truth boolean, day date, clock time without time zone, \
             at timestamp without time zone, zoned timestamp with time zone, b bytea, u uuid, j jsonb, words text",
        ],
    );
    let row = "select small, whole, large, single, double, cents, truth, day, clock, at, \
               zoned at time zone 'UTC', b, u, j, words from t where id = 1";
    assert_eq!(
        db.exec(row).trim_end(),
        "-7|70000|18446744073709551615|0.5|3|-12.50|t|2026-01-31|00:00:01.000001|1970-01-01 00:00:00|\
         1970-01-01 00:00:01.5|\\x00ff|11111111-1111-1111-1111-111111111111|{\"a\": 1}|2024-01-05"
    );
    let digits = "select numeric_precision * 100 + numeric_scale from information_schema.columns where column_name = 'cents'";
    assert_eq!(db.number(digits), 1002);
    assert_eq!(
        db.number("select count(*) from t where num_nulls(small, zoned, u, words) = 4"),
        1
    );
}

#[test]
fn mariadb_has_the_types_of_the_file() {
    let db = Db::mariadb();
    let file = file(&db, "t.parquet", every_type());
    db.load(&[&file, "-t", "t", "--create"]).is(
        0,
        &[
            "2 rows written",
            "columns made as the file declares them: id bigint, ",
        ],
    );
    let types = "select group_concat(column_name, ' ', column_type order by ordinal_position separator ', ') \
                 from information_schema.columns where table_schema = database() and table_name = 't'";
    // MySQL shows no width of whole numbers.
    let types = db.exec(types).replace("int(11)", "int");
    for wanted in [
        "small smallint",
        "whole int",
        "large decimal(20,0)",
        "single double",
        "double double",
        "cents decimal(10,2)",
        "truth tinyint(1)",
        "day date",
        "clock time(6)",
        "at datetime(6)",
        "zoned datetime(6)",
        "b longblob",
        "u char(36)",
        "words longtext",
    ] {
        assert!(types.contains(wanted), "{wanted:?} is not in {types}");
    }
    let row = "select small, whole, large, single, `double`, cents, truth, day, clock, at, zoned, hex(b), u, j, words \
               from t where id = 1";
    assert_eq!(
        db.exec(row).trim_end(),
        "-7|70000|18446744073709551615|0.5|3|-12.50|1|2026-01-31|00:00:01.000001|1970-01-01 00:00:00.000000|\
         1970-01-01 00:00:01.500000|00FF|11111111-1111-1111-1111-111111111111|{\"a\": 1}|2024-01-05"
    );
}

#[test]
fn sqlite_has_what_the_values_ask_for() {
    let db = Db::sqlite();
    let file = file(&db, "t.parquet", every_type());
    db.load(&[&file, "-t", "t", "--create"])
        .is(0, &["2 rows written", "day date", "b blob", "u text"]);
    let row = "select small, whole, large, single, double, cents, truth, day, clock, at, zoned, hex(b), u, j from t where id = 1";
    assert_eq!(
        db.exec(row).trim_end(),
        "-7|70000|18446744073709551615|0.5|3|-12.5|1|2026-01-31|00:00:01.000001|1970-01-01T00:00:00|\
         1970-01-01T00:00:01.500000+00:00|00FF|11111111-1111-1111-1111-111111111111|{\"a\": 1}"
    );
}

/// Strings, which most writers have for JSON, and Parquet's own JSON are the JSON itself; what is
/// none is refused.
fn json(db: &Db, kind: &str, read: &str) {
    let texts = ["{\"a\": [1]}", "\"s\"", "5", "null", "abc", ""];
    let own = Field::new("own", DataType::Utf8, true).with_extension_type(Json::default());
    let columns = vec![
        column("id", Int64Array::from_iter_values(0..6)),
        column("j", StringArray::from_iter_values(texts)),
        (own, Arc::new(StringArray::from_iter_values(["[true]"; 6]))),
    ];
    let file = file(db, "j.parquet", columns);
    for way in [
        &[][..],
        &["--batch-rows", "1"],
        &["--on-conflict", "update"],
    ] {
        db.exec(&format!(
            "create table t (id int primary key, j {kind}, own {kind})"
        ));
        db.load(&[&[&*file, "-t", "t"], way].concat())
            .is(3, &["4 rows written, 2 refused", "line 5: ", "line 6: "]);
        let rows = db.exec(&format!(
            "select id, replace({read}, ' ', ''), own from t order by id"
        ));
        assert_eq!(
            rows.trim_end(),
            "0|{\"a\":[1]}|[true]\n1|\"s\"|[true]\n2|5|[true]\n3|null|[true]",
            "{kind} {way:?}"
        );
        db.exec("drop table t");
    }
}

#[test]
fn json_postgres() {
    let db = Db::postgres();
    json(&db, "json", "j::text");
    json(&db, "jsonb", "j::text");
}

#[test]
fn json_mariadb() {
    json(&Db::mariadb(), "json", "j");
}
