//! By the lane or by LOAD DATA: the same contents, and what the lane refuses is refused.

use windrow_core::{Fault, Field, LoadFault};

use crate::support::*;
use windrow_testkit::loads::WritePortion as _;
use windrow_testkit::mariadb::{has_type, is_mysql};

const TYPES: &[&str] = &[
    "tinyint",
    "tinyint(1)",
    "smallint unsigned",
    "mediumint",
    "int",
    "bigint",
    "bigint unsigned",
    "int not null",
    "decimal(10,3)",
    "decimal(65,30)",
    "decimal(5,0) unsigned",
    "double",
    "float",
    "double(10,2)",
    "bit(1)",
    "bit(12)",
    "bit(64)",
    "year",
    "date",
    "datetime",
    "datetime(6)",
    "datetime(3)",
    "timestamp null",
    "timestamp(6) null",
    "time",
    "time(3)",
    "char(5)",
    "varchar(5)",
    "varchar(300)",
    "varchar(300) character set latin1",
    "varchar(300) character set utf8mb3",
    "varchar(300) character set ascii",
    "varchar(300) character set utf16",
    "varchar(100) not null",
    "varchar(10) collate utf8mb4_bin",
    "tinytext",
    "text",
    "longtext",
    "enum('a','b','1','', 'é')",
    "enum('a','b') not null",
    "set('a','b','c')",
    "json",
    "binary(4)",
    "varbinary(6)",
    "varbinary(600)",
    "tinyblob",
    "longblob",
    "uuid",
    "inet6",
    "varchar(20) check (v <> 'abc')",
];

const TEXTS: &[&str] = &[
    "",
    " ",
    "0",
    "-0",
    "1",
    "2",
    "-1",
    "+1",
    "007",
    "12",
    "69",
    "70",
    "99",
    "100",
    "127",
    "128",
    "255",
    "256",
    "-128",
    "-129",
    "32768",
    "65535",
    "65536",
    "16777215",
    "2013",
    "1901",
    "1900",
    "2155",
    "2156",
    "20130102",
    "20130102030405",
    "130102",
    "99999999",
    "2147483647",
    "2147483648",
    "-2147483649",
    "4294967295",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775809",
    "99999999999999999999999999999999999999",
    "1.5",
    "1.50",
    "-1.5",
    "0.0005",
    "12345.6789",
    "9999999.9995",
    "1e3",
    "1E-3",
    "1e400",
    "-1e400",
    "1e-400",
    "0.1",
    "3.14159265358979323846",
    "123456789.123456789",
    "1.",
    ".5",
    "1,5",
    "0x10",
    "1 ",
    " 1",
    "1a",
    "a",
    "b",
    "c",
    "a,b",
    "a,d",
    "b,a",
    "A",
    "ä",
    "Ä",
    "abc",
    "abcde",
    "abcdef",
    "abcd ",
    "abcde   ",
    "true",
    "false",
    "TRUE",
    "null",
    "NULL ",
    "N",
    "\\N",
    "\\\\N",
    "\\",
    "\\\\",
    "\\n",
    "\\t",
    "\\0",
    "a\\",
    "\t",
    "\n",
    "\r",
    "\r\n",
    "a\tb\nc",
    "\0",
    "a\0b",
    "\u{1a}",
    "'",
    "\"",
    "''",
    "a'b\"c",
    "`",
    ";",
    "--",
    "%",
    "日本語",
    "é",
    "e\u{301}",
    "\u{1f600}",
    "\u{10ffff}",
    "\u{feff}a",
    "\u{2028}",
    "2013-01-02",
    "2013-1-2",
    "2013-02-30",
    "2013-00-00",
    "0000-00-00",
    "0000-00-00 00:00:00",
    "9999-12-31",
    "10000-01-01",
    "2013-01-02 03:04:05",
    "2013-01-02T03:04:05",
    "2013-01-02T03:04:05Z",
    "2013-01-02t03:04:05z",
    "2013-01-02 03:04:05.123456",
    "2013-01-02 03:04:05.9999999",
    "2013-01-02T03:04:05.5+02:00",
    "2013-01-02 03:04:05-0130",
    "2013-01-02 03:04",
    "2013-01-02T03",
    "2013-01-02 24:00:00",
    "1969-12-31 23:59:59",
    "1970-01-01 00:00:00",
    "1970-01-01 00:00:01",
    "2038-01-19 03:14:07",
    "2038-01-19 03:14:08",
    "2106-02-07 06:28:16",
    "1000-01-01 00:00:00",
    "13-01-02",
    "2013/01/02",
    "2013.01.02",
    "20130102T030405",
    "01:02:03",
    "1:2:3",
    "01:02",
    "838:59:59",
    "839:00:00",
    "-01:02:03",
    "01:02:03.4567",
    "1 01:02:03",
    "12:34:56Z",
    "now()",
    "today",
    "{}",
    "[]",
    "{\"a\": 1}",
    "[1, \"b\", null]",
    "\"x\"",
    "{\"a\": \"\\u00e9\\n\"}",
    "{bad",
    "[1,]",
    "AP8=",
    "AA==",
    "AAECAw==",
    "AAECAwQF",
    "AAECAwQFBgc=",
    "AP8",
    "AP8=\n",
    "A===",
    "aGVsbG8gd29ybGQ=",
    "_-8=",
    "123e4567-e89b-12d3-a456-426614174000",
    "123E4567E89B12D3A456426614174000",
    "123e4567",
    "::1",
    "2001:db8::8a2e:370:7334",
    "127.0.0.1",
    "::ffff:192.0.2.1",
    "gggg::",
];

/// The fields that a text may come as: all of them for a third of the texts, which is another third
/// for each type.
fn fields(text: &str, all: bool) -> Vec<Field<'_>> {
    let mut fields = vec![Field::Plain(text)];
    if !all {
        return fields;
    }
    fields.push(Field::Text(text));
    if windrow_core::value::is_number(text.as_bytes()) {
        fields.push(Field::Number(text));
    }
    if text.starts_with(['{', '[', '"']) {
        fields.push(Field::Json(text));
    }
    if text.len() < 5 {
        fields.push(Field::Bytes(text.as_bytes()));
    }
    fields
}

fn all_fields(long: &[String], third: usize) -> Vec<Field<'_>> {
    let texts = TEXTS.iter().copied().chain(long.iter().map(String::as_str));
    let numbered = texts.enumerate();
    let mut all: Vec<_> = numbered
        .flat_map(|(at, text)| fields(text, at % 3 == third % 3))
        .collect();
    all.extend([
        Field::Null,
        Field::Bool(true),
        Field::Bool(false),
        Field::Bytes(b"\0\xff\x80"),
        Field::Bytes(b"\xf0\x9f"),
    ]);
    all
}

fn long() -> Vec<String> {
    let wide = |c: &str, n: usize| c.repeat(n);
    vec![
        wide("x", 255),
        wide("é", 128),
        wide("x", 256),
        wide("\u{1f600}", 300),
        wide("\\\t", 150),
    ]
}

/// Fields that LOAD DATA is known not to express, though the lane does: their portions go through
/// the lane.
fn may_be_refused(of: &str, field: Field<'_>, notes: bool) -> bool {
    let number = matches!(field, Field::Plain(t) | Field::Number(t) if windrow_core::value::is_number(t.as_bytes()));
    let time = ["year", "date", "time"]
        .iter()
        .any(|kind| of.starts_with(kind));
    // MySQL says the same of a part that is left out and of a text that has another meaning.
    let noted = ["decimal", "date", "time", "char", "varchar"].iter();
    if notes && noted.into_iter().any(|kind| of.starts_with(kind)) {
        return true;
    }
    (time && (number || matches!(field, Field::Bool(_))))
        || (of.starts_with("bit") && (number || matches!(field, Field::Json(_) | Field::Bytes(_))))
}

async fn compare(bed: &mut Bed, of: &str, fields: &[Field<'_>]) {
    let table = |name: &str| {
        format!("drop table if exists {name}; create table {name} (id int primary key, v {of});")
    };
    bed.renew(&(table("lane") + &table("bulk") + &table("filter")))
        .await;
    let ids: Vec<String> = (0..fields.len()).map(|id| id.to_string()).collect();
    let rows: Vec<Vec<Field<'_>>> = ids
        .iter()
        .zip(fields)
        .map(|(id, field)| vec![Field::Plain(id), *field])
        .collect();
    let told = bed.alone(&plan("lane", &["id", "v"]), &rows).await;
    let notes = is_mysql(bed.database.url()).unwrap();
    filter(bed, of, &rows, &told).await;
    let mut loader = bed.loader(&plan("bulk", &["id", "v"])).await;
    let (mut together, mut left) = (Vec::new(), vec!["-1"]);
    for ((row, fault), field) in rows.iter().zip(&told).zip(fields) {
        let odd = may_be_refused(of, *field, notes);
        if fault.is_none() && !odd {
            together.push(row.clone());
            continue;
        }
        match loader.load(&portion(std::slice::from_ref(row)), None).await {
            Ok(_) if fault.is_none() => {}
            Err(LoadFault::Refused(_)) if fault.is_some() => {}
            Err(LoadFault::Refused(_)) => left.push(id_of(row)),
            other => panic!("{of}: {field:?}: {other:?}, but {fault:?}"),
        }
    }
    bed.sql(&format!(
        "delete from lane where id in ({})",
        left.join(",")
    ));
    if let Err(fault) = loader.load(&portion(&together), None).await {
        for row in &together {
            let one = loader.load(&portion(std::slice::from_ref(row)), None).await;
            assert!(one.is_ok(), "{of}: {row:?}: {one:?}");
        }
        panic!("{of}: each by itself, and not together: {fault:?}");
    }
    let dump = |table: &str| format!("select id, v from {table} order by id");
    let (lane, bulk) = (bed.rows(&dump("lane")).await, bed.rows(&dump("bulk")).await);
    for (lane, bulk) in lane.iter().zip(&bulk) {
        assert_eq!(lane, bulk, "{of}");
    }
    assert_eq!(lane.len(), bulk.len(), "{of}");
    assert!(lane.len() > 2, "{of}");
}

/// What is taken of all rows together, and what was left out by itself, are what the lane makes of
/// them.
async fn filter(bed: &Bed, of: &str, rows: &[Vec<Field<'_>>], told: &[Option<Fault>]) {
    let mut loader = bed.loader(&plan("filter", &["id", "v"])).await;
    let filtered = match loader.filter(&portion(rows), None).await {
        Err(LoadFault::Refused(_)) if of.contains("check") && !numbers_rows(bed) => return,
        // To MySQL a text that is no JSON is the end of the whole statement.
        Err(LoadFault::Refused(_)) if of == "json" && is_mysql(bed.database.url()).unwrap() => {
            return;
        }
        Err(fault) => panic!("{of}: {fault:?}"),
        Ok(filtered) => filtered,
    };
    let notes = is_mysql(bed.database.url()).unwrap();
    for place in &filtered.left {
        let (row, fault) = (&rows[*place], &told[*place]);
        let odd = may_be_refused(of, row[1], notes);
        assert!(fault.is_some() || odd, "{of}: {row:?} is left out");
    }
    let left: Vec<_> = filtered.left.iter().map(|at| rows[*at].clone()).collect();
    let again = bed.alone(&plan("filter", &["id", "v"]), &left).await;
    let good = again.iter().filter(|fault| fault.is_none()).count() as u64;
    let count: u64 = bed.sql("select count(*) from lane").trim().parse().unwrap();
    assert_eq!(filtered.loaded.written + good, count, "{of}");
    let dump = |table: &str| format!("select id, v from {table} order by id");
    let (lane, filter) = (
        bed.rows(&dump("lane")).await,
        bed.rows(&dump("filter")).await,
    );
    for (lane, filter) in lane.iter().zip(&filter) {
        assert_eq!(lane, filter, "{of}");
    }
    assert_eq!(lane.len(), filter.len(), "{of}");
}

async fn compare_some(part: usize) {
    let long = long();
    let mut bed = Bed::new("select 1;").await;
    for (number, of) in TYPES.iter().enumerate().skip(part).step_by(4) {
        if !has_type(bed.database.url(), of).unwrap() {
            continue;
        }
        compare(&mut bed, of, &all_fields(&long, number)).await;
    }
}

#[tokio::test]
async fn a_first_quarter_of_the_types() {
    compare_some(0).await;
}

#[tokio::test]
async fn a_second_quarter_of_the_types() {
    compare_some(1).await;
}

#[tokio::test]
async fn a_third_quarter_of_the_types() {
    compare_some(2).await;
}

#[tokio::test]
async fn a_fourth_quarter_of_the_types() {
    compare_some(3).await;
}
