//! Tables that are made from what is in a file.

use crate::support::Db;

/// Numbers, and among the first of them what only looks like one: nothing of it is lost. Far behind
/// them it is refused, for a column keeps its type.
fn zip_codes(db: &Db) {
    let numbers: String = (0..90).map(|n| format!("{},10115\n", n + 1)).collect();
    let file = db.file("zip.csv", format!("id,zip\n91,01067\n92,+1\n{numbers}"));
    db.load(&[&file, "-t", "zips", "--create"]).is(
        0,
        &[
            "92 rows written",
            "columns made from the rows: id ",
            "int",
            ", zip text",
            "column zip holds text and not numbers: ",
            "line 2 has \"01067\"",
        ],
    );
    assert_eq!(
        db.exec("select id, zip from zips where id > 89 order by id")
            .trim_end(),
        "90|10115\n91|01067\n92|+1"
    );
    // The same where the bulk form has the word.
    let numbers: String = (0..60_000).map(|n| format!("{n},10115\n")).collect();
    let file = db.file("zip.csv", format!("id,zip\n{numbers}60000,01067\n"));
    for way in [&["--batch-rows", "700"][..], &[]] {
        db.exec("drop table zips");
        let arguments = [&[&*file, "-t", "zips", "--create"], way].concat();
        let said = ["60000 rows written, 1 refused", "line 60002", "\"01067\""];
        db.load(&arguments).is(3, &said);
        assert_eq!(db.number("select count(*) from zips"), 60_000);
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

/// Dates and times become columns of dates and times, if all texts of a column are; a later text
/// that is none is refused.
fn dates_and_times(db: &Db, types: &str) {
    let row = |n: usize| {
        let day = n % 28 + 1;
        format!(
            "{n},2024-02-{day:02},2024-02-{day:02}T10:00:00.5,2024-02-{day:02} 10:00:00+02:00,10:00:{:02},2024-02-{day:02}\n",
            n % 60
        )
    };
    let (first, rows) = (row(1), (2..=60).map(row).collect::<String>());
    let header = "id,day,at,zoned,clock,some\n";
    let file = db.file("t.csv", format!("{header}{first}61,,,,,n/a\n{rows}"));
    let said = db.load(&[&file, "-t", "times", "--create"]);
    said.is(
        0,
        &[
            "61 rows written",
            types,
            "column some holds text and not dates and times: ",
            "line 3 has \"n/a\"",
        ],
    );
    assert_eq!(
        db.number("select count(*) from times where day = '2024-02-10'"),
        2
    );
    let all = "select count(*) from times where at < '2024-03-01' and zoned < '2024-03-01' and clock = '10:00:07'";
    assert_eq!(db.number(all), 1);
    // Objects of another file say the same.
    let line = |n: usize| format!("{{\"id\":{n},\"day\":\"2024-03-01\",\"clock\":\"23:59:59\"}}\n");
    let more: String = (101..=102).map(line).collect();
    let file = db.file("t.ndjson", more);
    db.load(&[&file, "-t", "times"]).is(0, &["2 rows written"]);
    let file = db.file("odd.csv", "id,day\n200,2024-03-02\n201,soon\n");
    db.load(&[&file, "-t", "times", "--create"])
        .is(3, &["1 rows written, 1 refused", "\"soon\""]);
    let days = "select day from times where id in (1, 101, 200, 201) order by id";
    assert_eq!(
        db.exec(days).trim_end(),
        "2024-02-02\n2024-03-01\n2024-03-02"
    );
}

#[test]
fn dates_and_times_postgres() {
    dates_and_times(
        &Db::postgres(),
        "id bigint, day date, at timestamp without time zone, zoned timestamp with time zone, clock time without time zone, some text",
    );
}

#[test]
fn dates_and_times_mariadb() {
    dates_and_times(
        &Db::mariadb(),
        "id bigint, day date, at datetime, zoned datetime, clock time, some text",
    );
}

#[test]
fn dates_and_times_sqlite() {
    dates_and_times(
        &Db::sqlite(),
        "id integer, day date, at timestamp, zoned timestamptz, clock time, some text",
    );
}

/// Columns without a value are there, whatever comes first, and nothing goes row by row for them.
#[test]
fn columns_without_a_value_sqlite() {
    let db = Db::sqlite();
    let rows: String = (1..=3000).map(|id| format!("{id},\n")).collect();
    let file = db.file("n.csv", format!("id,state\n{rows}"));
    for _ in 0..2 {
        let said = db.load(&[&file, "-t", "n", "--create", "--batch-rows", "1000"]);
        said.is(0, &["3000 rows written", "one statement, many rows"]);
        assert_eq!(
            db.number("select count(*) from n where state is null"),
            3000
        );
        db.exec("delete from n");
    }
    let file = db.file("more.csv", "id,state,other\n1,5,\n2,x,\n");
    db.load(&[&file, "-t", "n", "--create"])
        .is(0, &["2 rows written"]);
    assert_eq!(
        db.exec("select typeof(state), state, other is null from n order by id")
            .trim_end(),
        "integer|5|1\ntext|x|1"
    );
    let file = db.file(
        "first.ndjson",
        "{\"a\":null,\"b\":null}\n{\"a\":1,\"b\":\"x\"}\n",
    );
    db.load(&[&file, "-t", "first", "--create"])
        .is(0, &["2 rows written"]);
    assert_eq!(db.exec("select a, b from first where a = 1").trim(), "1|x");
}
