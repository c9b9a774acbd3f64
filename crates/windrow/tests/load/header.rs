//! Headers as programs write them.

use crate::support::Db;

fn made(db: &Db, columns: &str) {
    let long = "é".repeat(40);
    let text = format!(",{long}a,{long}b,x,,\n7,1,2,3,,\n8,4,5,6,\n9,7,8,9\n");
    let file = db.file("h.csv", text);
    let said = db.load(&[&file, "-t", "h", "--create"]);
    said.is(0, &["3 rows written"]);
    let cut = "é".repeat(31);
    let shorter = "é".repeat(30);
    assert_eq!(
        db.exec(columns).lines().collect::<Vec<_>>(),
        ["column1", &cut, &format!("{shorter}_1"), "x"]
    );
    // The same names are found again.
    let file = db.file("more.csv", format!("{long}b,x,column1\n50,60,10\n"));
    db.load(&[&file, "-t", "h"]).is(0, &["1 rows written"]);
    assert_eq!(db.number("select x from h where column1 = 10"), 60);
}

#[test]
fn postgres() {
    made(
        &Db::postgres(),
        "select attname from pg_attribute where attrelid = 'h'::regclass and attnum > 0 order by attnum",
    );
}

#[test]
fn mariadb() {
    made(
        &Db::mariadb(),
        "select column_name from information_schema.columns where table_schema = database() and table_name = 'h' \
         order by ordinal_position",
    );
}

#[test]
fn sqlite() {
    made(&Db::sqlite(), "select name from pragma_table_info('h')");
}

#[test]
fn a_value_behind_the_last_name_is_refused() {
    let db = Db::sqlite();
    let file = db.file("h.csv", "a,b,\n1,2,\n3,4,5\n6,7\n");
    let said = db.load(&[&file, "-t", "h", "--create"]);
    said.is(
        3,
        &[
            "2 rows written, 1 refused",
            "line 3: ",
            "behind the last column",
        ],
    );
}

#[test]
fn another_delimiter_is_told() {
    let db = Db::sqlite();
    for (name, text, option) in [
        ("s.csv", "a;b;c\n1;2;3\n", "--delimiter ';'"),
        ("t.csv", "a\tb\n1\t2\n", "--delimiter '\\t'"),
        ("p.csv", "a|b\n1|2\n", "--delimiter '|'"),
    ] {
        let file = db.file(name, text);
        let said = db.load(&[&file, "-t", "d", "--create"]);
        said.is(1, &[name, option]);
    }
    let file = db.file("s.csv", "a;b\nx;y\n");
    db.load(&[&file, "-t", "d", "--create", "--delimiter", ","])
        .is(0, &["1 rows written"]);
    assert_eq!(db.exec("select \"a;b\" from d").trim(), "x;y");
}

#[test]
fn a_byte_order_mark_may_stand_before_objects() {
    let db = Db::sqlite();
    let mark = |text: &str| [&b"\xef\xbb\xbf"[..], text.as_bytes()].concat();
    let wide: Vec<u8> = "\u{feff}{\"a\":3}\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let joined = [mark("{\"a\":4}\n"), mark("{\"a\":5}\n")].concat();
    for (name, text, count) in [
        ("b.json", mark("{\"a\":1}\n"), 1),
        ("none", mark("{\"a\":2}\n"), 1),
        ("wide", wide, 1),
        ("joined.ndjson", joined, 2),
    ] {
        let file = db.file(name, text);
        let said = db.load(&[&file, "-t", "b", "--create"]);
        said.is(0, &[&format!("{count} rows written")]);
    }
    assert_eq!(db.number("select sum(a) from b"), 15);
}
