//! Rows that a database takes and makes nothing of, or that only it can refuse.

use crate::support::{Db, Said};

/// The rows `1,a` to `n,a`, and the even ones of them.
fn file(db: &Db, rows: u32) -> String {
    let text: String = (1..=rows).map(|id| format!("{id},a\n")).collect();
    db.file("rows.csv", format!("id,v\n{text}"))
}

const POSTGRES: &str = "create table t (id int primary key, v text);
    create function skips() returns trigger language plpgsql as
      $$begin if new.id % 2 = 1 then return null; end if; return new; end$$;
    create trigger skips before insert on t for each row execute function skips()";

const SQLITE: &str = "create table t (id integer primary key, v text);
    create table seen (id integer);
    create trigger skips before insert on t when new.id % 2 = 1
      begin insert into seen values (new.id); select raise(ignore); end";

fn what_a_trigger_drops_is_told(db: &Db) {
    let file = file(db, 1000);
    let ways: [&[&str]; 4] = [
        &[],
        &["--resume"],
        &["--on-conflict", "update"],
        &["--null", "NA", "--null", "", "--batch-rows", "90"],
    ];
    for (at, way) in ways.into_iter().enumerate() {
        let bad = format!("bad{at}.csv");
        let said = db.load(&[&[&*file, "-t", "t", "--rejects", &bad], way].concat());
        said.is(3, &["500 rows written, 500 refused", "(02000)"]);
        assert_eq!(
            db.exec("select count(*), sum(id % 2) from t").trim(),
            "500|0"
        );
        let rows = db.text(&bad);
        let mut ids: Vec<u32> = rows
            .lines()
            .skip(1)
            .map(|row| row.trim_end_matches(",a").parse().unwrap())
            .collect();
        ids.sort_unstable();
        let odd: Vec<u32> = (1..=1000).filter(|id| id % 2 == 1).collect();
        assert_eq!(ids, odd, "{way:?}");
        db.exec("delete from t");
    }
}

#[test]
fn postgres() {
    let db = Db::postgres();
    db.exec(POSTGRES);
    what_a_trigger_drops_is_told(&db);
}

#[test]
fn sqlite() {
    let db = Db::sqlite();
    db.exec(SQLITE);
    what_a_trigger_drops_is_told(&db);
    // What a trigger does besides is done once for each row.
    let seen = "select count(*), count(distinct id) from seen";
    assert_eq!(db.exec(seen).trim(), "2000|500");
}

/// SQLite does not count what the triggers of a view write.
#[test]
fn rows_of_a_view_are_written() {
    let db = Db::sqlite();
    db.exec(
        "create table t (id integer primary key, v text);
         create view w as select id, v from t;
         create trigger puts instead of insert on w begin insert into t values (new.id, new.v); end",
    );
    let file = file(&db, 20);
    db.load(&[&file, "-t", "w"]).is(0, &["20 rows written"]);
    assert_eq!(db.number("select count(*) from t"), 20);
}

/// A policy, a trigger and a constraint refuse one row each; the others are written.
#[test]
fn who_may_not_write_a_row_may_write_others() {
    let db = Db::postgres();
    db.exec(
        "create table t (id int primary key, v text);
         alter table t enable row level security;
         create policy few on t using (true) with check (id <> 7);
         create function guards() returns trigger language plpgsql as
           $$begin if new.id = 9 then raise insufficient_privilege; end if; return new; end$$;
         create trigger guards before insert on t for each row execute function guards()",
    );
    let name = db.exec("select current_database()");
    let role = format!("few_{}", name.trim());
    db.exec(&format!(
        "create role {role} login; grant all on t to {role}"
    ));
    let file = file(&db, 20);
    let url = db.url();
    let (scheme, rest) = url.split_once("://").unwrap();
    let (_, place) = rest.split_once('@').unwrap();
    let theirs = format!("{scheme}://{role}@{place}");
    let said = Said::of(db.command_to(&theirs, &[&file, "-t", "t"]).spawn().unwrap());
    said.is(3, &["18 rows written, 2 refused", "line 8: ", "line 10: "]);
    assert_eq!(db.exec("select count(*), sum(id) from t").trim(), "18|194");
    // Who may write nothing is told at once.
    db.exec(&format!("delete from t; revoke all on t from {role}"));
    let said = Said::of(db.command_to(&theirs, &[&file, "-t", "t"]).spawn().unwrap());
    said.is(1, &["42501"]);
}
