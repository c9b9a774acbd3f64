//! Tables with every type of each database, to every other database and back, and out into a file
//! and in again: each value is as it was, or its row is told.

mod column;
mod file;
mod mariadb;
mod postgres;
mod sqlite;

use std::collections::BTreeMap;

use self::column::{Column, Rng};
use windrow_testkit::left_out;
use windrow_testkit::mariadb::has_type;

use crate::support::{Db, move_rows, number};

/// Random values of each column, unless the environment says otherwise.
const RANDOM: usize = 6;

/// What there is of a database for such a test.
struct World {
    columns: Vec<Column>,
    /// Makes the types.
    before: &'static str,
    /// The text by which two values of a column are held against each other, `?` being the column:
    /// hexadecimal digits.
    text: &'static str,
}

fn world(db: &Db) -> World {
    match db {
        Db::Postgres(_) => postgres::world(),
        Db::Mariadb(_) => mariadb::world(),
        Db::Sqlite(_) => sqlite::world(),
    }
}

impl World {
    /// Leaves out the columns whose types one of these databases does not have.
    fn without_types_that_lack(mut self, databases: &[&Db]) -> Self {
        for db in databases.iter().filter(|db| db.is_mysql()) {
            left_out::note(
                "JSON that is moved: MySQL spells it its own way, with numbers as doubles",
            );
            let has = |of: &str| of != "json" && has_type(&db.url(), of).unwrap();
            self.columns.retain(|column| has(column.types[1]));
            // Its strict mode takes no day of zeros, and a file keeps no sign of a zero.
            let is_odd = |literal: &&str| literal.contains("0000-00-00") || *literal == "-0e0";
            for column in &mut self.columns {
                if column.odd.iter().any(is_odd) {
                    column.odd = &[];
                }
            }
        }
        self
    }
}

/// The place of a database's types among those of the others.
fn place(db: &Db) -> usize {
    match db {
        Db::Postgres(_) => 0,
        Db::Mariadb(_) => 1,
        Db::Sqlite(_) => 2,
    }
}

/// Rows of one value each.
struct Rows {
    /// The column of each row, and whether its value has to arrive.
    of: Vec<(usize, bool)>,
}

impl World {
    fn make(&self, db: &Db, table: &str, types: usize) {
        let columns = self.columns.iter().enumerate();
        let columns = columns.map(|(n, column)| format!(", c{n} {}", column.types[types]));
        let columns: String = columns.collect();
        db.sql(&format!(
            "create table {table} (id int primary key{columns})"
        ));
    }

    fn fill(&self, db: &Db, seed: u64) -> Rows {
        let mut rng = Rng::new(seed);
        let mut rows = Rows { of: Vec::new() };
        let mut sql = String::new();
        for (n, column) in self.columns.iter().enumerate() {
            let random = (0..number("WINDROW_TEST_VALUES", RANDOM))
                .filter_map(|_| Some(column.random?(&mut rng)));
            let plain = column.plain.iter().map(|text| (*text).to_owned());
            let odd = column.odd.iter().map(|text| ((*text).to_owned(), false));
            let all = plain
                .chain(random)
                .map(|literal| (literal, true))
                .chain(odd);
            for (literal, plain) in all {
                let id = rows.of.len();
                sql.push_str(&format!(
                    "insert into pending (id, c{n}) values ({id}, {literal});\n"
                ));
                rows.of.push((n, plain));
            }
        }
        db.sql(&sql);
        rows
    }

    /// The values of a table's rows, by their numbers.
    fn seen(&self, db: &Db, table: &str, rows: &Rows) -> BTreeMap<usize, String> {
        let mut seen = BTreeMap::new();
        for (n, column) in self.columns.iter().enumerate() {
            let ids = rows.of.iter().enumerate().filter(|(_, (of, _))| *of == n);
            let ids: Vec<String> = ids.map(|(id, _)| id.to_string()).collect();
            if ids.is_empty() {
                continue;
            }
            let text = column
                .seen
                .unwrap_or(self.text)
                .replace('?', &format!("c{n}"));
            let ids = ids.join(",");
            let told = db.sql(&format!(
                "select id, coalesce({text}, 'NULL') from {table} where id in ({ids})"
            ));
            for line in told.lines() {
                let (id, value) = line.split_once('|').unwrap();
                seen.insert(id.parse().unwrap(), value.to_lowercase());
            }
        }
        seen
    }
}

/// The rows that a database keeps as dead letters, and why.
fn letters(db: &Db) -> BTreeMap<usize, String> {
    let told = db.sql(match db {
        Db::Postgres(_) => {
            "select \"row\" ->> 'id', replace(message, chr(10), ' ') from windrow_rejected"
        }
        Db::Mariadb(_) => {
            "select json_value(`row`, '$.id'), replace(message, '\\n', ' ') from windrow_rejected"
        }
        Db::Sqlite(_) => {
            "select \"row\" ->> 'id', replace(message, char(10), ' ') from windrow_rejected"
        }
    });
    let letter = |line: &str| {
        let (id, why) = line.split_once('|').unwrap();
        (id.parse().unwrap(), why.to_owned())
    };
    told.lines().map(letter).collect()
}

fn readable(hex: &str) -> String {
    let pairs = hex.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    match pairs.map(byte).collect::<Option<Vec<u8>>>() {
        Some(bytes) => format!("{:?}", String::from_utf8_lossy(&bytes)),
        None => hex.to_owned(),
    }
}

/// What differs, in words.
fn differences(
    world: &World,
    rows: &Rows,
    before: &BTreeMap<usize, String>,
    after: &BTreeMap<usize, String>,
    told: &BTreeMap<usize, String>,
) -> Vec<String> {
    let mut wrong = Vec::new();
    for (id, was) in before {
        let (n, plain) = rows.of[*id];
        let of = world.columns[n].types;
        let was = readable(was);
        match (after.get(id), told.get(id)) {
            (Some(is), None) if readable(is) == was => {}
            (Some(is), None) => wrong.push(format!("{of:?}: {was} became {}", readable(is))),
            (None, Some(why)) if plain => wrong.push(format!("{of:?}: {was} refused: {why}")),
            (None, Some(_)) => {}
            (Some(_), Some(_)) => wrong.push(format!("{of:?}: {was} is there and told")),
            (None, None) => wrong.push(format!("{of:?}: {was} is lost")),
        }
    }
    wrong
}

/// From one database to another, and back. `made`: the table there is made by the move.
fn there_and_back(here: &Db, there: &Db, made: bool) {
    let seed = u64::try_from(number("WINDROW_TEST_SEED", 1)).unwrap();
    let world = world(here).without_types_that_lack(&[here, there]);
    here.sql(world.before);
    world.make(here, "pending", place(here));
    let rows = world.fill(here, seed);
    let before = world.seen(here, "pending", &rows);
    assert_eq!(before.len(), rows.of.len());
    let url = there.url();
    let mut more = vec!["--to", &url];
    if made {
        more.push("--create");
    } else {
        if place(here) == place(there) {
            there.sql(world.before);
        }
        world.make(there, "pending", place(there));
    }
    let told = move_rows(here, "pending", &more);
    assert!(matches!(told.status, 0 | 3), "{} {}", told.status, told.err);
    let mut told = letters(here);
    assert_eq!(
        (here.count("pending"), there.count("pending")),
        (0, rows.of.len() - told.len())
    );
    world.make(here, "final", place(here));
    let back = move_rows(there, "final", &["--to", &here.url()]);
    assert!(matches!(back.status, 0 | 3), "{} {}", back.status, back.err);
    told.extend(
        letters(there)
            .into_iter()
            .map(|(id, why)| (id, format!("on the way back: {why}"))),
    );
    assert_eq!(there.count("pending"), 0);
    let after = world.seen(here, "final", &rows);
    let wrong = differences(&world, &rows, &before, &after, &told);
    // What a made table can keep is up to the types that are found from its first rows.
    let wrong: Vec<String> = match made {
        true => wrong
            .into_iter()
            .filter(|why| !why.contains(" refused: "))
            .collect(),
        false => wrong,
    };
    assert!(
        wrong.is_empty(),
        "{} of {}\n{}",
        wrong.len(),
        rows.of.len(),
        wrong.join("\n")
    );
}

#[test]
fn from_postgresql_to_mariadb() {
    there_and_back(&Db::postgres(), &Db::mariadb(), false);
}

#[test]
fn from_postgresql_to_a_file() {
    there_and_back(&Db::postgres(), &Db::sqlite(), false);
}

#[test]
fn from_postgresql_to_postgresql() {
    there_and_back(&Db::postgres(), &Db::postgres(), false);
}

#[test]
fn from_mariadb_to_postgresql() {
    there_and_back(&Db::mariadb(), &Db::postgres(), false);
}

#[test]
fn from_mariadb_to_a_file() {
    there_and_back(&Db::mariadb(), &Db::sqlite(), false);
}

#[test]
fn from_mariadb_to_mariadb() {
    there_and_back(&Db::mariadb(), &Db::mariadb(), false);
}

#[test]
fn from_a_file_to_postgresql() {
    there_and_back(&Db::sqlite(), &Db::postgres(), false);
}

#[test]
fn from_a_file_to_mariadb() {
    there_and_back(&Db::sqlite(), &Db::mariadb(), false);
}

#[test]
fn from_a_file_to_a_file() {
    there_and_back(&Db::sqlite(), &Db::sqlite(), false);
}
