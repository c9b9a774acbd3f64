//! Random schemas: each write of a batch is told what the same statement is told that is sent by
//! itself, in the order of the batch, over a connection of its own, and the tables are the same
//! afterwards.

use proptest::prelude::*;
use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, ToSql};
use windrow_core::{
    Key, OnConflict, Op, Returning, Unit, UnitOutcome, Value, Verdict, Write, WriteDone,
};
use windrow_database::Options;

use crate::support::*;

/// Tables whose rows are compared, virtual ones by what they give back.
const TABLES: [&str; 7] = ["p", "c", "s", "x", "w", "f", "log"];

/// One of these.
fn any_of(texts: &'static [&'static str]) -> impl Strategy<Value = String> {
    proptest::sample::select(texts).prop_map(str::to_owned)
}

fn conflict() -> impl Strategy<Value = String> {
    any_of(&[
        "",
        "",
        "",
        "ON CONFLICT ROLLBACK",
        "ON CONFLICT FAIL",
        "ON CONFLICT REPLACE",
        "ON CONFLICT IGNORE",
        "ON CONFLICT ABORT",
    ])
}

fn reference() -> impl Strategy<Value = String> {
    let action = any_of(&[
        "",
        "ON DELETE CASCADE",
        "ON DELETE SET NULL",
        "ON DELETE SET DEFAULT",
        "ON UPDATE CASCADE",
        "ON DELETE RESTRICT",
    ]);
    let when = any_of(&[
        "",
        "",
        "DEFERRABLE INITIALLY DEFERRED",
        "NOT DEFERRABLE INITIALLY DEFERRED",
        "DEFERRABLE INITIALLY IMMEDIATE",
    ]);
    prop_oneof![
        1 => Just(String::new()),
        3 => (action, when).prop_map(|(action, when)| format!("REFERENCES p {action} {when}")),
    ]
}

fn default() -> impl Strategy<Value = String> {
    any_of(&[
        "",
        "",
        "",
        "DEFAULT 7",
        "DEFAULT (last_insert_rowid())",
        "DEFAULT (changes())",
        "DEFAULT (\"TOTAL_changes\" /* */ ())",
        "DEFAULT (abs(random() % 1))",
    ])
}

fn tables() -> impl Strategy<Value = String> {
    let id = any_of(&[
        "INTEGER PRIMARY KEY",
        "INTEGER PRIMARY KEY AUTOINCREMENT",
        "PRIMARY KEY",
        "TEXT PRIMARY KEY",
    ]);
    let check = any_of(&["", "CHECK (n < 4)", "CHECK (n <> 2)"]);
    let own = any_of(&[
        "",
        "REFERENCES s",
        "REFERENCES s DEFERRABLE INITIALLY DEFERRED",
        "REFERENCES s ON DELETE CASCADE",
    ]);
    let kind = any_of(&["", "WITHOUT ROWID", "STRICT"]);
    (
        (id, conflict(), conflict(), reference(), check),
        (own, default(), default(), kind),
    )
        .prop_map(|((id, unique, must, to, check), (own, first, second, kind))| {
            format!(
                "CREATE TABLE p (id {id}, n INTEGER);
                 CREATE TABLE c (id INTEGER PRIMARY KEY {unique}, p INTEGER {to}, u INTEGER UNIQUE {unique}, n INTEGER NOT NULL {must} {check},
                     twice INTEGER GENERATED ALWAYS AS (n * 2) STORED);
                 CREATE TABLE s (id INTEGER PRIMARY KEY, s INTEGER {own});
                 CREATE TABLE x (id PRIMARY KEY, n {first});
                 CREATE TABLE w (id INTEGER PRIMARY KEY, n INTEGER {second}) {kind};
                 CREATE VIRTUAL TABLE f USING fts5 (n);
                 CREATE TABLE log (at INTEGER PRIMARY KEY AUTOINCREMENT, line, n);
                 CREATE VIEW v AS SELECT id, n FROM p;"
            )
        })
}

fn action() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => (any_of(&["IGNORE", "ROLLBACK, 'all out'", "ABORT, 'no entry'", "FAIL, 'failed'"]), 0..6)
            .prop_map(|(how, n)| format!("SELECT CASE WHEN NEW.n = {n} THEN RAISE({how}) END;")),
        6 => any_of(&[
            "INSERT INTO log (line, n) SELECT 'p', count(*) FROM p;",
            "INSERT INTO log (line, n) SELECT 'sum', sum(n) FROM c;",
            "INSERT INTO log (line, n) VALUES ('row', last_insert_rowid());",
            "INSERT INTO log (line, n) VALUES ('changes', changes());",
            "INSERT INTO log (line, n) VALUES ('all', total_changes());",
            "UPDATE p SET n = n + 1 WHERE n < 3;",
            "UPDATE c SET n = n + 1 WHERE id = NEW.id;",
            "DELETE FROM p WHERE n = 5;",
            "DELETE FROM s WHERE id = NEW.n;",
            "INSERT OR REPLACE INTO p (id, n) VALUES (NEW.n, 1);",
            "INSERT INTO s (id, s) VALUES (NULL, NEW.n);",
            "INSERT INTO x (id) VALUES (NEW.n);",
            "INSERT INTO f (rowid, n) VALUES (NEW.n, NEW.id);",
            "DELETE FROM f WHERE f MATCH '1';",
        ]),
    ]
}

fn trigger() -> impl Strategy<Value = String> {
    let on = any_of(&["p", "p", "c", "c", "x", "w"]);
    let when = any_of(&[
        "BEFORE INSERT",
        "AFTER INSERT",
        "AFTER INSERT",
        "BEFORE UPDATE",
        "AFTER UPDATE OF n",
    ]);
    let guard = any_of(&["", "", "WHEN NEW.n > 1", "WHEN changes ( ) > 0"]);
    let table = (on, when, guard).prop_map(|(on, when, guard)| format!("{when} ON {on} {guard}"));
    let place = prop_oneof![
        6 => table,
        2 => any_of(&["INSTEAD OF INSERT ON v", "INSTEAD OF UPDATE ON v"]),
    ];
    (place, proptest::collection::vec(action(), 1..3))
        .prop_map(|(place, actions)| format!("{place} BEGIN {} END;", actions.join(" ")))
}

fn schema() -> impl Strategy<Value = String> {
    (tables(), proptest::collection::vec(trigger(), 0..4)).prop_map(|(tables, triggers)| {
        let triggers = triggers.iter().enumerate();
        let triggers = triggers.map(|(n, text)| format!("CREATE TRIGGER t{n} {text}"));
        tables + &triggers.collect::<String>()
    })
}

fn small() -> impl Strategy<Value = Value> {
    prop_oneof![9 => (0..6_i64).prop_map(Value::from), 1 => Just(Value::Null)]
}

fn how(make: Make, how: u8) -> Make {
    let make = if how & 8 > 0 { make.all() } else { make };
    match how & 7 {
        0 => make.ignore(),
        1 => make.upsert(),
        _ => make,
    }
}

fn write() -> impl Strategy<Value = Write> {
    let four = (small(), small(), small(), any::<u8>());
    let c = four.prop_map(|(id, to, n, as_)| {
        how(insert("c", &["id", "p", "u", "n"]), as_).write([id.clone(), to, id, n])
    });
    let two = || (small(), small(), any::<u8>());
    let pairs = prop_oneof![
        3 => Just(("p", "id", "n")),
        1 => Just(("s", "id", "s")),
        1 => Just(("x", "id", "n")),
        1 => Just(("w", "id", "n")),
    ];
    let pair = (pairs, two())
        .prop_map(|((table, id, n), (a, b, as_))| how(insert(table, &[id, n]), as_).write([a, b]));
    let bare = (proptest::sample::select(&["p", "x", "w", "s"][..]), small())
        .prop_map(|(table, id)| insert(table, &["id"]).write([id]));
    let numbered = small().prop_map(|n| insert("c", &["n"]).all().write([n]));
    let change = (
        proptest::sample::select(&["p", "c", "x", "w"][..]),
        small(),
        small(),
    )
        .prop_map(|(table, n, id)| update(table, &["n"]).write([n, id]));
    let moved = (small(), small()).prop_map(|(new, id)| update("p", &["id"]).write([new, id]));
    let gone = (
        proptest::sample::select(&["p", "c", "s", "x", "w"][..]),
        small(),
    )
        .prop_map(|(table, id)| delete(table).write([id]));
    let seen = two().prop_map(|(id, n, op)| match op % 3 {
        0 => insert("v", &["id", "n"]).write([id, n]),
        1 => update("v", &["n"]).key(&["id"]).write([n, id]),
        _ => insert("f", &["n"]).write([n]),
    });
    prop_oneof![5 => c, 5 => pair, 2 => bare, 1 => numbered, 3 => change, 1 => moved, 3 => gone, 2 => seen]
}

fn units() -> impl Strategy<Value = Vec<Unit>> {
    let unit = prop_oneof![
        6 => write().prop_map(Unit::one),
        1 => proptest::collection::vec(write(), 2..4).prop_map(Unit::of),
    ];
    proptest::collection::vec(unit, 1..40)
}

/// The statement of a write as anybody would send it, and its parameters by their numbers.
fn statement(write: &Write, primary: &[&str]) -> String {
    let shape = &write.shape;
    let columns: Vec<&str> = shape.columns.iter().map(|c| &**c).collect();
    let key: Vec<&str> = match &shape.key {
        Key::Primary => primary.to_vec(),
        Key::Columns(names) => names.iter().map(|c| &**c).collect(),
    };
    let first = columns.len() + 1;
    let found = key
        .iter()
        .enumerate()
        .map(|(n, name)| format!("{name} = ?{}", first + n));
    let found = found.collect::<Vec<_>>().join(" AND ");
    let places = (1..first).map(|n| format!("?{n}")).collect::<Vec<_>>();
    let table = &shape.table.table;
    let mut sql = match shape.op {
        Op::Insert => format!(
            "INSERT INTO {table} ({}) VALUES ({})",
            columns.join(", "),
            places.join(", ")
        ),
        Op::Update => format!("UPDATE {table} SET {} = ?1 WHERE {found}", columns.concat()),
        Op::Delete => format!("DELETE FROM {table} WHERE {found}"),
        Op::Get => format!("SELECT * FROM {table} WHERE {found}"),
    };
    let others = columns.iter().filter(|c| !key.contains(c));
    let set = others
        .map(|c| format!("{c} = excluded.{c}"))
        .collect::<Vec<_>>();
    match shape.on_conflict {
        OnConflict::Error => {}
        OnConflict::Ignore => sql += &format!(" ON CONFLICT ({}) DO NOTHING", key.join(", ")),
        OnConflict::Update => {
            sql += &format!(
                " ON CONFLICT ({}) DO UPDATE SET {}",
                key.join(", "),
                set.join(", ")
            );
        }
    }
    if shape.returning == Returning::All && shape.op != Op::Get {
        sql += " RETURNING *";
    }
    sql
}

struct Bound<'v>(&'v Value);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self.0 {
            Value::Null => Ok(ToSqlOutput::from(rusqlite::types::Null)),
            Value::Int(n) => Ok(ToSqlOutput::from(*n)),
            other => panic!("{other:?}"),
        }
    }
}

/// What one statement is told: how many rows, and those that came back.
fn told(connection: &Connection, write: &Write) -> rusqlite::Result<(u64, Vec<String>)> {
    let sql = statement(write, &["id"]);
    let mut statement = connection.prepare(&sql)?;
    let values = rusqlite::params_from_iter(write.row().iter().map(Bound));
    if statement.column_count() == 0 {
        return Ok((statement.execute(values)? as u64, Vec::new()));
    }
    let columns = statement.column_count();
    let mut rows = statement.query(values)?;
    let mut lines = Vec::new();
    while let Some(row) = rows.next()? {
        let cells = (0..columns).map(|i| format!("{:?}", row.get_ref(i).unwrap()));
        lines.push(cells.collect::<Vec<_>>().join("|"));
    }
    Ok((lines.len() as u64, lines))
}

/// A unit as its client would have run it: one statement by itself, or several between BEGIN and
/// COMMIT.
fn by_itself(db: &Db, unit: &Unit) -> String {
    let connection = db.look();
    connection
        .execute_batch(
            "PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF; PRAGMA synchronous = OFF",
        )
        .unwrap();
    let writes = unit.writes();
    if writes.len() > 1 {
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    }
    let mut counts = Vec::new();
    for (at, write) in writes.iter().enumerate() {
        match told(&connection, write) {
            Ok(done) => counts.push(done),
            Err(error) => {
                if !connection.is_autocommit() {
                    connection.execute_batch("ROLLBACK").unwrap();
                }
                return format!("{at}: {}", message(&error));
            }
        }
    }
    if writes.len() > 1
        && let Err(error) = connection.execute_batch("COMMIT")
    {
        connection.execute_batch("ROLLBACK").unwrap();
        return format!("0: {}", message(&error));
    }
    format!("{counts:?}")
}

fn message(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqliteFailure(_, Some(text)) => text.clone(),
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        other => other.to_string(),
    }
}

/// The same of a unit that was in a batch.
fn in_company(outcome: &UnitOutcome) -> String {
    match outcome {
        Err(failed) => format!("{}: {}", failed.at, failed.fault.message),
        Ok(dones) => {
            let rows = |done: &WriteDone| {
                let rows = done.returned.iter().flat_map(|r| r.rows.iter());
                let line = |row: &windrow_core::Row| {
                    let cells = row.iter().map(|value| match value {
                        Value::Null => "Null".to_owned(),
                        Value::Int(n) => format!("Integer({n})"),
                        Value::Text(text) => format!("Text({:?})", text.as_bytes()),
                        other => format!("{other:?}"),
                    });
                    cells.collect::<Vec<_>>().join("|")
                };
                (done.rows, rows.map(line).collect::<Vec<_>>())
            };
            format!("{:?}", dones.iter().map(rows).collect::<Vec<_>>())
        }
    }
}

fn dump(db: &Db) -> Vec<Vec<String>> {
    let rows = |table: &&str| db.rows(&format!("SELECT * FROM {table} ORDER BY 1, 2"));
    let sequence = db.rows("SELECT * FROM sqlite_sequence ORDER BY 1");
    let found = db.rows("SELECT rowid FROM f WHERE f MATCH '1 OR 2 OR 3' ORDER BY 1");
    let tables = TABLES.iter().filter(|table| **table != "f").map(rows);
    tables.chain([sequence, found]).collect()
}

async fn batches(db: &mut Db, units: &[Unit], sizes: &[usize]) -> Vec<String> {
    let mut sizes = sizes.iter().cycle();
    let (mut rest, mut all) = (units, Vec::new());
    while !rest.is_empty() {
        let size = sizes.next().copied().unwrap_or(1).clamp(1, rest.len());
        let (batch, behind) = rest.split_at(size);
        rest = behind;
        for verdict in db.run(batch).await.verdicts {
            match verdict {
                Verdict::Final(outcome) => all.push(in_company(&outcome)),
                other => panic!("{other:?}"),
            }
        }
    }
    all
}

async fn compare(schema: String, units: Vec<Unit>, sizes: Vec<usize>) {
    let options = Options {
        synchronous: windrow_database::Synchronous::Off,
        ..Options::default()
    };
    let (mut joined, alone) = (
        Db::with(&schema, &options).await,
        Db::with(&schema, &options).await,
    );
    let together = batches(&mut joined, &units, &sizes).await;
    for (at, (unit, got)) in units.iter().zip(&together).enumerate() {
        let expected = by_itself(&alone, unit);
        // Windrow's own words may stand around those of SQLite.
        let same = *got == expected || got.contains(&expected);
        assert!(
            same,
            "unit {at}: {unit:?}\n is told {got}\n  alone  {expected}\n{schema}"
        );
    }
    assert_eq!(dump(&joined), dump(&alone), "{schema}\n{units:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn a_batch_is_its_units_one_after_another(
        schema in schema(),
        units in units(),
        sizes in proptest::collection::vec(1..40_usize, 1..4),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(compare(schema, units, sizes));
    }
}
