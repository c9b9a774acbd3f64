//! A field by COPY means what it means in a write of its own, whatever its column's type.

use windrow_core::{Executor, Field, LoadFault, Rows};

use crate::support::*;
use windrow_testkit::loads::WritePortion as _;

/// Types, and texts for them: usual, odd, extreme and wrong ones.
pub(crate) const TYPES: &[(&str, &[&str])] = &[
    (
        "bool",
        &[
            "t", "true", "TRUE", "f", "no", "of", "o", "1", "0", "2", " t ", "", "yess",
        ],
    ),
    (
        "int2",
        &[
            "0", "-32768", "32767", "32768", "+7", " 7 ", "007", "1e2", "", "-", "1.0",
        ],
    ),
    (
        "int4",
        &[
            "0",
            "-2147483648",
            "2147483647",
            "2147483648",
            "0x1F",
            "1_000",
            "--1",
            "٣",
            "a",
        ],
    ),
    (
        "int8",
        &[
            "9223372036854775807",
            "-9223372036854775808",
            "9223372036854775808",
            "-0",
            "000000000000000000000001",
        ],
    ),
    ("oid", &["0", "4294967295", "4294967296", "-1", "-0"]),
    (
        "float4",
        &[
            "0.1", "1e38", "3.5e38", "1e-50", "-0", "NaN", "inf", ".5", "5.", "1e", "16777217",
            "0x10",
        ],
    ),
    (
        "float8",
        &[
            "0.1",
            "-0.0",
            "1e308",
            "1e309",
            "1e-400",
            "Infinity",
            "-inf",
            "nan",
            "9007199254740993",
            "4.9e-324",
            "1d",
            "e5",
            ".",
        ],
    ),
    (
        "numeric",
        &[
            "0",
            "-0.00",
            "1.50",
            "12345678901234567890.123456789",
            "1e5",
            "NaN",
            "Infinity",
            "00012.30",
            ".5",
            "5.",
            "0.00001",
            "-99999999.9999",
            "1.2.3",
            "1 000",
            "+1",
        ],
    ),
    (
        "numeric(6,2)",
        &[
            "1.005", "9999.99", "9999.995", "10000", "-1.005", "1e3", "0.001", "NaN",
        ],
    ),
    ("numeric(3,-2)", &["12345", "99999", "149", "150"]),
    (
        "text",
        &[
            "",
            "a",
            "ä€😀",
            "a\tb",
            "a\nb\r\n",
            "\\N",
            "\\.",
            "\\",
            "\\\\n",
            "\"q\" 'q'",
            "007",
            "1e5",
            "-0",
            "NULL",
            "\u{1}",
            "{\"a\": 1}",
            "a\0b",
        ],
    ),
    ("varchar(3)", &["abc", "abcd", "abc   ", "äöü", "äöüß", ""]),
    ("char(3)", &["a", "abc", "abcd", "abc  ", "ä", ""]),
    (
        "name",
        &[
            "n",
            "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn",
        ],
    ),
    (
        "bytea",
        &[
            "aGk=", "", "\\x00ff", "\\xF", "\\x0 1", "a b", "aGk", "1234", "\\xZZ",
        ],
    ),
    (
        "date",
        &[
            "2024-02-29",
            "2023-02-29",
            "0001-01-01",
            "2024-1-5",
            "20240105",
            "infinity",
            "epoch",
            "2024-01-05 10:00",
            "0044-03-15 BC",
            "99999-01-01",
            "5 Jan 2024",
        ],
    ),
    (
        "time",
        &[
            "10:20",
            "10:20:30.123456",
            "23:59:59.9999999",
            "24:00:00",
            "25:00",
            "10",
            "10:20 PM",
            "10:20:60",
        ],
    ),
    ("time(0)", &["10:20:30.5", "10:20:30.4"]),
    (
        "timestamp",
        &[
            "2024-01-05",
            "2024-01-05 10:20",
            "2024-01-05T10:20:30.5",
            "2024-01-05 10:20:30.1234567",
            "2024-01-05T10:20:30Z",
            "2024-01-05 10:20:30+05:30",
            "infinity",
            "-infinity",
            "294276-12-31 23:59:59",
            "2024-01-05 24:00",
            "2024-13-01",
            "yesterday is gone",
        ],
    ),
    (
        "timestamp(1)",
        &["2024-01-05 10:20:30.25", "2024-01-05 10:20:30.05"],
    ),
    (
        "timestamptz",
        &[
            "2024-01-05T10:20:30Z",
            "2024-01-05 10:20:30",
            "2024-01-05 10:20:30+02",
            "2024-01-05 10:20:30-0830",
            "2024-01-05 10:20:30+15",
            "2024-01-05 10:20:30 Europe/Berlin",
            "2024-01-05 10:20:30 PST",
            "infinity",
            "2024-01-05 10:20:30+05:30:10",
        ],
    ),
    (
        "uuid",
        &[
            "00112233-4455-6677-8899-aabbccddeeff",
            "00112233445566778899AABBCCDDEEFF",
            "{00112233-4455-6677-8899-aabbccddeeff}",
            "0011-2233-4455-6677-8899-aabb-ccdd-eeff",
            "0011",
            "00112233-4455-6677-8899-aabbccddeefg",
        ],
    ),
    (
        "json",
        &[
            "1",
            "1.50",
            "a",
            "{\"b\": 1, \"a\": [1, null]}",
            "[1",
            "\"x\"",
            "true",
            "",
        ],
    ),
    (
        "jsonb",
        &[
            "1",
            "1.50",
            "1e5",
            "a\"b",
            "{\"b\": 1, \"a\": 1, \"a\": 2}",
            "[]",
            "\\u0000",
        ],
    ),
    ("interval", &["1 day", "P1D", "1", "x"]),
    ("inet", &["10.0.0.1", "::1/64", "10.0.0.256"]),
    ("bit(3)", &["101", "1", "102"]),
    ("int[]", &["{1,2,NULL}", "{}", "{1", "[1, 2]", "1"]),
    ("text[]", &["{a,\"b c\",\"\\\\\"}", "[\"a\", null, \"{}\"]"]),
    ("mood", &["sad", "so so", "none"]),
    ("positive", &["1", "0", "-1", "x"]),
    ("short", &["ab", "abc", "ab "]),
    ("pair", &["(1,a)", "(,)", "(1"]),
    ("money", &["1.50", "$2,000"]),
    ("xml", &["<a/>", "<a>"]),
    ("int4range", &["[1,3)", "(3,1)"]),
];

pub(crate) const OWN_TYPES: &str = "\
create type mood as enum ('sad', 'so so');
create domain positive as int check (value > 0);
create domain short as varchar(2);
create type pair as (a int, b text)";

async fn bed() -> Bed {
    let bed = Bed::new(OWN_TYPES).await;
    for (number, (type_name, _)) in TYPES.iter().enumerate() {
        if !bed.has_type(type_name) {
            continue;
        }
        for way in ["copied", "alone"] {
            bed.sql(&format!("create table {way}{number} (v {type_name})"));
        }
    }
    bed
}

/// Both ways, for one field: the same verdict and the same value.
async fn compare(
    bed: &Bed,
    executor: &mut dyn Executor,
    number: usize,
    field: Field<'_>,
    what: &str,
) {
    let mut rows = Rows::new(1);
    assert!(rows.push(1, [field]));
    let copied = bed
        .load(&plan(&format!("copied{number}"), &["v"]), &rows)
        .await;
    let theirs = plan(&format!("alone{number}"), &["v"]);
    let alone = alone(executor, &theirs, &[field]).await;
    match (&copied, &alone) {
        (Ok(loaded), Ok(_)) => assert_eq!(*loaded, written(1), "{what}"),
        (Err(LoadFault::Refused(copied)), Err(alone)) => {
            // With a length at hand, the input function of bit looks at that first.
            if !what.starts_with("bit") {
                assert_eq!(copied.code, alone.fault.code, "{what}");
            }
        }
        other => panic!("{what}: {other:?}"),
    }
}

fn assert_equal(bed: &Bed, number: usize, type_name: &str) {
    let values = |way: &str| {
        bed.sql(&format!(
            "select coalesce(v::text, 'NULL') from {way}{number} order by ctid"
        ))
    };
    assert_eq!(values("copied"), values("alone"), "{type_name}");
}

#[tokio::test]
async fn texts_of_every_type() {
    let bed = bed().await;
    let mut executor = bed.executor().await;
    for (number, (type_name, texts)) in TYPES.iter().enumerate() {
        if !bed.has_type(type_name) {
            continue;
        }
        compare(&bed, &mut *executor, number, Field::Null, type_name).await;
        for text in *texts {
            let what = format!("{type_name} {text:?}");
            compare(&bed, &mut *executor, number, Field::Plain(text), &what).await;
        }
        assert_equal(&bed, number, type_name);
    }
}

#[tokio::test]
async fn fields_that_know_what_they_are() {
    let bed = bed().await;
    let mut executor = bed.executor().await;
    let fields = [
        Field::Text("1"),
        Field::Text("a"),
        Field::Number("1"),
        Field::Number("1.50"),
        Field::Number("-0"),
        Field::Number("007"),
        Field::Bool(true),
        Field::Bool(false),
        Field::Json("[1, 2]"),
        Field::Json("{\"a\": \"\\t\"}"),
        Field::Bytes(b"\0\xff\t\n\\"),
        Field::Bytes(b""),
    ];
    for (number, (type_name, _)) in TYPES.iter().enumerate() {
        if !bed.has_type(type_name) {
            continue;
        }
        for field in fields {
            compare(
                &bed,
                &mut *executor,
                number,
                field,
                &format!("{type_name} {field:?}"),
            )
            .await;
        }
        assert_equal(&bed, number, type_name);
    }
}

#[tokio::test]
async fn a_portion_with_one_odd_spelling_goes_as_text_and_the_next_ones_too() {
    let bed = Bed::new("create table t (id int primary key, at timestamptz, v float8)").await;
    let mut loader = bed.loader(&plan("t", &["id", "at", "v"])).await;
    for round in 0..8 {
        let ids: Vec<String> = (round * 3..round * 3 + 3)
            .map(|id| id.to_string())
            .collect();
        let rows = plain(&[
            [&*ids[0], "2024-01-05 10:20:30+02", "1.5"],
            [
                &ids[1],
                if round % 2 == 0 {
                    "5 Jan 2024 8:20:30 UTC"
                } else {
                    "2024-01-05"
                },
                "2",
            ],
            [&ids[2], "infinity", "NaN"],
        ]);
        assert_eq!(loader.load(&rows, None).await, Ok(written(3)));
    }
    assert_eq!(
        bed.sql("select count(*), count(distinct at), count(*) filter (where at = '2024-01-05 08:20:30Z') from t"),
        "24|3|12"
    );
}
