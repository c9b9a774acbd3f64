//! Keys that are there already, tables that are not.

use crate::support::{Db, READINGS, readings};

fn conflicts(db: &Db) {
    db.exec(READINGS);
    db.exec(
        "insert into readings values (2, 'old', 1, 'old', 'old'), (9000, 'old', 1, 'old', 'old')",
    );
    let file = db.file("readings.csv", readings(3000));
    let base = [&*file, "-t", "readings", "--on-conflict"];
    let said = db.load(&[&base[..], &["ignore"]].concat());
    said.is(0, &["2999 rows written, 1 left out"]);
    assert_eq!(
        db.exec("select station from readings where id = 2").trim(),
        "old"
    );
    let said = db.load(&[&base[..], &["ignore", "--key", "id"]].concat());
    said.is(0, &["0 rows written, 3000 left out"]);
    db.load(&[&base[..], &["update"]].concat())
        .is(0, &["3000 rows written"]);
    assert_eq!(
        db.exec("select station from readings where id = 2").trim(),
        "S2"
    );
    db.exec("delete from readings where id = 9000");
    db.holds(1..=3000);
    let said = db.load(&[&base[..], &["error"]].concat());
    said.is(3, &["0 rows written, 3000 refused"]);
    db.holds(1..=3000);
    // Several versions of a row in one file: the last one stays.
    let file = db.file("versions.csv", "id,station\n7,one\n8,x\n7,two\n7,three\n");
    db.load(&[&file, "-t", "readings", "--on-conflict", "update"])
        .is(0, &["4 rows written"]);
    assert_eq!(
        db.exec("select station from readings where id = 7").trim(),
        "three"
    );
}

fn creates(db: &Db) {
    let mut text = readings(5000);
    text = text.replace("id,station", "nr,station");
    let file = db.file("new.csv", text);
    let said = db.load(&[&file, "-t", "made", "--create", "--batch-rows", "1000"]);
    said.is(0, &["5000 rows written"]);
    let sum = db.exec("select count(*), sum(nr), sum(level) from made");
    let levels: u64 = (1..=5000_u64).map(|id| id * 37 % 1000).sum();
    assert_eq!(sum.trim(), format!("5000|12502500|{levels}"));
    // A column that is new, and a value that its column does not keep.
    let more = "nr,station,level,extra\n5001,S,12,x\n5002,S,12.5,x\n";
    let more = db.file("more.csv", more);
    db.load(&[&more, "-t", "made", "--create"])
        .is(3, &["1 rows written, 1 refused"]);
    let wide = "select count(*) from made where nr > 5000 and level = 12 and extra = 'x'";
    assert_eq!(db.number(wide), 1);
}

#[test]
fn sqlite() {
    let db = Db::sqlite();
    conflicts(&db);
    creates(&db);
}

#[test]
fn postgres() {
    let db = Db::postgres();
    conflicts(&db);
    creates(&db);
}

#[test]
fn mariadb() {
    let db = Db::mariadb();
    conflicts(&db);
    creates(&db);
}
