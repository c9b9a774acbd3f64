use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, MapBuilder, StringBuilder};
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BinaryArray, BooleanArray, Date32Array, Decimal128Array,
    Decimal256Array, FixedSizeBinaryArray, Float32Array, Float64Array, Int8Array, Int32Array,
    Int64Array, NullArray, StringArray, StructArray, Time32MillisecondArray, Time64NanosecondArray,
    TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray, UInt64Array,
};
use arrow_schema::{DataType, Field as Column, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{ByteArray, FixedLenByteArray, Int96};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;
use windrow_core::Field;

use crate::source::{Options, Portion, PortionLimits, Source, open};

type I256 = <arrow_array::types::Decimal256Type as ArrowPrimitiveType>::Native;

const ALL: PortionLimits = PortionLimits {
    records: usize::MAX,
    bytes: usize::MAX,
};

fn write(path: &Path, columns: Vec<(Column, ArrayRef)>, compression: Compression) {
    let (fields, arrays): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    let schema = Arc::new(Schema::new(fields));
    let batch = arrow_array::RecordBatch::try_new(schema.clone(), arrays).unwrap();
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_max_row_group_row_count(Some(3))
        .build();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, schema, Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

fn column(name: &str, array: ArrayRef) -> (Column, ArrayRef) {
    (Column::new(name, array.data_type().clone(), true), array)
}

fn opened(path: &Path) -> Box<dyn Source> {
    open(path.to_str().unwrap(), &Options::default()).unwrap()
}

/// Columns of one row and their texts.
fn all_types() -> Vec<((Column, ArrayRef), Field<'static>, &'static str)> {
    let mut list = ListBuilder::new(StringBuilder::new());
    list.append_value([Some("a\""), None]);
    let mut map = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
    map.keys().append_value("k");
    map.values().append_value("v");
    map.append(true).unwrap();
    let inner: ArrayRef = Arc::new(Date32Array::from(vec![0]));
    let record = StructArray::from(vec![(
        Arc::new(Column::new("d", DataType::Date32, true)),
        inner,
    )]);
    let uuid = FixedSizeBinaryArray::try_from_iter([[0x11_u8; 16]].iter()).unwrap();
    let uuid_field = Column::new("uuid", DataType::FixedSizeBinary(16), true)
        .with_extension_type(arrow_schema::extension::Uuid);
    let json_field = Column::new("json", DataType::Utf8, true)
        .with_extension_type(arrow_schema::extension::Json::default());
    let cents = Decimal128Array::from(vec![-5]).with_precision_and_scale(18, 2);
    let small = Decimal128Array::from(vec![12345]).with_precision_and_scale(9, 4);
    let long = Decimal128Array::from(vec![i128::from(i64::MAX) * 10]);
    let long = long.with_precision_and_scale(38, 0);
    let huge: Result<I256, _> = "-12345678901234567890123456789012345678901234567890".parse();
    let huge = Decimal256Array::from(vec![huge.unwrap()]).with_precision_and_scale(70, 10);
    let utc = TimestampMicrosecondArray::from(vec![1_500_000]).with_timezone("Europe/Vienna");
    let text = |text| Field::Text(text);
    let number = |text| Field::Number(text);
    macro_rules! case {
        ($name:literal, $array:expr, $field:expr, $json:literal) => {
            (column($name, Arc::new($array)), $field, $json)
        };
    }
    vec![
        case!("i8", Int8Array::from(vec![-1]), number("-1"), "-1"),
        case!(
            "i64",
            Int64Array::from(vec![i64::MIN]),
            number("-9223372036854775808"),
            "-9223372036854775808"
        ),
        case!(
            "u64",
            UInt64Array::from(vec![u64::MAX]),
            number("18446744073709551615"),
            "18446744073709551615"
        ),
        case!("f32", Float32Array::from(vec![0.1]), number("0.1"), "0.1"),
        case!(
            "f64",
            Float64Array::from(vec![1e300]),
            number("1e300"),
            "1e300"
        ),
        case!(
            "nan",
            Float64Array::from(vec![f64::NAN]),
            text("NaN"),
            "\"NaN\""
        ),
        case!(
            "inf",
            Float32Array::from(vec![f32::NEG_INFINITY]),
            text("-Infinity"),
            "\"-Infinity\""
        ),
        case!("cents", cents.unwrap(), number("-0.05"), "-0.05"),
        case!("small", small.unwrap(), number("1.2345"), "1.2345"),
        case!(
            "long",
            long.unwrap(),
            number("92233720368547758070"),
            "92233720368547758070"
        ),
        case!(
            "huge",
            huge.unwrap(),
            number("-1234567890123456789012345678901234567890.1234567890"),
            "-1234567890123456789012345678901234567890.1234567890"
        ),
        case!(
            "date",
            Date32Array::from(vec![20_484]),
            text("2026-01-31"),
            "\"2026-01-31\""
        ),
        case!(
            "t32",
            Time32MillisecondArray::from(vec![1]),
            text("00:00:00.001"),
            "\"00:00:00.001\""
        ),
        case!(
            "t64",
            Time64NanosecondArray::from(vec![0]),
            text("00:00:00"),
            "\"00:00:00\""
        ),
        case!(
            "ms",
            TimestampMillisecondArray::from(vec![0]),
            text("1970-01-01T00:00:00"),
            "\"1970-01-01T00:00:00\""
        ),
        case!(
            "ns",
            TimestampNanosecondArray::from(vec![-1]),
            text("1969-12-31T23:59:59.999999999"),
            "\"1969-12-31T23:59:59.999999999\""
        ),
        case!(
            "us",
            TimestampNanosecondArray::from(vec![1_500_000_000]),
            text("1970-01-01T00:00:01.500000"),
            "\"1970-01-01T00:00:01.500000\""
        ),
        case!(
            "utc",
            utc,
            text("1970-01-01T00:00:01.500000+00:00"),
            "\"1970-01-01T00:00:01.500000+00:00\""
        ),
        case!(
            "bool",
            BooleanArray::from(vec![true]),
            Field::Bool(true),
            "true"
        ),
        case!(
            "text",
            StringArray::from(vec!["ä\n"]),
            text("ä\n"),
            "\"ä\\n\""
        ),
        case!(
            "bytes",
            BinaryArray::from_vec(vec![b"\0\xff"]),
            Field::Bytes(b"\0\xff"),
            "\"\\\\x00ff\""
        ),
        case!(
            "list",
            list.finish(),
            Field::Json("[\"a\\\"\",null]"),
            "[\"a\\\"\",null]"
        ),
        case!(
            "map",
            map.finish(),
            Field::Json("{\"k\":\"v\"}"),
            "{\"k\":\"v\"}"
        ),
        case!(
            "record",
            record,
            Field::Json("{\"d\":\"1970-01-01\"}"),
            "{\"d\":\"1970-01-01\"}"
        ),
        case!("null", Int32Array::from(vec![None]), Field::Null, "null"),
        case!("unseen", NullArray::new(1), Field::Null, "null"),
        (
            (uuid_field, Arc::new(uuid)),
            text("11111111-1111-1111-1111-111111111111"),
            "\"11111111-1111-1111-1111-111111111111\"",
        ),
        (
            (json_field, Arc::new(StringArray::from(vec!["{\"a\": 1}"]))),
            Field::Json("{\"a\": 1}"),
            "{\"a\": 1}",
        ),
    ]
}

#[test]
fn every_usual_type_has_its_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("types");
    let (mut columns, mut fields, mut json) = (Vec::new(), Vec::new(), Vec::new());
    for (column, field, text) in all_types() {
        json.push(format!("\"{}\":{text}", column.0.name()));
        fields.push(field);
        columns.push(column);
    }
    write(&path, columns, Compression::UNCOMPRESSED);
    let mut source = opened(&path);
    let mut portion = Portion::new(fields.len());
    assert!(source.read(&mut portion, ALL).unwrap());
    let found: Vec<_> = portion.rows.fields().collect();
    assert_eq!(found, fields);
    let raw = std::str::from_utf8(portion.raw(0)).unwrap();
    assert_eq!(raw, format!("{{{}}}", json.join(",")));
    serde_json::from_str::<HashMap<String, serde_json::Value>>(raw).unwrap();
    assert!(!source.read(&mut portion, ALL).unwrap());
}

fn numbers(path: &Path, rows: i64, compression: Compression) {
    let ids: Int64Array = (0..rows).map(Some).collect();
    let notes: StringArray = (0..rows).map(|n| Some(format!("n{n}"))).collect();
    let columns = vec![column("id", Arc::new(ids)), column("note", Arc::new(notes))];
    write(path, columns, compression);
}

#[test]
fn row_groups_batches_and_portions_follow_each_other_whatever_the_compression() {
    let folder = tempfile::tempdir().unwrap();
    for compression in [
        Compression::SNAPPY,
        Compression::ZSTD(ZstdLevel::default()),
        Compression::GZIP(Default::default()),
        Compression::LZ4_RAW,
    ] {
        let path = folder.path().join("x.parquet");
        numbers(&path, 10, compression);
        let mut source = opened(&path);
        assert_eq!(source.names().unwrap().len(), 2);
        source.choose(&[1, 0, 1]);
        let mut portion = Portion::new(3);
        let most = PortionLimits {
            records: 4,
            bytes: usize::MAX,
        };
        let (mut found, mut raw) = (Vec::new(), Vec::new());
        while source.read(&mut portion, most).unwrap() {
            let rows = 0..portion.rows.len();
            raw.extend(rows.map(|row| String::from_utf8(portion.raw(row).to_vec()).unwrap()));
            found.extend(portion.rows.lines().to_vec());
            assert_eq!(
                portion.records,
                (portion.end - portion.rows.len() as u64..portion.end).collect::<Vec<_>>()
            );
            let all: Vec<_> = portion.rows.fields().collect();
            assert_eq!(all[0], all[2]);
        }
        assert_eq!(found, (1..=10).collect::<Vec<u64>>());
        assert_eq!(raw[7], r#"{"note":"n7","id":7,"note":"n7"}"#);
        assert_eq!(source.read_bytes(), path.metadata().unwrap().len());
    }
}

#[test]
fn texts_with_nul_are_bad_and_columns_of_one_name_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.parquet");
    let texts = StringArray::from(vec!["a", "b\0", "c"]);
    write(
        &path,
        vec![column("t", Arc::new(texts.clone()))],
        Compression::SNAPPY,
    );
    let mut source = opened(&path);
    let mut portion = Portion::new(1);
    assert!(source.read(&mut portion, ALL).unwrap());
    assert_eq!((portion.records.clone(), portion.end), (vec![0, 2], 3));
    assert_eq!((portion.bad[0].record, portion.bad[0].line), (1, 2));
    assert!(portion.bad[0].reason.starts_with("has a NUL character"));
    let again = vec![
        column("t", Arc::new(texts.clone())),
        column("t", Arc::new(texts)),
    ];
    write(&path, again, Compression::SNAPPY);
    let fault = open(path.to_str().unwrap(), &Options::default())
        .err()
        .unwrap();
    assert!(
        fault.to_string().ends_with("the column \"t\" occurs twice"),
        "{fault}"
    );
}

/// Writes a file of two rows with this schema: each column has the first row's value, and NULL in
/// the second one if it may be NULL.
fn write_raw(path: &Path, schema: &str, write: impl Fn(&str, &mut ColumnWriter<'_>)) {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let file = std::fs::File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Default::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    while let Some(mut column) = group.next_column().unwrap() {
        let name = match column.untyped() {
            ColumnWriter::Int32ColumnWriter(c) => c.get_descriptor().path().string(),
            ColumnWriter::Int64ColumnWriter(c) => c.get_descriptor().path().string(),
            ColumnWriter::Int96ColumnWriter(c) => c.get_descriptor().path().string(),
            ColumnWriter::ByteArrayColumnWriter(c) => c.get_descriptor().path().string(),
            ColumnWriter::FixedLenByteArrayColumnWriter(c) => c.get_descriptor().path().string(),
            _ => unreachable!(),
        };
        write(&name, column.untyped());
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
}

/// Files of old writers, of Spark and of Impala: what Arrow's writer does not make.
#[test]
fn old_and_physical_types_have_their_texts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.parquet");
    let schema = "message m {
        optional int96 spark;
        optional int32 cents (DECIMAL(9, 2));
        optional int64 long_cents (DECIMAL(18, 2));
        optional int32 byte (UINT_8);
        optional int32 big (UINT_32);
        optional int64 at (TIMESTAMP_MILLIS);
        optional binary old_text (UTF8);
        optional binary number (DECIMAL(10, 1));
        optional fixed_len_byte_array(2) half (FLOAT16);
        optional group two_levels (LIST) { repeated int32 item; }
        optional group nanos (LIST) { repeated group list {
            optional int64 element (TIMESTAMP(NANOS, true)); } }
        optional group records (LIST) { repeated group array { optional int32 a; } }
    }";
    write_raw(&path, schema, |name, column| {
        let levels: &[i16] = match name {
            "two_levels.item" => &[2, 2, 0],
            "nanos.list.element" => &[3, 2, 0],
            "records.array.a" => &[3, 2, 0],
            _ => &[1, 0],
        };
        let repeats: Option<&[i16]> = (levels.len() == 3).then_some(&[0, 1, 0]);
        let levels = Some(levels);
        match column {
            ColumnWriter::Int32ColumnWriter(column) => {
                let values: &[i32] = match name {
                    "cents" => &[-5],
                    "byte" => &[200],
                    "big" | "records.array.a" => &[-1],
                    _ => &[7, 8],
                };
                column.write_batch(values, levels, repeats).unwrap();
            }
            ColumnWriter::Int64ColumnWriter(column) => {
                let value = if name == "at" { 1500 } else { -1 };
                column.write_batch(&[value], levels, repeats).unwrap();
            }
            ColumnWriter::Int96ColumnWriter(column) => {
                // 13:00:00.000000001 on the day 9999-12-31, as 24 hours more of the day before.
                let (low, high) = (179249153, 31013);
                let day = 2_440_588 + 2_932_895;
                let value = Int96::from(vec![low, high, day]);
                column.write_batch(&[value], levels, repeats).unwrap();
            }
            ColumnWriter::ByteArrayColumnWriter(column) => {
                let value = if name == "number" {
                    &b"\xff\x00"[..]
                } else {
                    b"old"
                };
                let value = ByteArray::from(value.to_vec());
                column.write_batch(&[value], levels, repeats).unwrap();
            }
            ColumnWriter::FixedLenByteArrayColumnWriter(column) => {
                let value = FixedLenByteArray::from(vec![0x00, 0x3e]);
                column.write_batch(&[value], levels, repeats).unwrap();
            }
            _ => unreachable!(),
        }
    });
    let mut source = opened(&path);
    let mut portion = Portion::new(12);
    assert!(source.read(&mut portion, ALL).unwrap());
    let found: Vec<_> = portion.rows.fields().collect();
    let expected = [
        Field::Text("9999-12-31T13:00:00.000000001"),
        Field::Number("-0.05"),
        Field::Number("-0.01"),
        Field::Number("200"),
        Field::Number("4294967295"),
        Field::Text("1970-01-01T00:00:01.500+00:00"),
        Field::Text("old"),
        Field::Number("-25.6"),
        Field::Number("1.5"),
        Field::Json("[7,8]"),
        Field::Json("[\"1969-12-31T23:59:59.999999999+00:00\",null]"),
        Field::Json("[{\"a\":-1},{\"a\":null}]"),
    ];
    assert_eq!(found[..12], expected);
    assert_eq!(found[12..], vec![Field::Null; 12]);
}

#[test]
fn a_column_of_an_unread_type_may_be_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.parquet");
    let schema = "message m {
        optional fixed_len_byte_array(12) lasts (INTERVAL);
        optional int64 id;
    }";
    write_raw(&path, schema, |_, column| match column {
        ColumnWriter::Int64ColumnWriter(column) => {
            column.write_batch(&[7], Some(&[1, 0]), None).unwrap();
        }
        ColumnWriter::FixedLenByteArrayColumnWriter(column) => {
            let value = FixedLenByteArray::from(vec![0; 12]);
            column.write_batch(&[value], Some(&[1, 0]), None).unwrap();
        }
        _ => unreachable!(),
    });
    let mut portion = Portion::new(2);
    let fault = opened(&path).read(&mut portion, ALL).unwrap_err();
    assert!(
        fault.to_string().ends_with(
            "the column \"lasts\" has the type INTERVAL, which is not read; leave it out"
        ),
        "{fault}"
    );
    let mut source = opened(&path);
    source.choose(&[1]);
    let mut portion = Portion::new(1);
    assert!(source.read(&mut portion, ALL).unwrap());
    let found: Vec<_> = portion.rows.fields().collect();
    assert_eq!(found, [Field::Number("7"), Field::Null]);
}

#[test]
fn nested_values_keep_their_nulls_and_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.parquet");
    let item = Column::new("item", DataType::Utf8, true);
    let fields = vec![Column::new("a\"", DataType::Int32, true)].into();
    let mut inner = ListBuilder::new(ListBuilder::new(StringBuilder::new()).with_field(item));
    inner.values().append_value([Some("x"), None]);
    inner.values().append_null();
    inner.append(true);
    inner.append(true);
    inner.append(false);
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, None]));
    let are_there = Some(vec![true, true, false].into());
    let records = StructArray::new(fields, vec![numbers], are_there);
    write(
        &path,
        vec![
            column("lists", Arc::new(inner.finish())),
            column("records", Arc::new(records)),
        ],
        Compression::SNAPPY,
    );
    let mut source = opened(&path);
    let mut portion = Portion::new(2);
    let one = PortionLimits {
        records: 1,
        bytes: usize::MAX,
    };
    let mut rows = 0;
    while source.read(&mut portion, one).unwrap() {
        rows += portion.rows.len();
    }
    assert_eq!(rows, 3);
    let mut source = opened(&path);
    assert!(source.read(&mut portion, ALL).unwrap());
    let found: Vec<_> = portion.rows.fields().collect();
    let expected = [
        Field::Json("[[\"x\",null],null]"),
        Field::Json("{\"a\\\"\":1}"),
        Field::Json("[]"),
        Field::Json("{\"a\\\"\":null}"),
        Field::Null,
        Field::Null,
    ];
    assert_eq!(found, expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_damaged_file_is_a_fault_and_no_panic(
        flips in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..4),
        cut in proptest::option::of(any::<proptest::sample::Index>()),
        compression in proptest::sample::select(vec![Compression::UNCOMPRESSED, Compression::SNAPPY]),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.parquet");
        numbers(&path, 10, compression);
        let mut bytes = std::fs::read(&path).unwrap();
        for (at, bits) in &flips {
            let at = at.index(bytes.len());
            bytes[at] ^= bits;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        std::fs::write(&path, &bytes).unwrap();
        let options = Options { format: Some(crate::source::Format::Parquet), ..Options::default() };
        if let Ok(mut source) = open(path.to_str().unwrap(), &options) {
            let mut portion = Portion::new(2);
            while let Ok(true) = source.read(&mut portion, ALL) {}
        }
    }
}
