//! Tables that are made from what is in a file.

use crate::support::Db;

/// Numbers, and behind them what only looks like one: nothing of it is lost.
fn zip_codes(db: &Db) {
    let numbers: String = (0..90).map(|n| format!("{},10115\n", n + 1)).collect();
    let file = db.file("zip.csv", format!("id,zip\n{numbers}91,01067\n92,+1\n"));
    db.load(&[&file, "-t", "zips", "--create"]).is(
        0,
        &[
            "92 rows written",
            "columns made from the rows: id ",
            "int",
            ", zip text",
            "column zip holds text and not numbers: ",
            "line 92 has \"01067\"",
        ],
    );
    assert_eq!(
        db.exec("select id, zip from zips where id > 89 order by id")
            .trim_end(),
        "90|10115\n91|01067\n92|+1"
    );
    // The same where the bulk form has the word.
    let numbers: String = (0..30_000).map(|n| format!("{n},10115\n")).collect();
    let file = db.file("zip.csv", format!("id,zip\n{numbers}30000,01067\n"));
    for way in [&["--batch-rows", "700"][..], &[]] {
        db.exec("drop table zips");
        let arguments = [&[&*file, "-t", "zips", "--create"], way].concat();
        db.load(&arguments).is(0, &["30001 rows written"]);
        let last = "select zip from zips where id = 30000";
        assert_eq!(db.exec(last).trim(), "01067", "{way:?}");
        assert_eq!(db.number("select count(*) from zips"), 30_001);
    }
}

/// A word for "no value" among numbers is named, and what to do.
fn words_for_nothing(db: &Db) {
    let file = db.file("na.csv", "id,level,note\n1,5,a\n2,NA,NA\n3,7,b\n");
    let said = db.load(&[&file, "-t", "levels", "--create"]);
    said.is(
        0,
        &["level text", "line 3 has \"NA\"", "--null 'NA' --null ''"],
    );
    assert!(!said.text.contains("column note"), "{}", said.text);
    db.exec("drop table levels");
    let said = db.load(&[&file, "-t", "levels", "--create", "--null", "NA"]);
    said.is(0, &["3 rows written", "level ", "int"]);
    assert!(!said.text.contains("holds text"), "{}", said.text);
    assert_eq!(db.number("select sum(level) from levels"), 12);
    // Where nothing is made, nothing is told.
    db.exec("delete from levels");
    let said = db.load(&[&file, "-t", "levels", "--create", "--null", "NA"]);
    assert!(!said.text.contains("columns made"), "{}", said.text);
}

#[test]
fn words_for_nothing_postgres() {
    words_for_nothing(&Db::postgres());
}

#[test]
fn words_for_nothing_mariadb() {
    words_for_nothing(&Db::mariadb());
}

#[test]
fn words_for_nothing_sqlite() {
    words_for_nothing(&Db::sqlite());
}

#[test]
fn zip_codes_postgres() {
    zip_codes(&Db::postgres());
}

#[test]
fn zip_codes_mariadb() {
    zip_codes(&Db::mariadb());
}

#[test]
fn zip_codes_sqlite() {
    zip_codes(&Db::sqlite());
}
