//! Files and tables that are not what they should be: one line says what is wrong, where, and what to do.

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

/// A file that ends in the middle of a row without quotes is a row that is too short, or too long for nobody to know.
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
