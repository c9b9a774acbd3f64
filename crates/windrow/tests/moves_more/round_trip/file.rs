//! Out into a file, as the database's own tools write it, and in again by `windrow load`.

use std::collections::BTreeMap;
use std::process::Command;

use rusqlite::types::ValueRef;

use super::{World, differences, place, world};
use crate::support::{Db, number};

/// `\copy pending to .. csv header`, or its like: NULL is an empty field without quotes, binary
/// data is base64.
fn dumped(db: &Db, world: &World) -> String {
    match db {
        Db::Postgres(_) => db.sql("copy pending to stdout (format csv, header)"),
        Db::Mariadb(_) => of_mariadb(db, world),
        Db::Sqlite(_) => of_file(db),
    }
}

fn header(columns: usize) -> String {
    let names: String = (0..columns).map(|n| format!(",c{n}")).collect();
    format!("id{names}\n")
}

fn of_mariadb(db: &Db, world: &World) -> String {
    let mut sql = "select hex(concat(id".to_owned();
    for (n, column) in world.columns.iter().enumerate() {
        let text = match column.types[1] {
            of if of.contains("blob") || of.contains("binary") => {
                format!("replace(to_base64(c{n}), '\n', '')")
            }
            "point" | "geometry" => format!("replace(to_base64(c{n}), '\n', '')"),
            of if of.starts_with("bit") => format!("c{n} + 0"),
            "float" => format!("cast(c{n} as double)"),
            _ => format!("c{n}"),
        };
        sql.push_str(&format!(
            ", ',', if(c{n} is null, '', concat('\"', replace({text}, '\"', '\"\"'), '\"'))"
        ));
    }
    sql.push_str(")) from pending order by id");
    let mut file = header(world.columns.len());
    for line in db.sql(&sql).lines() {
        let pairs = line.as_bytes().chunks(2);
        let bytes =
            pairs.map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap());
        file.push_str(&String::from_utf8(bytes.collect()).unwrap());
        file.push('\n');
    }
    file
}

fn of_file(db: &Db) -> String {
    let connection = db.connection();
    let mut ask = connection
        .prepare("select * from pending order by id")
        .unwrap();
    let width = ask.column_count();
    let mut file = header(width - 1);
    let mut rows = ask.query([]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        let field = |place| {
            let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
            match row.get_ref(place).unwrap() {
                ValueRef::Null => String::new(),
                ValueRef::Integer(n) => n.to_string(),
                ValueRef::Real(x) => format!("{x:?}"),
                ValueRef::Text(text) => quoted(str::from_utf8(text).unwrap_or("not UTF-8")),
                ValueRef::Blob(bytes) => quoted(&base64(bytes)),
            }
        };
        let fields: Vec<String> = (0..width).map(field).collect();
        file.push_str(&fields.join(","));
        file.push('\n');
    }
    file
}

fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let byte = |place: usize| u32::from(group.get(place).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let sign = usize::try_from(bits >> (18 - 6 * place) & 63).unwrap();
            let is_there = place <= group.len();
            text.push(if is_there {
                char::from(SIGNS[sign])
            } else {
                '='
            });
        }
    }
    text
}

/// Out of a table and into another one like it.
fn out_and_in(db: &Db, tame: bool) {
    let seed = u64::try_from(number("WINDROW_TEST_SEED", 2)).unwrap();
    let mut world = world(db).without_types_that_lack(&[db]);
    if tame {
        // What only the file's own database can hold.
        for column in &mut world.columns {
            column.odd = &[];
        }
    }
    db.sql(world.before);
    world.make(db, "pending", place(db));
    world.make(db, "final", place(db));
    let rows = world.fill(db, seed);
    let before = world.seen(db, "pending", &rows);
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("out.csv"), dumped(db, &world)).unwrap();
    let loaded = Command::new(env!("CARGO_BIN_EXE_windrow"))
        .args(["load", &path("out.csv"), "-t", "final", "--to", &db.url()])
        .args(["--rejects", &path("bad.csv"), "--progress", "none"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&loaded.stderr);
    assert!(matches!(loaded.status.code(), Some(0 | 3)), "{said}");
    let after = world.seen(db, "final", &rows);
    let lines = std::fs::read_to_string(path("bad.csv")).unwrap_or_default();
    let reasons = std::fs::read_to_string(path("bad.csv.reasons")).unwrap_or_default();
    // Rows begin with their numbers, and no value has a line that begins so.
    let refused = lines
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once(','));
    let refused = refused.filter_map(|(id, _)| id.parse().ok());
    let told: BTreeMap<usize, String> = refused.zip(reasons.lines().map(str::to_owned)).collect();
    let wrong = differences(&world, &rows, &before, &after, &told);
    assert!(
        wrong.is_empty(),
        "{} of {}\n{}",
        wrong.len(),
        rows.of.len(),
        wrong.join("\n")
    );
}

#[test]
fn out_of_postgresql_and_in() {
    out_and_in(&Db::postgres(), true);
}

#[test]
fn out_of_mariadb_and_in() {
    out_and_in(&Db::mariadb(), true);
}

#[test]
fn out_of_a_file_and_in() {
    out_and_in(&Db::sqlite(), true);
}
