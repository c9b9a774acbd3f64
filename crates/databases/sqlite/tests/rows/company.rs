//! Writes that could tell that they share a transaction have their own.

use windrow_core::{Level, Rung, Unit};

use crate::support::*;

const SCHEMA: &str = "
    CREATE TABLE parent (id INTEGER PRIMARY KEY);
    CREATE TABLE late (
        id INTEGER PRIMARY KEY,
        parent INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED
    );
    CREATE TABLE plain (id INTEGER PRIMARY KEY, v TEXT);
    CREATE TABLE told (
        id INTEGER PRIMARY KEY, last DEFAULT (last_insert_rowid()), n DEFAULT (changes()), all_of_them DEFAULT (total_changes())
    );
    CREATE TABLE heard (id INTEGER PRIMARY KEY);
    CREATE TRIGGER hear AFTER INSERT ON heard BEGIN INSERT INTO told (id) VALUES (last_insert_rowid()); END;";

#[tokio::test]
async fn nobody_heals_what_another_has_violated() {
    let mut db = Db::new(SCHEMA).await;
    let late = insert("late", &["id", "parent"]);
    let parent = insert("parent", &["id"]);
    let plain = insert("plain", &["id"]);
    let units = [
        plain.unit([1.into()]),
        late.unit([1.into(), 5.into()]),
        parent.unit([5.into()]),
        late.unit([2.into(), 5.into()]),
        delete("parent").unit([5.into()]),
        delete("late").unit([2.into()]),
        Unit::of([late.write([3.into(), 6.into()]), parent.write([6.into()])]),
        plain.unit([2.into()]),
        plain.unit([3.into()]),
    ];
    let report = db.run(&units).await;
    // Two transactions of rows that share one, and one for each of the four that went well apart.
    assert_eq!(report.tally.commits, 6);
    assert_eq!(report.tally.rungs[Rung::Solo as usize], 3);
    let mut again = Db::new(SCHEMA).await;
    let told = again.outcomes(&units).await;
    assert_eq!(
        brief(&told),
        [
            "[1]", "23503@0", "[1]", "[1]", "23503@0", "[1]", "[1, 1]", "[1]", "[1]"
        ]
    );
    for db in [&db, &again] {
        assert_eq!(db.rows("SELECT id FROM late"), ["3"]);
        assert_eq!(db.rows("SELECT id FROM parent"), ["5", "6"]);
        assert_eq!(db.rows("SELECT id FROM plain"), ["1", "2", "3"]);
    }
}

#[tokio::test]
async fn nobody_meets_what_another_has_left_on_the_connection() {
    let mut db = Db::new(SCHEMA).await;
    let units = [
        insert("plain", &["id"]).unit([40.into()]),
        insert("told", &["id"]).unit([1.into()]),
        insert("heard", &["id"]).unit([7.into()]),
        insert("told", &["id"]).unit([7.into()]),
        insert("told", &["id"]).unit([8.into()]),
    ];
    let told = db.outcomes(&units).await;
    assert_eq!(brief(&told), ["[1]", "[1]", "[1]", "23505@0", "[1]"]);
    let rows = db.rows("SELECT * FROM told");
    assert_eq!(rows, ["1|0|0|0", "7|7|0|0", "8|0|0|0"]);
}

#[tokio::test]
async fn operators_are_told_what_stands_in_the_way() {
    let mut db = Db::new(SCHEMA).await;
    assert_eq!(db.sink.standings(), []);
    db.outcomes(&[
        insert("plain", &["id"]).unit([1.into()]),
        insert("Parent", &["id"]).unit([1.into()]),
        insert("main.heard", &["id"]).unit([1.into()]),
        insert("nowhere", &["id"]).unit([1.into()]),
    ])
    .await;
    let said: Vec<_> = db
        .sink
        .standings()
        .into_iter()
        .map(|standing| {
            let object = standing
                .why
                .as_ref()
                .map_or("", |why| &why.object)
                .to_owned();
            (standing.table.to_string(), standing.level, object)
        })
        .collect();
    let expected = [
        ("Parent", Level::Apart, "table late"),
        ("plain", Level::Grouped, ""),
        (
            "main.heard",
            Level::Apart,
            "last_insert_rowid() in table told",
        ),
    ];
    let expected =
        expected.map(|(table, level, object)| (table.to_owned(), level, object.to_owned()));
    assert_eq!(said, expected);
    // Whoever takes the obstacle away is believed at once.
    db.look().execute_batch("DROP TABLE late").unwrap();
    db.outcomes(&[insert("parent", &["id"]).unit([2.into()])])
        .await;
    let standings = db.sink.standings();
    assert_eq!((standings.len(), standings[0].level), (1, Level::Grouped));
}
