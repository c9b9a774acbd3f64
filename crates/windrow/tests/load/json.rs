//! JSON means the same whatever file it comes in.

use crate::support::Db;

/// Fields of CSV, and the JSON that each of them is, without blanks; nothing: it is none.
const FIELDS: [(&str, Option<&str>); 14] = [
    (r#""""s""""#, Some(r#""s""#)),
    ("null", Some("null")),
    ("true", Some("true")),
    (r#""false""#, Some("false")),
    ("5", Some("5")),
    (r#""5""#, Some("5")),
    ("-0.5", Some("-0.5")),
    (r#"" [1,2]""#, Some("[1,2]")),
    (r#""{""a"":""b\""c""}""#, Some(r#"{"a":"b\"c"}"#)),
    ("{}", Some("{}")),
    ("", Some("NULL")),
    ("abc", None),
    (r#""""#, None),
    (r#""{""a"":""#, None),
];

fn csv() -> String {
    let rows = FIELDS.iter().enumerate();
    let rows = rows.map(|(id, (field, _))| format!("{id},{field}\n"));
    format!("id,j\n{}", rows.collect::<String>())
}

fn expected() -> Vec<String> {
    let rows = FIELDS.iter().enumerate();
    let good = rows.filter_map(|(id, (_, json))| Some(format!("{id}|{}", (*json)?)));
    good.collect()
}

/// Every way that fields take: as they stand in the file, taken apart, one by one.
const WAYS: [&[&str]; 4] = [
    &[],
    &["--batch-rows", "1"],
    &["--null", "NA", "--null", ""],
    &["--on-conflict", "update"],
];

fn as_copy_reads_it(db: &Db, kind: &str, read: &str) {
    let file = db.file("j.csv", csv());
    for way in WAYS {
        db.exec(&format!("create table t (id int primary key, j {kind})"));
        let said = db.load(&[&[&*file, "-t", "t"], way].concat());
        said.is(3, &["11 rows written, 3 refused"]);
        let rows = db.exec(&format!(
            "select id, coalesce(replace({read}, ' ', ''), 'NULL') from t order by id"
        ));
        let rows: Vec<&str> = rows.lines().collect();
        assert_eq!(rows, expected(), "{kind} {way:?}");
        db.exec("drop table t");
    }
}

#[test]
fn postgres_json() {
    as_copy_reads_it(&Db::postgres(), "json", "j::text");
}

#[test]
fn postgres_jsonb() {
    as_copy_reads_it(&Db::postgres(), "jsonb", "j::text");
}

#[test]
fn mariadb_json() {
    as_copy_reads_it(&Db::mariadb(), "json", "j");
}

#[test]
fn sqlite_json() {
    let db = Db::sqlite();
    as_copy_reads_it(&db, "text check (json_valid(j))", "j");
}

/// Strings of NDJSON are strings, and what stands in an object stays as it is, but for the blanks
/// that MySQL writes.
#[test]
fn objects_keep_what_is_in_them() {
    for (db, read) in [(Db::postgres(), "j::text"), (Db::mariadb(), "j")] {
        db.exec("create table t (id int primary key, j json)");
        let file = db.file(
            "t.ndjson",
            "{\"id\":1,\"j\":\"s\"}\n{\"id\":2,\"j\":{\"a\":[1]}}\n{\"id\":3,\"j\":5}\n{\"id\":4,\"j\":null}\n{\"id\":5,\"j\":\"5\"}\n",
        );
        db.load(&[&file, "-t", "t"]).is(0, &["5 rows written"]);
        let rows = db.exec(&format!(
            "select id, coalesce(replace({read}, ' ', ''), 'NULL') from t order by id"
        ));
        assert_eq!(
            rows.trim_end(),
            "1|\"s\"\n2|{\"a\":[1]}\n3|5\n4|NULL\n5|\"5\""
        );
    }
}

/// Arrays are written as PostgreSQL writes them, or as JSON.
#[test]
fn arrays() {
    let db = Db::postgres();
    db.exec("create table t (id int primary key, a int[], w text[])");
    let file = db.file(
        "t.csv",
        "id,a,w\n1,{},{}\n2,\"{1,NULL}\",\"{\"\"a,b\"\",c}\"\n3,\"[1,2]\",\"[\"\"x\"\"]\"\n4,,\n",
    );
    db.load(&[&file, "-t", "t"]).is(0, &["4 rows written"]);
    assert_eq!(
        db.exec("select * from t order by id").trim_end(),
        "1|{}|{}\n2|{1,NULL}|{\"a,b\",c}\n3|{1,2}|{x}\n4||"
    );
}
