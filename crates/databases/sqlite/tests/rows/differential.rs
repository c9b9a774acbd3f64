//! In batches or one by one: the same answers, the same tables.

use proptest::prelude::*;
use windrow_core::{Unit, UnitOutcome, Value, Verdict, Write};
use windrow_database::Options;

use crate::support::*;

const SCHEMA: &str = "
    CREATE TABLE parent (id INTEGER PRIMARY KEY, v TEXT);
    CREATE TABLE t (
        id INTEGER PRIMARY KEY, u INTEGER UNIQUE, must TEXT NOT NULL, n NUMERIC CHECK (n < 4), b BLOB,
        parent INTEGER REFERENCES parent ON DELETE CASCADE
    );
    CREATE TABLE firm (a INTEGER, b TEXT, v INTEGER, PRIMARY KEY (b, a)) STRICT;
    CREATE TABLE log (line TEXT);
    CREATE TRIGGER watch BEFORE INSERT ON firm WHEN new.v = 3 BEGIN
        INSERT INTO log VALUES ('seen'); SELECT RAISE(ROLLBACK, 'no 3');
    END;
    CREATE TRIGGER half AFTER INSERT ON firm WHEN new.v = 4 BEGIN
        INSERT INTO log VALUES ('kept'); SELECT RAISE(FAIL, 'half');
    END;";

const TABLES: [&str; 4] = ["parent", "t", "firm", "log"];

fn small() -> impl Strategy<Value = Value> {
    (0..6_i64).prop_map(Value::from)
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        6 => small(),
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(number("1.5")),
        1 => Just(number("9007199254740993.5")),
        1 => "[a-c]{0,2}".prop_map(Value::from),
        1 => Just(Value::from("aGk=")),
        1 => Just(json("[1]")),
        1 => Just(Value::Bytes([7].into())),
    ]
}

fn pick(make: Make, how: u8) -> Make {
    match how % 3 {
        0 => make,
        1 => make.ignore(),
        _ => make.upsert(),
    }
}

fn write() -> impl Strategy<Value = Write> {
    let parent = (small(), any_value(), any::<u8>()).prop_map(|(id, v, how)| {
        pick(insert("parent", &["id", "v"]), how)
            .all()
            .write([id, v])
    });
    let t = (
        small(),
        any_value(),
        any_value(),
        any_value(),
        any_value(),
        any::<u8>(),
    )
        .prop_map(|(id, u, must, n, parent, how)| {
            let make = insert("t", &["id", "u", "must", "n", "parent"]);
            pick(make, how).write([id, u, must, n, parent])
        });
    let by_u = (small(), any_value()).prop_map(|(u, b)| {
        let make = insert("t", &["u", "b", "must"]).key(&["u"]).upsert();
        make.returning(&["id", "b"]).write([u, b, "m".into()])
    });
    let firm = (small(), any_value(), any_value(), any::<u8>())
        .prop_map(|(a, b, v, how)| pick(insert("firm", &["a", "b", "v"]), how).write([a, b, v]));
    let change = (any_value(), small())
        .prop_map(|(v, id)| update("t", &["n"]).returning(&["id", "n"]).write([v, id]));
    let change_firm = (any_value(), small(), small())
        .prop_map(|(v, b, a)| update("firm", &["v"]).write([v, b, a]));
    let rest = prop_oneof![
        small().prop_map(|id| delete("parent").write([id])),
        any_value().prop_map(|id| delete("t").all().write([id])),
        any_value().prop_map(|id| get("t").write([id])),
        Just(delete("firm").write([1.into()])),
        Just(insert("nowhere", &["a"]).write([1.into()])),
        Just(insert("t", &["nope"]).write([1.into()])),
    ];
    prop_oneof![parent, t, by_u, firm, change, change_firm, rest]
}

fn unit() -> impl Strategy<Value = Unit> {
    prop_oneof![
        5 => write().prop_map(Unit::one),
        1 => proptest::collection::vec(write(), 0..4).prop_map(Unit::of),
    ]
}

/// Runs the units in batches of these sizes, again and again, and gives back all outcomes and all
/// tables.
async fn run(
    schema: &str,
    options: &Options,
    units: &[Unit],
    sizes: &[usize],
    tables: &[&str],
) -> (Vec<UnitOutcome>, Vec<Vec<String>>) {
    let mut db = Db::with(schema, options).await;
    let mut outcomes = Vec::new();
    let mut sizes = sizes.iter().cycle();
    let mut rest = units;
    while !rest.is_empty() {
        let size = sizes.next().copied().unwrap_or(1).clamp(1, rest.len());
        let (batch, behind) = rest.split_at(size);
        rest = behind;
        for verdict in db.run(batch).await.verdicts {
            match verdict {
                Verdict::Final(outcome) => outcomes.push(outcome),
                other => panic!("{other:?}"),
            }
        }
    }
    let dump = |table: &&str| db.rows(&format!("SELECT * FROM \"{table}\" ORDER BY rowid"));
    (outcomes, tables.iter().map(dump).collect())
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

fn fast() -> Options {
    Options {
        synchronous: windrow_database::Synchronous::Off,
        ..Options::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn batches_answer_as_single_writes(
        units in proptest::collection::vec(unit(), 1..60),
        sizes in proptest::collection::vec(1..30_usize, 1..5),
    ) {
        let options = fast();
        let alone = block_on(run(SCHEMA, &options, &units, &[1], &TABLES));
        let together = block_on(run(SCHEMA, &options, &units, &sizes, &TABLES));
        prop_assert_eq!(alone, together);
    }
}

/// Rows for tables that do not exist yet. Columns of one kind each, NULL among them, so that a
/// table has the same columns whether its rows come together or one by one.
fn rows() -> impl Strategy<Value = Vec<(usize, i64, bool, u8)>> {
    proptest::collection::vec((0..3_usize, 0..8_i64, any::<bool>(), 0..6_u8), 1..40)
}

fn made(rows: &[(usize, i64, bool, u8)]) -> Vec<Unit> {
    let unit = |(table, id, with, how): &(usize, i64, bool, u8)| {
        let name = format!("t{table}");
        let (id, v) = (Value::from(*id), Value::from(id * 10));
        let null = if *with { "text".into() } else { Value::Null };
        match how {
            0 => insert(&name, &["id", "v", "w"]).unit([id, v, null]),
            1 => insert(&name, &["v", "id"]).upsert().unit([v, id]),
            2 => insert(&name, &["id", "w"]).ignore().unit([id, null]),
            3 => update(&name, &["v"]).unit([v, id]),
            4 => delete(&name).returning(&["id"]).unit([id]),
            _ => get(&name).returning(&["id"]).unit([id]),
        }
    };
    rows.iter().map(unit).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn tables_made_from_batches_hold_the_same(
        rows in rows(),
        sizes in proptest::collection::vec(1..20_usize, 1..4),
    ) {
        let options = Options { create_tables: true, ..fast() };
        let units = made(&rows);
        // All tables are there in the end, with all columns, to be compared.
        let all = (0..3).map(|t| insert(&format!("t{t}"), &["id", "v", "w"]).unit([99.into(), 1.into(), "w".into()]));
        let units: Vec<Unit> = units.into_iter().chain(all).collect();
        let names = ["t0", "t1", "t2"];
        let run = |sizes: Vec<usize>| {
            let (units, options) = (&units, &options);
            block_on(async move {
                let (outcomes, mut tables) = run("", options, units, &sizes, &names).await;
                for table in &mut tables {
                    // The columns may have come in another order.
                    for row in table.iter_mut() {
                        let mut cells: Vec<_> = row.split('|').map(str::to_owned).collect();
                        cells.sort();
                        *row = cells.join("|");
                    }
                }
                (brief(&outcomes), tables)
            })
        };
        prop_assert_eq!(run(vec![1]), run(sizes));
    }
}
