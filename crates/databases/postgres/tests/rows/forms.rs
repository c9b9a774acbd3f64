//! Every column type gives the same through every rung of the ladder.

use windrow_core::{Rung, Unit, Value};

use crate::support::*;
use windrow_testkit::row;

const TABLE: &str = "
create type mood as enum ('sad', 'so so', 'happy');
create type pair as (a int, b text);
create domain positive as int check (value > 0);
create domain code as varchar(5) not null default 'none';
create table t (
  id int primary key, i2 smallint, i8 bigint, f4 real, f8 double precision, n numeric, n2 numeric(10,2),
  b boolean, s text, v varchar(10), c char(4), by bytea, u uuid, j json, jb jsonb,
  tz timestamptz, ts timestamp, d date, ti time, iv interval, ip inet, m mood, dp positive, dc code,
  ai int[], at text[], am mood[], aj jsonb[], ab bytea[], an numeric(5,1)[], r int4range, p pair, x box,
  g int generated always as (id * 2) stored, df text default 'x' || 'y');";

const COLUMNS: [&str; 33] = [
    "id", "i2", "i8", "f4", "f8", "n", "n2", "b", "s", "v", "c", "by", "u", "j", "jb", "tz", "ts",
    "d", "ti", "iv", "ip", "m", "dp", "dc", "ai", "at", "am", "aj", "ab", "an", "r", "p", "x",
];

fn full(id: i32) -> Vec<Value> {
    let mut row = row![
        id,
        -5,
        i64::MIN,
        1.5,
        0.1,
        number("123456789012345678901234567890.12345"),
        number("12.345"),
        true,
        "quote \" backslash \\ {brace}, comma\nline é",
        "null",
        "ab",
        "AP8=",
        "00112233-4455-6677-8899-AABBCCDDEEFF",
        json("{\"a\": 1}"),
        json("[1, \"x\"]"),
        "2013-01-01T06:00:00.25+02:00",
        "1999-12-31 23:59:59.999999",
        "2024-02-29",
        "12:34:56",
        "1 day 02:00",
        "192.168.0.1/24",
        "so so",
        7,
        "abc",
    ];
    row.extend([
        json("[1, null, 3]"),
        json(r#"["a,b", "q\"", null, "null", ""]"#),
        json(r#"["happy", "so so"]"#),
        json(r#"[{"a": [1]}, 2, "s"]"#),
        json(r#"["AP8="]"#),
        json("[1.25, 2]"),
        Value::text("[1,5)"),
        Value::text("(1,\"x y\")"),
        Value::text("(1,2),(3,4)"),
    ]);
    row
}

fn nulls(id: i32) -> Vec<Value> {
    let mut row = vec![Value::Null; COLUMNS.len()];
    row[0] = Value::from(id);
    row[23] = Value::from("x");
    row
}

fn odd(id: i32) -> Vec<Value> {
    let mut row = full(id);
    for (at, value) in [
        (1, Value::text("12")),
        (3, Value::text("NaN")),
        (4, number("1e300")),
        (5, number("1e30")),
        (7, Value::text("false")),
        (8, Value::text("")),
        (11, Value::Bytes([1, 2, 3].into())),
        (13, Value::text("a \"string\"")),
        (14, Value::from(5)),
        (15, Value::text("2013-01-01")),
        (16, Value::text("2013-01-01T00:00:00Z")),
        (24, Value::text("{4,5}")),
        (25, json("[]")),
    ] {
        row[at] = value;
    }
    row
}

#[tokio::test]
async fn all_types_are_equal_between_solo_grouped_and_fused() {
    let mut bed = Bed::new(TABLE).await;
    let shape = insert("t", &COLUMNS).shape();
    let rows: [fn(i32) -> Vec<Value>; 3] = [full, nulls, odd];
    for (kind, make) in rows.iter().enumerate() {
        let base = 100 * i32::try_from(kind).unwrap();
        let report = bed.run(&[unit(&shape, make(base))]).await;
        assert_eq!(rung(&report, Rung::Solo), 1, "{:?}", report.verdicts);
        let few: Vec<Unit> = (1..=2).map(|n| unit(&shape, make(base + n))).collect();
        let report = bed.run(&few).await;
        assert_eq!(rung(&report, Rung::Grouped), 2, "{:?}", report.verdicts);
        let many: Vec<Unit> = (3..=9).map(|n| unit(&shape, make(base + n))).collect();
        let report = bed.run(&many).await;
        assert_eq!(rung(&report, Rung::Fused), 7, "{:?}", report.verdicts);
        let distinct = bed.sql(&format!(
            "select count(*), count(distinct to_jsonb(t) - 'id' - 'g') from t where id between {base} and {}",
            base + 99
        ));
        assert_eq!(distinct, "10|1", "rows of kind {kind}");
    }
    let sample = bed.sql("select i8, f8, n, n2, b, s, v, c, by, u, tz, ts, d, m, dp, ai, at, an, g, df from t where id = 5");
    assert_eq!(
        sample,
        "-9223372036854775808|0.1|123456789012345678901234567890.12345|12.35|t|\
         quote \" backslash \\ {brace}, comma\nline é|null|ab  |\\x00ff|00112233-4455-6677-8899-aabbccddeeff|\
         2013-01-01 04:00:00.25+00|1999-12-31 23:59:59.999999|2024-02-29|so so|7|{1,NULL,3}|\
         {\"a,b\",\"q\\\"\",NULL,\"null\",\"\"}|{1.3,2.0}|10|xy"
    );
    assert_eq!(
        bed.sql("select by, j, jb, ai, at, tz from t where id = 205"),
        "\\x010203|\"a \\\"string\\\"\"|5|{4,5}|{}|2013-01-01 00:00:00+00"
    );
}
