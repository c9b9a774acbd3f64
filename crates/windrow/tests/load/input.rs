//! Files and tables that are not what they should be: one line says what is wrong, where, and what
//! to do.

use crate::support::{Db, READINGS, readings};

#[test]
fn what_cannot_be_loaded_is_told() {
    let db = Db::sqlite();
    db.exec(READINGS);
    db.exec("create table keyless (id int, station text)");
    let good = db.file("good.csv", readings(10));
    let empty = db.file("empty.csv", "");
    let folder = db.folder.path().to_str().unwrap();
    let unknown = db.file("unknown.csv", "id,station,levle\n1,S,2\n");
    let zip = db.file("data.zip", b"PK\x03\x04 and so on");
    let keyless = db.file("keyless.csv", "id,station\n1,a\n");
    let headless = db.file("headless.csv", "1,a,2\n");
    let table = ["-t", "readings"];
    let cases: [(&[&str], &[&str]); 12] = [
        (&["missing.csv"], &["missing.csv", "No such file"]),
        (&[&empty], &["empty.csv", "empty"]),
        (&[folder], &["folder"]),
        (&[&zip], &["data.zip", "zip archive"]),
        (
            &[&unknown],
            &["unknown.csv", "\"levle\"", "\"level\"", "--columns"],
        ),
        (
            &[&good, "--columns", "id,nothing"],
            &["the file has no column \"nothing\""],
        ),
        (&[&headless, "--no-header"], &["no header", "--columns"]),
        (&["-", "--resume"], &["standard input", "--resume-as"]),
        (&[&good, "--rejects", "no/folder.csv"], &["no/folder.csv"]),
        (
            &[&good, "--delimiter", "\"", "--quote", "\""],
            &["delimiter"],
        ),
        (&[&good, &empty, "--resume-as", "x"], &["one file"]),
        (&[&good, "--encoding", "utf-99"], &["utf-99"]),
    ];
    for (arguments, words) in cases {
        let said = db.load(&[arguments, &table].concat());
        said.is(1, words);
        assert_eq!(said.text.lines().count(), 1, "{}", said.text);
    }
    db.load(&[&good, "-t", "nowhere"])
        .is(1, &["no table nowhere", "--create"]);
    db.load(&[
        &keyless,
        "-t",
        "keyless",
        "--on-conflict",
        "ignore",
        "--key",
        "id",
    ])
    .is(1, &["keyless.csv, line"]);
    assert_eq!(db.number("select count(*) from keyless"), 0);
    db.load(&[&good, "-t", "readings"])
        .is(0, &["10 rows written"]);
    assert_eq!(db.load(&["x.csv", "--no-such-option"]).code, Some(2));
}

/// What was read before the end of a file that is cut stays, and the place is told.
#[test]
fn a_cut_file_is_told_with_its_line() {
    let db = Db::sqlite();
    db.exec(READINGS);
    let text = readings(3);
    assert!(text.ends_with('\n') && text.contains("3,S3,111,\"two\nlines\""));
    let cut = text.find("two\nlines").unwrap() + 3;
    let file = db.file("cut.csv", &text[..cut]);
    let said = db.load(&[&file, "-t", "readings"]);
    said.is(
        1,
        &[
            "cut.csv, line 4",
            "ends inside of a quoted field",
            "2 rows were written before",
        ],
    );
    db.holds(1..=2);
}

#[test]
fn a_damaged_archive_is_told() {
    use std::io::Write;
    let db = Db::sqlite();
    db.exec(READINGS);
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    packer.write_all(readings(20_000).as_bytes()).unwrap();
    let bytes = packer.finish().unwrap();
    let file = db.file("cut.csv.gz", &bytes[..bytes.len() / 2]);
    db.load(&[&file, "-t", "readings"])
        .is(1, &["cut.csv.gz", "cut off"]);
}

/// A file that ends in the middle of a row without quotes is a row that is too short, or too long
/// for nobody to know.
#[test]
fn a_row_that_is_cut_is_refused() {
    let db = Db::sqlite();
    db.exec(READINGS);
    let file = db.file("cut.csv", "id,station,level\n1,S,1\n2,S");
    let said = db.load(&[&file, "-t", "readings"]);
    said.is(
        3,
        &["cut.csv, line 3: ", "fields", "1 rows written, 1 refused"],
    );
}

/// What does not fit is told before anything is written.
#[test]
fn all_files_are_looked_at_before_the_first_is_loaded() {
    let db = Db::sqlite();
    db.exec(READINGS);
    let good = db.file("good.csv", readings(10));
    let other = db.file("other.csv", "id,station,levle\n11,S,2\n");
    db.load(&[&good, &other, "-t", "readings"])
        .is(1, &["other.csv", "\"levle\""]);
    let fewer = db.file("fewer.csv", "id,station\n11,S\n");
    let said = db.load(&[&good, &fewer, "-t", "readings", "--rejects", "bad.csv"]);
    said.is(1, &["fewer.csv", "another header"]);
    assert_eq!(db.number("select count(*) from readings"), 0);
    db.load(&[&good, &fewer, "-t", "readings"])
        .is(0, &["11 rows written; 2 files"]);
}

/// Columns whose values the database makes.
#[test]
fn generated_columns_are_told_as_what_they_are() {
    let tables = [
        (
            Db::sqlite(),
            "create table g (id int, twice int as (id * 2) stored)",
        ),
        (
            Db::postgres(),
            "create table g (id int, twice int generated always as (id * 2) stored)",
        ),
        (
            Db::mariadb(),
            "create table g (id int, twice int as (id * 2) stored)",
        ),
    ];
    for (db, table) in tables {
        db.exec(table);
        let file = db.file("g.csv", "id,twice\n1,2\n");
        let said = db.load(&[&file, "-t", "g"]);
        said.is(1, &["makes the values", "\"twice\"", "--columns"]);
        db.load(&[&file, "-t", "g", "--columns", "id"])
            .is(0, &["1 rows written"]);
    }
}

/// Binary data is base64, or hexadecimal as PostgreSQL writes it.
#[test]
fn binary_data_is_read_alike_everywhere() {
    for (db, kind, hex) in [
        (Db::sqlite(), "blob", "hex(b)"),
        (Db::postgres(), "bytea", "upper(encode(b, 'hex'))"),
        (Db::mariadb(), "blob", "hex(b)"),
    ] {
        db.exec(&format!("create table b (id int, b {kind})"));
        let file = db.file(
            "b.csv",
            "id,b\n1,AP8=\n2,\\x00fF\n3,\n4,\\x\n5,no!\n6,\\x0\n",
        );
        let said = db.load(&[&file, "-t", "b"]);
        said.is(3, &["4 rows written, 2 refused", "line 6: ", "line 7: "]);
        let sql =
            format!("select id, case when b is null then 'NULL' else {hex} end from b order by id");
        assert_eq!(db.exec(&sql).trim_end(), "1|00FF\n2|00FF\n3|NULL\n4|");
    }
}

#[test]
fn empty_lines_are_told() {
    let db = Db::sqlite();
    db.exec(READINGS);
    let file = db.file("e.csv", "id,station\n1,S\n\n2,S\n\n");
    let said = db.load(&[&file, "-t", "readings"]);
    said.is(
        0,
        &[
            "2 rows written",
            "e.csv, line 3: 2 empty lines were passed over",
        ],
    );
}

/// The words that PostgreSQL reads, and writes, for true and false.
#[test]
fn words_for_true_and_false_are_read_alike_everywhere() {
    for db in [Db::sqlite(), Db::postgres(), Db::mariadb()] {
        db.exec("create table b (id int, b boolean)");
        let file = db.file("b.csv", "id,b\n1,true\n2,False\n3,\"t\"\n4,f\n5,\n");
        for way in [&[][..], &["--batch-rows", "1"]] {
            db.exec("delete from b");
            db.load(&[&[&*file, "-t", "b"], way].concat())
                .is(0, &["5 rows written"]);
            let sql = "select id, case when b then 'y' when not b then 'n' else 'NULL' end from b order by id";
            assert_eq!(db.exec(sql).trim_end(), "1|y\n2|n\n3|y\n4|n\n5|NULL");
        }
    }
}
