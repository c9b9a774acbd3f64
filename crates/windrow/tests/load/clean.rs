//! Clean files come in whole, whatever the way.

use std::io::Write;

use crate::support::{Db, READINGS, readings};

const ROWS: u64 = 25_000;

fn every_row_comes(db: &Db) {
    db.exec(READINGS);
    let file = db.file("readings.csv", readings(ROWS));
    let said = db.load(&[&file, "--table", "readings"]);
    said.is(0, &["25000 rows written; 1 file,", "rows/s"]);
    db.holds(1..=ROWS);
    // In small portions, by several connections.
    db.exec("delete from readings");
    let said = db.load(&[
        &file,
        "-t",
        "readings",
        "--jobs",
        "2",
        "--batch-rows",
        "700",
    ]);
    said.is(0, &["25000 rows written"]);
    db.holds(1..=ROWS);
}

fn packed_piped_and_renamed(db: &Db) {
    db.exec("delete from readings");
    let text = readings(3000);
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(text.as_bytes()).unwrap();
    let file = db.file("readings.csv.gz", packer.finish().unwrap());
    db.load(&[&file, "-t", "readings"]).is(0, &["3000 rows"]);
    db.holds(1..=3000);
    db.exec("delete from readings");
    db.load_stdin(&["-", "-t", "readings"], text.as_bytes())
        .is(0, &["3000 rows"]);
    db.holds(1..=3000);
    db.exec("delete from readings");
    let (header, rows) = text.split_once('\n').unwrap();
    assert_eq!(header, "id,station,level,note,at");
    let other = db.file("other.csv", format!("nr,station,level,note,when\n{rows}"));
    db.load(&[
        &other,
        "-t",
        "readings",
        "--columns",
        "nr=id,station,level,note,when=at",
    ])
    .is(0, &["3000 rows"]);
    db.holds(1..=3000);
    db.exec("delete from readings");
    let headless = db.file("headless.csv", rows);
    db.load(&[&headless, "-t", "readings", "--no-header"])
        .is(0, &["3000 rows"]);
    db.holds(1..=3000);
}

fn several_files(db: &Db) {
    db.exec("delete from readings");
    let text = readings(4000);
    let header = "id,station,level,note,at\n";
    let cut = text.find("\n2001,").unwrap() + 1;
    let first = db.file("first.csv", &text[..cut]);
    let second = db.file("second.csv", format!("{header}{}", &text[cut..]));
    db.load(&[&first, &second, "-t", "readings"])
        .is(0, &["4000 rows written; 2 files"]);
    db.holds(1..=4000);
}

fn all(db: &Db) {
    every_row_comes(db);
    packed_piped_and_renamed(db);
    several_files(db);
}

#[test]
fn sqlite() {
    all(&Db::sqlite());
}

#[test]
fn postgres() {
    all(&Db::postgres());
}

#[test]
fn mariadb() {
    all(&Db::mariadb());
}

#[test]
fn ndjson_keeps_its_types() {
    let db = Db::sqlite();
    db.exec("create table t (id integer primary key, x real, s text, j text)");
    let file = db.file(
        "t.ndjson",
        "{\"id\":1,\"x\":1.5,\"s\":\"a\",\"j\":[1,2]}\n{\"id\":2,\"s\":\"007\",\"x\":null,\"j\":{\"k\":true}}\n",
    );
    db.load(&[&file, "-t", "t"]).is(0, &["2 rows"]);
    assert_eq!(
        db.exec("select * from t order by id"),
        "1|1.5|a|[1,2]\n2||007|{\"k\":true}\n"
    );
}
