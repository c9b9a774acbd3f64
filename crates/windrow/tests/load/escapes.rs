//! Files in which a backslash takes the meaning from the character behind it, and files that look
//! so.

use crate::support::Db;

/// A table of a number and two texts, and what a load of a file into it says and leaves there.
fn loaded(db: &Db, file: &str, options: &[&str], words: &[&str]) -> Vec<String> {
    db.exec("create table e (id int primary key, a varchar(100), b varchar(100))");
    db.load(&[&[file, "-t", "e"], options].concat())
        .is(0, words);
    let a = "coalesce(replace(replace(a, '\t', '<T>'), '\n', '<N>'), 'NULL')";
    let rows = db.exec(&format!(
        "select id, {a}, {} from e order by id",
        a.replace("(a,", "(b,")
    ));
    db.exec("drop table e");
    rows.lines().map(str::to_owned).collect()
}

/// As `COPY .. TO` and `mysqldump --tab` write it.
fn text_format(db: &Db) {
    let file = db.file(
        "t.txt",
        "1\ta\\tb\t\\N\n2\tC:\\\\new\t\\\\N\n3\tc\\\nd\\ne\t\n4\t\\\tf\tg\"h\\x41\\101\n\\.\n",
    );
    let rows = [
        "1|a<T>b|NULL",
        "2|C:\\new|\\N",
        "3|c<N>d<N>e|",
        "4|<T>f|g\"hAA",
    ];
    for way in [&[][..], &["--batch-rows", "1"]] {
        let options = [&["--format", "text", "--no-header"], way].concat();
        assert_eq!(loaded(db, &file, &options, &["4 rows written"]), rows);
    }
    // With a header, other signs, and another word for no value.
    let file = db.file("t.txt", "id;a;b\n1;NULL;x\\;y\n2;\\N;\\\\\n");
    let options = ["--format", "text", "--delimiter", ";", "--null", "NULL"];
    let found = loaded(db, &file, &options, &["2 rows written"]);
    assert_eq!(found, ["1|NULL|x;y", "2|N|\\"]);
}

#[test]
fn text_format_postgres() {
    text_format(&Db::postgres());
}

#[test]
fn text_format_mariadb() {
    text_format(&Db::mariadb());
}

#[test]
fn text_format_sqlite() {
    text_format(&Db::sqlite());
}

/// As `SELECT .. INTO OUTFILE` of MySQL writes it.
fn escapes(db: &Db) {
    let file = db.file(
        "t.csv",
        "id,a,b\n1,\"a \\\"b\\\", c\",\\N\n2,d\\,e,\"f\\\\\"\n3,\"g\\\nh\\ni\",\"\"\n4,\"j\"\"k\",5\" l\n",
    );
    let rows = [
        "1|a \"b\", c|NULL",
        "2|d,e|f\\",
        "3|g<N>h<N>i|",
        "4|j\"k|5\" l",
    ];
    for way in [&[][..], &["--batch-rows", "1"]] {
        let options = [&["--escape", "\\"], way].concat();
        assert_eq!(loaded(db, &file, &options, &["4 rows written"]), rows);
    }
}

#[test]
fn escapes_postgres() {
    escapes(&Db::postgres());
}

#[test]
fn escapes_mariadb() {
    escapes(&Db::mariadb());
}

#[test]
fn escapes_sqlite() {
    escapes(&Db::sqlite());
}

#[test]
fn a_file_that_looks_escaped_is_refused_with_the_option() {
    let db = Db::postgres();
    db.exec("create table e (id int primary key, a text, b text)");
    for (name, text, words) in [
        (
            "a.tsv",
            "id\ta\tb\n1\tx\t\\N\n",
            &["line 2", "--format text"][..],
        ),
        (
            "b.csv",
            "id,a,b\n1,x,y\n2,\\N,z\n",
            &["line 3", "--escape '\\'"],
        ),
        (
            "c.csv",
            "id,a,b\n1,x,5\\\" y\n",
            &["line 2", "--escape '\\'", "--escape none"],
        ),
    ] {
        let file = db.file(name, text);
        db.load(&[&file, "-t", "e"]).is(1, words);
    }
    // What does not fit otherwise is refused by itself.
    let file = db.file("d.csv", "id,a,b\n1,\"x \\\"y\\\"\",z\n2,a\\,b,c\n3,k,l\n");
    let said = db.load(&[&file, "-t", "e"]);
    said.is(
        3,
        &[
            "1 rows written, 2 refused",
            "line 2: ",
            "line 3: ",
            "--escape '\\'",
        ],
    );
    // Later rows are refused one by one, whatever way they would take.
    let rows: String = (10..1010).map(|id| format!("{id},x,y\n")).collect();
    let file = db.file(
        "l.csv",
        format!("id,a,b\n{rows}2000,\\N,y\n2001,x,\"C:\\\"\n"),
    );
    let said = db.load(&[&file, "-t", "e"]);
    said.is(3, &["1001 rows written, 1 refused", "line 1002: "]);
    assert_eq!(db.exec("select b from e where id = 2001").trim(), "C:\\");
}

#[test]
fn backslashes_that_have_no_meaning_are_kept() {
    let db = Db::postgres();
    let file = db.file("w.tsv", "id\ta\tb\n1\tC:\\temp\tC:\\Users\n");
    let row = ["1|C:\\temp|C:\\Users"];
    assert_eq!(loaded(&db, &file, &[], &["1 rows written"]), row);
    let file = db.file("n.tsv", "id\ta\tb\n1\tx\\ty\t\\N\n");
    let none = ["--escape", "none"];
    let row = ["1|x\\ty|\\N"];
    assert_eq!(loaded(&db, &file, &none, &["1 rows written"]), row);
    let said = db.load(&[&file, "-t", "none", "--create", "--escape", "none"]);
    assert!(!said.text.contains("warning"), "{}", said.text);
    // Nothing else in this one tells what it is.
    let file = db.file("o.tsv", "id\ta\tb\n1\tx\\ty\tz\n");
    let words = [
        "warning: ",
        "o.tsv, line 2",
        "--format text",
        "1 rows written",
    ];
    assert_eq!(loaded(&db, &file, &[], &words), ["1|x\\ty|z"]);
}

#[test]
fn signs_that_contradict_each_other_are_told() {
    let db = Db::sqlite();
    let file = db.file("t.csv", "a,b\n1,2\n");
    for options in [
        &["--format", "text", "--escape", "\\"][..],
        &["--delimiter", "\\", "--escape", "\\"],
        &["--format", "text", "--delimiter", "\\"],
    ] {
        let said = db.load(&[&[&*file, "-t", "t", "--create"], options].concat());
        said.is(1, &["escape"]);
    }
}
