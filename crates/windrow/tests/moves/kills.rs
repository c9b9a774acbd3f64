//! Movers are killed at any moment: no row is lost, none is moved twice.

use windrow_testkit::postgres::PostgresDatabase;

use crate::support::{move_rows, number, postgres, sql, start, until};

/// Kills, unless the environment says otherwise.
const ROUNDS: usize = 10;

fn rounds() -> usize {
    number("WINDROW_TEST_KILLS", ROUNDS)
}

fn arrived(db: &PostgresDatabase) -> usize {
    sql(db, "select count(*) from final").parse().unwrap()
}

/// In one snapshot every row is in exactly one place.
#[track_caller]
fn none_lost_none_twice(db: &PostgresDatabase, rows: usize) {
    let counts = sql(
        db,
        "select count(*), count(distinct id) from (select id from pending union all select id from final) a",
    );
    assert_eq!(counts, format!("{rows}|{rows}"));
}

fn fill(db: &PostgresDatabase, rows: usize) {
    // No unique key in the destination: a second arrival would be seen.
    sql(db, &format!("create table pending (id int primary key, v text); create table final (id int, v text);
        insert into pending select i, repeat('x', 100) from generate_series(1, {rows}) i"));
}

#[test]
fn a_killed_mover_loses_nothing_and_doubles_nothing() {
    let (db, rounds) = (postgres(), rounds());
    let rows = 400 * rounds;
    fill(&db, rows);
    for round in 0..rounds {
        let goal = (arrived(&db) + 1 + (round * 37) % 100).min(rows);
        let mover = start(db.url(), "pending", "final", &["--batch", "10"]);
        until("rows arrive", || arrived(&db) >= goal);
        mover.kill9();
        none_lost_none_twice(&db, rows);
    }
    move_rows(db.url(), "pending", "final", &[]).ends(0);
    none_lost_none_twice(&db, rows);
    assert_eq!(arrived(&db), rows);
}

#[test]
fn two_movers_that_are_killed_in_turn_lose_nothing_and_double_nothing() {
    let (db, rounds) = (postgres(), rounds());
    let rows = 600 * rounds;
    fill(&db, rows);
    let mover = || {
        start(
            db.url(),
            "pending",
            "final",
            &["--batch", "10", "--jobs", "2"],
        )
    };
    let mut survivor = mover();
    for round in 0..rounds {
        let other = mover();
        let goal = (arrived(&db) + 1 + (round * 37) % 100).min(rows);
        until("rows arrive", || arrived(&db) >= goal);
        survivor.kill9();
        survivor = other;
        none_lost_none_twice(&db, rows);
    }
    survivor.end().ends(0);
    move_rows(db.url(), "pending", "final", &[]).ends(0);
    none_lost_none_twice(&db, rows);
    assert_eq!(arrived(&db), rows);
}

#[test]
fn across_databases_nothing_is_lost_and_nothing_doubled_either() {
    let (from, to, rounds) = (postgres(), postgres(), rounds());
    let rows = 200 * rounds;
    sql(
        &from,
        &format!(
            "create table pending (id int primary key, v text);
        insert into pending select i, repeat('x', 100) from generate_series(1, {rows}) i"
        ),
    );
    sql(&to, "create table final (id int, v text)");
    let more = ["--to", to.url(), "--batch", "10", "--jobs", "2"];
    for round in 0..rounds {
        let goal = (arrived(&to) + 1 + (round * 37) % 100).min(rows);
        let movers = [(); 2].map(|()| start(from.url(), "pending", "final", &more));
        until("rows arrive", || arrived(&to) >= goal);
        for mover in movers {
            mover.kill9();
        }
        let counts = sql(&to, "select count(*) = count(distinct id) from final");
        assert_eq!(counts, "t");
    }
    move_rows(from.url(), "pending", "final", &["--to", to.url()]).ends(0);
    assert_eq!(sql(&from, "select count(*) from pending"), "0");
    assert_eq!(
        sql(&to, "select count(*), count(distinct id) from final"),
        format!("{rows}|{rows}")
    );
    // What the dead left is cleaned up.
    assert_eq!(sql(&to, "select count(*) from windrow_moved"), "0");
    assert_eq!(sql(&from, "select count(*) from windrow_batches"), "0");
}
