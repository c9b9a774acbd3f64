//! Types of MariaDB.

use super::World;
use super::column::{Column, column};

pub fn world() -> World {
    World {
        columns: numbers()
            .into_iter()
            .chain(texts())
            .chain(moments())
            .collect(),
        before: "set session sql_mode = default",
        text: "hex(concat(?))",
    }
}

/// In quotes, with backslashes as they are.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

fn numbers() -> Vec<Column> {
    vec![
        column(["smallint", "tinyint", "integer"], &["-128", "127"])
            .random(|r| r.int(8).to_string()),
        column(["smallint", "tinyint unsigned", "integer"], &["255"]),
        column(["smallint", "smallint", "integer"], &["-32768"]).random(|r| r.int(16).to_string()),
        column(["int", "mediumint", "integer"], &["-8388608"]),
        column(["int", "int", "integer"], &["2147483647"]).random(|r| r.int(32).to_string()),
        column(["int", "int(5) zerofill", "integer"], &["42"]),
        column(["bigint", "bigint", "integer"], &["-9223372036854775808"])
            .random(|r| r.int(64).to_string()),
        column(
            ["numeric", "bigint unsigned", "decimal_text"],
            &["18446744073709551615", "7"],
        ),
        column(["bigint", "bigint unsigned", "integer"], &["7"]).odd(&["18446744073709551615"]),
        column(["boolean", "boolean", "boolean"], &["true", "false"]).odd(&["2", "-1"]),
        column(
            ["numeric", "decimal(65,30)", "decimal_text"],
            &["0.000000000000000000000000000001"],
        )
        .random(|r| r.decimal(29, 30)),
        column(
            ["numeric(10,2)", "decimal(10,2)", "decimal_text"],
            &["-99999999.99"],
        )
        .random(|r| r.decimal(7, 2)),
        column(["real", "float", "real"], &["0.1", "16777216"])
            .random(|r| format!("{:e}", r.float()))
            .seen("hex(concat(cast(? as double)))"),
        column(["double precision", "double", "real"], &["0.1"])
            .odd(&["-0e0"])
            .random(|r| format!("{:e}", r.double())),
        column(["bit(1)", "bit(1)", "integer"], &["b'0'", "b'1'"]).seen("hex(concat(? + 0))"),
        column(
            ["bit(20)", "bit(20)", "integer"],
            &["b'101'", "1048575", "101"],
        )
        .seen("hex(concat(? + 0))"),
        column(["varbit", "bit(20)", "integer"], &["b'101'", "10"]).seen("hex(concat(? + 0))"),
        column(
            ["bit(64)", "bit(64)", "decimal_text"],
            &["18446744073709551615", "1"],
        )
        .seen("hex(concat(? + 0))"),
        column(
            ["numeric", "bit(64)", "decimal_text"],
            &["18446744073709551615", "101"],
        )
        .seen("hex(concat(? + 0))"),
    ]
}

fn texts() -> Vec<Column> {
    vec![
        column(["text", "char(10)", "text"], &["'ab'", "''"]),
        column(
            ["text", "varchar(50)", "text"],
            &["' a '", "'MQ=='", "'null'", "'1e5'"],
        )
        .random(|r| quoted(&r.text(40))),
        column(["text", "tinytext", "text"], &[]).random(|r| quoted(&r.text(20))),
        column(["text", "text", "text"], &["''"]).random(|r| quoted(&r.text(40))),
        column(["text", "mediumtext", "text"], &[]).random(|r| quoted(&r.text(40))),
        column(["text", "longtext", "text"], &["'{\"a\":1}'", "'[1'"])
            .random(|r| quoted(&r.text(40))),
        column(
            ["text", "varchar(50) character set latin1", "text"],
            &["'\u{e9}\u{20ac}'"],
        ),
        column(
            ["bytea", "varchar(50)", "blob"],
            &["'MQ=='", "'\\\\x31'", "''"],
        )
        .random(|r| quoted(&r.text(40))),
        column(
            ["text", "enum('a', 'B', '')", "text"],
            &["'a'", "'B'", "''"],
        ),
        column(["text", "set('x', 'y')", "text"], &["'x,y'", "''"]),
        column(["bytea", "binary(4)", "blob"], &["x'00ff'", "'1234'"]),
        column(["bytea", "varbinary(40)", "blob"], &["''", "'MQ=='"])
            .random(|r| format!("x'{}'", r.hex(30))),
        column(["bytea", "tinyblob", "blob"], &[]).random(|r| format!("x'{}'", r.hex(30))),
        column(["bytea", "blob", "blob"], &["x'00'"]).random(|r| format!("x'{}'", r.hex(30))),
        column(["bytea", "longblob", "blob"], &[]).random(|r| format!("x'{}'", r.hex(30))),
        column(["json", "json", "json"], &["'{\"a\" : [1, 2.50]}'", "'[]'"])
            .odd(&[
                "'null'",
                "'\"s\"'",
                "'true'",
                "'5'",
                "'1.5'",
                "'12345678901234567890.5'",
                "'\"5\"'",
                "'1e400'",
            ])
            .random(|r| quoted(&r.json())),
        column(["uuid", "uuid", "text"], &[]).random(|r| quoted(&r.uuid())),
        column(
            ["inet", "inet6", "text"],
            &["'::1'", "'2001:db8::ff00:42:8329'"],
        ),
        column(["inet", "inet4", "text"], &["'10.0.0.1'"]),
        column(["bytea", "point", "blob"], &["point(1.5, -2)"]).seen("hex(?)"),
        column(
            ["bytea", "geometry", "blob"],
            &["st_geomfromtext('polygon((0 0,1 0,1 1,0 0))')"],
        )
        .seen("hex(?)"),
    ]
}

fn moments() -> Vec<Column> {
    vec![
        column(["date", "date", "text"], &["'2024-02-29'", "'1000-01-01'"])
            .odd(&["'0000-00-00'", "'9999-12-31'"])
            .random(|r| quoted(&r.date())),
        column(
            ["timestamp", "datetime(6)", "text"],
            &["'2026-01-02 03:04:05.000006'"],
        )
        .odd(&["'0000-00-00 00:00:00'", "'9999-12-31 23:59:59.999999'"])
        .random(|r| quoted(&r.moment())),
        column(
            ["timestamp", "datetime", "text"],
            &["'2026-01-02 03:04:05'"],
        ),
        column(["timestamptz", "timestamp(6) null", "text"], &[])
            .odd(&["'0000-00-00 00:00:00'"])
            .random(|r| quoted(&r.moment())),
        column(["time", "time(6)", "text"], &["'00:00:00'"])
            .odd(&["'838:59:59'", "'-01:00:00'"])
            .random(|r| quoted(&r.time())),
        column(
            ["interval", "time(6)", "text"],
            &["'838:59:59'", "'-01:00:00'", "'-00:00:00.5'"],
        ),
        column(["int", "year", "integer"], &["2026"]).odd(&["0"]),
    ]
}
