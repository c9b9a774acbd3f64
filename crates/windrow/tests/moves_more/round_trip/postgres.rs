//! Types of PostgreSQL.

use super::World;
use super::column::{Column, column, quoted};

const BEFORE: &str = "create type mood as enum ('so so', 'A', 'a', ''); create domain positive as int check (value > 0);
    create type pair as (a int, b text); create domain code as varchar(9)";

/// A zero has no sign everywhere.
const NUMBER: &str = "encode(convert_to((? + 0)::text, 'UTF8'), 'hex')";

pub fn world() -> World {
    World {
        columns: numbers()
            .into_iter()
            .chain(texts())
            .chain(moments())
            .chain(others())
            .chain(arrays())
            .collect(),
        before: BEFORE,
        text: "encode(convert_to(?::text, 'UTF8'), 'hex')",
    }
}

fn numbers() -> Vec<Column> {
    vec![
        column(["bool", "boolean", "boolean"], &["true", "false"]),
        column(["smallint", "smallint", "integer"], &["-32768", "32767"])
            .random(|r| r.int(16).to_string()),
        column(["int", "int", "integer"], &["-2147483648", "0"]).random(|r| r.int(32).to_string()),
        column(
            ["bigint", "bigint", "integer"],
            &["-9223372036854775808", "9223372036854775807"],
        )
        .random(|r| r.int(64).to_string()),
        column(["real", "float", "real"], &["0.1", "16777217"])
            .odd(&[
                "'NaN'",
                "'Infinity'",
                "'-Infinity'",
                "'-0'",
                "1e-45",
                "3.4028235e38",
            ])
            .seen(NUMBER)
            .random(|r| format!("{:e}", r.float())),
        column(["double precision", "double", "real"], &["0.1", "1e300"])
            .odd(&["'NaN'", "'Infinity'", "'-Infinity'", "'-0'", "5e-324"])
            .seen(NUMBER)
            .random(|r| format!("{:e}", r.double())),
        column(
            ["numeric", "decimal(65,30)", "decimal_text"],
            &["0", "1.50", "10000000000000000000000"],
        )
        .odd(&["'NaN'", "'Infinity'", "1e200"])
        .random(|r| r.decimal(29, 30))
        .seen("encode(convert_to(trim_scale(?)::text, 'UTF8'), 'hex')"),
        column(
            ["numeric(10,2)", "decimal(10,2)", "decimal_text"],
            &["-99999999.99"],
        )
        .random(|r| r.decimal(7, 2)),
        column(["numeric(10,2)", "decimal(10,2)", "numeric"], &["0.01"])
            .random(|r| r.decimal(7, 2)),
        column(["money", "varchar(30)", "text"], &["1234.56", "-0.5"]),
        column(["oid", "bigint", "integer"], &["0", "4294967295"]),
        column(["positive", "int", "integer"], &["1"])
            .random(|r| (1 + r.below(1 << 30)).to_string()),
        column(["bit(5)", "bit(5)", "text"], &["B'00101'", "B'10000'"]),
        column(["varbit", "varchar(90)", "text"], &["B'00101'", "B''"]),
    ]
}

fn texts() -> Vec<Column> {
    vec![
        column(
            ["text", "longtext", "text"],
            &[
                "''",
                "' a '",
                "'\\x31'",
                "'MQ=='",
                "'null'",
                "'[1'",
                "'1e5'",
                "'007'",
                "'{\"a\":1}'",
                "'t'",
            ],
        )
        .random(|r| quoted(&r.text(40))),
        column(
            ["varchar(20)", "varchar(20)", "varchar(20)"],
            &["''", "'NaN'"],
        )
        .random(|r| quoted(&r.text(19))),
        column(["char(5)", "char(5)", "text"], &["'ab'", "''"]),
        column(["code", "varchar(9)", "text"], &["'c 1'"]),
        column(["name", "varchar(64)", "text"], &["'n'"]).random(|r| quoted(&r.text(9))),
        column(["\"char\"", "varchar(4)", "text"], &["'x'"]),
        column(
            ["mood", "varchar(10)", "text"],
            &["'so so'", "'A'", "'a'", "''"],
        ),
        column(
            ["bytea", "longblob", "blob"],
            &["''", "'\\x00'", "'\\x4d513d3d'"],
        )
        .random(|r| format!("'\\x{}'", r.hex(30))),
        column(["text", "longblob", "blob"], &["'\\x31'", "'MQ=='", "''"])
            .random(|r| quoted(&r.text(40))),
        column(["uuid", "uuid", "text"], &[]).random(|r| quoted(&r.uuid())),
        column(["xml", "text", "text"], &["'<a b=\"c\">d</a>'"]),
        column(["json", "json", "json"], &["'{\"a\" : [1, 2.50]}'", "'[]'"])
            .odd(&[
                "'null'",
                "'\"s\"'",
                "'true'",
                "'5'",
                "'1.5'",
                "'12345678901234567890.5'",
                "'\"5\"'",
                "'\"\"'",
                "' [1] '",
                "'1e400'",
            ])
            .random(|r| quoted(&r.json())),
        column(["jsonb", "json", "json"], &["'{\"a\": [1, 2.50]}'"])
            .odd(&[
                "'null'",
                "'\"s\"'",
                "'false'",
                "'5'",
                "'1.5'",
                "'12345678901234567890.5'",
                "'\"null\"'",
                "'\"[1]\"'",
            ])
            .random(|r| quoted(&r.json())),
        column(["jsonpath", "text", "text"], &["'$.a[*]'"]),
        column(["tsvector", "text", "text"], &["'a:1 b:2'"]),
        column(["tsquery", "text", "text"], &["'a & !b'"]),
    ]
}

fn moments() -> Vec<Column> {
    vec![
        column(["date", "date", "text"], &["'2024-02-29'"])
            .odd(&[
                "'infinity'",
                "'-infinity'",
                "'0044-03-15 BC'",
                "'10000-01-01'",
                "'0001-01-01'",
            ])
            .random(|r| quoted(&r.date())),
        column(["time", "time(6)", "text"], &["'00:00'"])
            .odd(&["'24:00'"])
            .random(|r| quoted(&r.time())),
        column(["timetz", "varchar(40)", "text"], &["'03:04:05.6+05:30'"]),
        column(
            ["timestamp", "datetime(6)", "text"],
            &["'2026-01-02 03:04:05'"],
        )
        .odd(&[
            "'infinity'",
            "'0044-03-15 12:00 BC'",
            "'10000-01-01'",
            "'0001-01-01'",
        ])
        .random(|r| quoted(&r.moment())),
        column(
            ["timestamptz", "datetime(6)", "text"],
            &["'2026-01-02 03:04:05+05:30'"],
        )
        .odd(&[
            "'infinity'",
            "'0044-03-15 12:00 BC'",
            "'10000-01-01 00:00+00'",
        ])
        .random(|r| quoted(&format!("{}+00", r.moment()))),
        column(
            ["timestamptz", "timestamp(6) null", "text"],
            &["'2026-01-02 03:04:05-11'"],
        )
        .odd(&["'infinity'", "'2050-01-01'", "'1950-01-01'"])
        .random(|r| quoted(&format!("{}+00", r.moment()))),
        column(
            ["interval", "varchar(60)", "text"],
            &[
                "'1 year 2 mons -3 days +04:05:06.789'",
                "'-1 mons'",
                "'0'",
                "'1 day -02:00'",
            ],
        ),
    ]
}

fn others() -> Vec<Column> {
    vec![
        column(
            ["inet", "varchar(60)", "text"],
            &["'10.0.0.1'", "'10.0.0.0/8'", "'::1'"],
        ),
        column(["cidr", "varchar(60)", "text"], &["'10.0.0.0/8'"]),
        column(["macaddr", "varchar(60)", "text"], &["'08:00:2b:01:02:03'"]),
        column(
            ["macaddr8", "varchar(60)", "text"],
            &["'08:00:2b:01:02:03:04:05'"],
        ),
        column(["point", "varchar(90)", "text"], &["'(0.1,-2)'"]),
        column(["line", "varchar(90)", "text"], &["'{1,2,3}'"]),
        column(["lseg", "varchar(90)", "text"], &["'[(1,2),(3,4)]'"]),
        column(["box", "varchar(90)", "text"], &["'(3,4),(1,2)'"]),
        column(
            ["path", "varchar(90)", "text"],
            &["'[(1,2),(3,4)]'", "'((1,2),(3,4))'"],
        ),
        column(
            ["polygon", "varchar(90)", "text"],
            &["'((1,2),(3,4),(5,0))'"],
        ),
        column(["circle", "varchar(90)", "text"], &["'<(1,2),3>'"]),
        column(
            ["int4range", "varchar(60)", "text"],
            &["'[1,5)'", "'empty'", "'(,)'"],
        ),
        column(["numrange", "varchar(60)", "text"], &["'(1.5,2.50]'"]),
        column(
            ["tstzrange", "varchar(90)", "text"],
            &["'[2026-01-02 03:04:05+02,)'"],
        ),
        column(
            ["daterange", "varchar(90)", "text"],
            &["'[2026-01-02,2026-02-01)'"],
        ),
        column(
            ["int4multirange", "varchar(90)", "text"],
            &["'{[1,2),[5,9)}'", "'{}'"],
        ),
        column(["pg_lsn", "varchar(90)", "text"], &["'16/B374D848'"]),
        column(["pair", "json", "json"], &[]).odd(&["'(1,\"a b\")'", "'(,)'"]),
    ]
}

fn arrays() -> Vec<Column> {
    vec![
        column(
            ["int[]", "json", "json"],
            &["'{1,NULL,3}'", "'{{1,2},{3,4}}'"],
        )
        .odd(&["'[0:1]={1,2}'", "'{}'"]),
        column(
            ["int[]", "text", "text"],
            &["'{1,NULL,3}'", "'[0:1]={1,2}'"],
        ),
        column(
            ["text[]", "json", "json"],
            &["'{a,NULL,\"NULL\",\"\",\"a\\\"b\\\\\"}'", "'{\"{x}\"}'"],
        ),
        column(
            ["numeric[]", "json", "json"],
            &["'{1.50,123456789012345678901234567890.1}'"],
        )
        .odd(&["'{NaN}'"]),
        column(["float8[]", "json", "json"], &["'{0.1,1e300}'"]).odd(&["'{NaN,Infinity}'"]),
        column(["bool[]", "json", "json"], &["'{t,f,NULL}'"]),
        column(
            ["bytea[]", "json", "json"],
            &["array['\\x00ff'::bytea, '']"],
        ),
        column(
            ["timestamptz[]", "json", "json"],
            &["'{\"2026-01-02 03:04:05.5+02\"}'"],
        ),
        column(["jsonb[]", "json", "json"], &["array['{\"a\": 1}'::jsonb]"])
            .odd(&["array['[1]'::jsonb, '\"s\"', 'null']"]),
        column(
            ["uuid[]", "json", "json"],
            &["'{00112233-4455-6677-8899-aabbccddeeff}'"],
        ),
        column(["date[]", "json", "json"], &["'{2026-01-02}'"]),
        column(["mood[]", "json", "json"], &["'{\"so so\",A,\"\"}'"]),
        column(["pair[]", "json", "json"], &[]).odd(&["array[row(1, 'a b')::pair]"]),
        column(["interval[]", "json", "json"], &["'{\"1 day -02:00\"}'"]),
        column(["box[]", "json", "json"], &["'{(3,4),(1,2);(7,8),(5,6)}'"]),
    ]
}
