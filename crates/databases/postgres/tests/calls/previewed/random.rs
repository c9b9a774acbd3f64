//! Random tables and values: what is answered early is what the INSERT gives.

use std::sync::Arc;

use windrow_core::Statement;

use super::{Given, Twins, call, texts};
use crate::differential::Dice;
use crate::parsed::insert;

/// A type, its defaults, its checks of a column `C`, and values.
type TypeCase = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
    &'static [&'static str],
);

const TYPES: &[TypeCase] = &[
    (
        "int2",
        &["7", "-1"],
        &["C > 0"],
        &["1", "-1", "32768", " 5", "x", "032767", "-32768"],
    ),
    (
        "int",
        &["0", "(1 + 2)"],
        &["10 / C > 0", "C <> 5"],
        &["1", "0", "5", "2147483647", "-2147483649", "+4"],
    ),
    (
        "int8",
        &["9999999999"],
        &["C % 2 = 1"],
        &["1", "9223372036854775807", "9223372036854775808", "1e3"],
    ),
    (
        "text",
        &["'x'", "'it''s'", "upper('abc')", "'now'"],
        &["C <> ''", "length(C) < 4"],
        &["", "a", "abcd", "\u{e4}\u{1F600}", " b ", "now"],
    ),
    (
        "varchar(3)",
        &["'abc'", "'abcd'"],
        &["octet_length(C) < 4"],
        &[
            "",
            "abc",
            "abcd",
            "abc  ",
            "\u{e4}\u{e4}\u{e4}",
            "\u{e4}\u{e4}\u{e4}\u{e4}",
        ],
    ),
    (
        "char(3)",
        &["'a'", "'abcd'"],
        &["octet_length(C) = 3", "C::text = 'a'"],
        &["", "a", "abc", "abc  ", "abcd", "\u{e4}"],
    ),
    (
        "numeric(4, 2)",
        &["1.005", "100"],
        &["C < 50"],
        &[
            "1", "99.99", "99.994", "99.995", "100", "-0.001", "1e1", "NaN", ".5", "5.", ".",
        ],
    ),
    (
        "numeric",
        &["1.50"],
        &["C >= 0"],
        &[
            "1.500",
            "-1",
            "1e-5",
            "NaN",
            "Infinity",
            "12345678901234567890.5",
        ],
    ),
    (
        "float8",
        &["0.1"],
        &["C < 10"],
        &["0.1", "-0", "1e400", "1e-310", "NaN", "1e2", " 1"],
    ),
    (
        "float4",
        &["0.1"],
        &["C < 10"],
        &["0.1", "1e39", "1e-50", "3.4028235e38"],
    ),
    (
        "bool",
        &["true"],
        &["C"],
        &["t", "false", "yes", "maybe", "1", "TRUE"],
    ),
    (
        "bytea",
        &["'\\x00'"],
        &["octet_length(C) > 0"],
        &["", "\\x00ff", "\\x0", "ab", "a\\\\b", "\\000"],
    ),
    (
        "uuid",
        &["'00000000-0000-0000-0000-00000000000a'"],
        &["C is not null"],
        &[
            "00000000-0000-0000-0000-000000000001",
            "{00000000000000000000000000000001}",
            "0000",
        ],
    ),
    (
        "json",
        &["'{ }'"],
        &["C->>'a' is null"],
        &["{\"a\": 1}", "[1,  2]", "{", "\"\\u0000\"", "1e400000"],
    ),
    (
        "jsonb",
        &["'{\"b\": [1, 2.50]}'", "jsonb_build_object('a', 1)"],
        &["C ? 'a'"],
        &[
            "{\"a\":1, \"a\":2}",
            "{}",
            "",
            "\"\\u0000\"",
            "1e400000",
            "null",
        ],
    ),
    (
        "timestamp(3)",
        &["'2024-01-01 00:00:00.1239'"],
        &["C > '2000-01-01'"],
        &[
            "2024-02-29 10:00:00.1236",
            "2024-02-30",
            "infinity",
            "1999-01-01",
            "2024-01-01 10:00+02",
        ],
    ),
    (
        "timestamptz",
        &["'2024-01-01 10:00+02'"],
        &["C < '2030-01-01'"],
        &[
            "2024-02-29 10:00:00.123456+02",
            "2031-01-01",
            "Jan 5 1999",
            "24:00",
            "2024-01-01T10:00:00Z",
        ],
    ),
    (
        "date",
        &["'2024-01-01'"],
        &["extract(year from C) > 2000"],
        &[
            "2024-02-29",
            "2023-02-29",
            "1999-01-01",
            "-infinity",
            "20240101",
            "0001-01-01",
        ],
    ),
    (
        "interval",
        &["'1 day'"],
        &["C > '0'"],
        &["1 day 02:03", "-1 mon", "x"],
    ),
    (
        "time(1)",
        &["'10:00:00.55'"],
        &["C < '20:00'"],
        &["10:00:00.16", "24:00", "25:00"],
    ),
    (
        "mood",
        &["'sad'"],
        &["C <> 'so so'"],
        &["sad", "so so", "it's", "", "SAD"],
    ),
    (
        "int[]",
        &["'{1,2}'", "array[1]"],
        &["C[1] > 0"],
        &["{}", "{1,NULL}", "{{1,2},{3,4}}", "[0:1]={5,6}", "{x}", "1"],
    ),
    (
        "text[]",
        &["'{}'"],
        &["array_length(C, 1) < 3"],
        &["{a,\"b c\",NULL}", "{}", "{a,b}", "{"],
    ),
    (
        "mood[]",
        &["'{sad}'"],
        &["'sad' = any (C)"],
        &["{sad,\"so so\"}", "{x}", "{}"],
    ),
    (
        "numeric(3, 1)[]",
        &["'{1.25}'"],
        &["C[1] > 1"],
        &["{1.25,2}", "{100}", "{0}"],
    ),
    (
        "inet",
        &["'10.0.0.1'"],
        &["family(C) = 4"],
        &["10.0.0.1/8", "::1", "300.0.0.1"],
    ),
];

/// A table, an INSERT, and the values of each of its parameters.
struct Case {
    ddl: String,
    columns: String,
    values: String,
    returning: String,
    pools: Vec<&'static [&'static str]>,
}

fn case(dice: &mut Dice) -> Case {
    let mut ddl =
        String::from("create type mood as enum ('sad', 'so so', 'it''s'); create table t (");
    ddl += dice.pick(&[
        "id serial primary key",
        "id bigint generated always as identity",
        "id smallint generated by default as identity unique",
        "id uuid default '00000000-0000-0000-0000-00000000000a'",
    ]);
    let (mut columns, mut values, mut names) = (Vec::new(), Vec::new(), vec!["id".to_owned()]);
    let mut pools = Vec::new();
    let mut indexes = String::new();
    for number in 0..=dice.roll(5) {
        let (type_name, defaults, checks, pool) = TYPES[dice.roll(TYPES.len())];
        let name = format!("c{number}");
        ddl += &format!(", {name} {type_name}");
        let has_default = dice.roll(3) == 0;
        if has_default {
            ddl += &format!(" default {}", dice.pick(defaults));
        }
        if dice.roll(4) == 0 {
            ddl += " not null";
        }
        if dice.roll(3) == 0 {
            ddl += &format!(" check ({})", dice.pick(checks).replace('C', &name));
        }
        if dice.roll(5) == 0 && type_name != "json" {
            indexes += &format!("; create index on t ({name})");
        }
        match dice.roll(8) {
            0 if !columns.is_empty() => {}
            1 => {
                columns.push(name.clone());
                values.push("default".to_owned());
            }
            way => {
                pools.push(pool);
                let parameter = format!("${}", pools.len());
                columns.push(name.clone());
                values.push(match way {
                    2 if !type_name.starts_with("mood") => {
                        format!("coalesce({parameter}::{type_name}, null)")
                    }
                    _ => parameter,
                });
            }
        }
        names.push(name);
    }
    ddl += &format!("){indexes}");
    let returning = match dice.roll(4) {
        0 => String::new(),
        1 => "id".to_owned(),
        2 => "*".to_owned(),
        _ => format!(
            "{}, {}",
            names[dice.roll(names.len())],
            names[dice.roll(names.len())]
        ),
    };
    Case {
        ddl,
        columns: columns.join(", "),
        values: values.join(", "),
        returning,
        pools,
    }
}

/// Replaces some texts by the binary form that the server gives them.
async fn encoded(
    twins: &mut Twins,
    insert: &Statement,
    mut given: Vec<Given>,
    dice: &mut Dice,
) -> Vec<Given> {
    for (place, (value, is_binary)) in given.iter_mut().enumerate() {
        let (Some(text), true) = (value.clone(), dice.roll(2) == 0) else {
            continue;
        };
        let parameter = insert.parameters()[place];
        let text = String::from_utf8(text).unwrap().replace('\'', "''");
        let of_type = twins.bed.sql(&format!(
            "select typsend || ' ' || format_type(oid, -1) from pg_type where oid = {parameter}"
        ));
        let Some((send, name)) = of_type.split_once(' ') else {
            continue;
        };
        let sql = format!("set search_path = b; select encode({send}('{text}'::{name}), 'hex')");
        if let Ok(hex) = twins.bed.database.exec(&sql) {
            *value = Some(bytes(hex.trim().lines().last().unwrap_or_default()));
            *is_binary = true;
        }
    }
    given
}

fn bytes(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    pairs.map(byte).collect()
}

#[tokio::test]
async fn random_rows_are_previewed_as_they_are_inserted() {
    let seed = std::env::var("WINDROW_PREVIEW_SEED").ok();
    let seed: u64 = seed.and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let tables = std::env::var("WINDROW_PREVIEW_TABLES").ok();
    let tables: usize = tables.and_then(|n| n.parse().ok()).unwrap_or(8);
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let (mut good, mut sure) = (0, 0);
    for _ in 0..tables {
        let case = case(&mut dice);
        let mut twins = Twins::new(&case.ddl).await;
        let make = |table: &str| {
            let made = insert(table, &case.columns, &case.values);
            match &*case.returning {
                "" => made,
                list => made.returning(list),
            }
        };
        let both = twins.both(|table| make(table).parsed()).await;
        if both[0].preview().is_none() {
            continue;
        }
        for round in 1..=12 {
            // A row that is refused takes a number, or several, in one copy only.
            twins.bed.sql(&format!(
                "select setval(s, {round} * 100) from (values (pg_get_serial_sequence('a.t', 'id')), \
                 (pg_get_serial_sequence('b.t', 'id'))) v(s) where s is not null"
            ));
            let values: Vec<&str> = case
                .pools
                .iter()
                .map(|pool| {
                    if dice.roll(8) == 0 {
                        "~"
                    } else {
                        dice.pick(pool)
                    }
                })
                .collect();
            let given = texts(&values);
            let given = encoded(&mut twins, &both[1], given, &mut dice).await;
            if !lasts(&both[0], &given) {
                continue;
            }
            sure += usize::from(is_sure(&both[0], &given));
            good += usize::from(twins.compare(&both, &given).await);
        }
    }
    assert!(
        good > tables && sure > 0,
        "{good} good previews, {sure} sure ones"
    );
}

fn lasts(insert: &Arc<Statement>, given: &[Given]) -> bool {
    let call = call(insert, given, windrow_core::Formats::Text);
    insert.has_lasting_values(&call.arguments, &call.formats)
}

fn is_sure(insert: &Arc<Statement>, given: &[Given]) -> bool {
    let call = call(insert, given, windrow_core::Formats::Text);
    insert.fits(&call.arguments, &call.formats)
}
