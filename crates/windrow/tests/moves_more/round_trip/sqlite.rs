//! What SQLite holds: values of any type, whatever the column is declared as.

use super::World;
use super::column::{Column, column, quoted};

pub fn world() -> World {
    World {
        columns: columns(),
        before: "select 1",
        text: "hex(typeof(?) || ' ' || case typeof(?) when 'real' then printf('%!.17g', ?) when 'null' then '' else hex(?) end)",
    }
}

fn columns() -> Vec<Column> {
    vec![
        column(
            ["bigint", "bigint", "integer"],
            &["0", "-9223372036854775808"],
        )
        .odd(&["'text'", "1.5", "x'31'", "9e999"])
        .random(|r| r.int(64).to_string()),
        column(["float8", "double", "real"], &["0.1", "-1e300", "1"])
            .odd(&["'text'", "9e999", "-9e999", "x'31'"])
            .random(|r| format!("{:e}", r.double())),
        column(
            ["text", "longtext", "text"],
            &[
                "''",
                "' a '",
                "'MQ=='",
                "'null'",
                "'[1]'",
                "'1.0'",
                "'Infinity'",
            ],
        )
        .odd(&["cast(x'ff' as text)"])
        .random(|r| quoted(&r.text(40))),
        column(["bytea", "longblob", "blob"], &["x''", "x'00ff'"])
            .random(|r| format!("x'{}'", r.hex(30))),
        column(["boolean", "boolean", "boolean"], &["0", "1"]).odd(&["2", "1.5"]),
        column(
            ["numeric", "decimal(65,30)", "numeric"],
            &["5", "1.5", "-0.25"],
        )
        .odd(&["'text'"]),
        column(["json", "json", "json"], &["'{\"a\" : [1, 2.50]}'", "'[]'"])
            .odd(&["'null'", "'\"s\"'", "'true'", "5", "1.5", "'\"5\"'"])
            .random(|r| quoted(&r.json())),
        column(
            ["numeric", "decimal(65,30)", "decimal_text"],
            &["'1.5'", "'12345678901234567890.125'"],
        )
        .odd(&["'NaN'"])
        .random(|r| format!("'{}1'", r.decimal(30, 25)))
        .seen("hex(rtrim(?, '0'))"),
        column(
            ["timestamptz", "datetime(6)", "timestamp"],
            &["'2026-01-02T03:04:05Z'"],
        )
        .seen("hex(substr(?, 1, 19))"),
        column(["date", "date", "date"], &["'2026-01-02'"]),
        column(["varchar(50)", "varchar(50)", "varchar(50)"], &["'x'"])
            .random(|r| quoted(&r.text(40))),
        column(
            ["uuid", "uuid", "uuid"],
            &["'00112233-4455-6677-8899-aabbccddeeff'"],
        ),
        column(["bytea", "longblob", "blob"], &[])
            .odd(&["'MQ=='", "'text'", "1", "1.5"])
            .seen("hex(?)"),
    ]
}
