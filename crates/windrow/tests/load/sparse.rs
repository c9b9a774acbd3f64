//! Objects that do not all have the same keys.

use crate::support::Db;

const TABLE: &str =
    "create table t (id int primary key, a int, b varchar(20), c int, d int default 7)";

const ROWS: &str = "select id, coalesce(a, -1), coalesce(b, '-'), coalesce(c, -1), coalesce(d, -1) from t order by id";

/// Rows that all begin alike.
const ROWS_BEFORE: u32 = 15_000;

/// What follows them.
const LATE: &str = "{\"id\":20001,\"c\":1}\n{\"id\":20002,\"e\":1}\n{\"id\":20003,\"d\":8}\n";

/// Objects without `c`, so many that the beginning of the file has none.
fn long() -> String {
    let mut text: String = (1..=ROWS_BEFORE)
        .map(|id| format!("{{\"id\":{id},\"a\":{id},\"filler\":null}}\n"))
        .collect();
    text.push_str(LATE);
    text
}

fn the_table_decides(db: &Db) {
    db.exec(TABLE);
    let file = db.file(
        "t.ndjson",
        "{\"id\":1,\"a\":5}\n{\"id\":2}\n{\"id\":3,\"b\":\"x\"}\n{\"B\":\"y\",\"id\":4,\"c\":6,\"a\":1}\n",
    );
    let said = db.load(&[&file, "-t", "t"]);
    // `B` and `b` are one column, and the file has called it `b` first.
    said.is(3, &["3 rows written, 1 refused", "line 4: ", "\"B\""]);
    // A column that no object names gets its default.
    assert_eq!(
        db.exec(ROWS).trim_end(),
        "1|5|-|-1|7\n2|-1|-|-1|7\n3|-1|x|-1|7"
    );
    // What comes late is loaded all the same, and what the table lacks is told.
    db.exec("delete from t");
    let file = db.file("late.ndjson", long().replace(",\"filler\":null", ""));
    let said = db.load(&[&file, "-t", "t"]);
    said.is(
        3,
        &[
            "15001 rows written, 2 refused",
            "\"e\"",
            "\"d\"",
            "--columns",
        ],
    );
    let sums = "select count(*), sum(a), sum(c), sum(d) from t";
    assert_eq!(
        db.exec(sums).trim(),
        format!(
            "{}|{}|1|{}",
            ROWS_BEFORE + 1,
            ROWS_BEFORE * (ROWS_BEFORE + 1) / 2,
            (ROWS_BEFORE + 1) * 7
        )
    );
}

fn columns_decide(db: &Db) {
    db.exec("delete from t");
    let file = db.file("late.ndjson", long());
    let said = db.load(&[&file, "-t", "t", "--columns", "id,c,d,e=a"]);
    said.is(0, &["15003 rows written"]);
    let sums = "select count(*), sum(a), sum(c), sum(d) from t";
    assert_eq!(db.exec(sums).trim(), "15003|1|1|8");
}

fn a_file_that_grows_by_other_keys_goes_on(db: &Db) {
    db.exec("delete from t");
    let first = "{\"id\":1,\"a\":5}\n{\"id\":2}\n";
    let file = db.file("grows.ndjson", first);
    db.load(&[&file, "-t", "t", "--resume"])
        .is(0, &["2 rows written"]);
    db.exec("delete from t");
    db.file(
        "grows.ndjson",
        format!("{first}{{\"id\":3,\"b\":\"x\",\"d\":1}}\n"),
    );
    db.load(&[&file, "-t", "t", "--resume"])
        .is(0, &["1 rows written, 2 done by an earlier run"]);
    assert_eq!(db.exec(ROWS).trim_end(), "3|-1|x|-1|1");
}

fn all(db: &Db) {
    the_table_decides(db);
    columns_decide(db);
    a_file_that_grows_by_other_keys_goes_on(db);
}

#[test]
fn sqlite() {
    let db = Db::sqlite();
    all(&db);
    let file = db.file("new.ndjson", "{\"id\":1,\"a\":5}\n{\"id\":2,\"b\":\"x\"}\n");
    db.load(&[&file, "-t", "new", "--create"])
        .is(0, &["2 rows written"]);
    assert_eq!(
        db.exec("select id, a, b from new order by id"),
        "1|5|\n2||x\n"
    );
}

#[test]
fn postgres() {
    all(&Db::postgres());
}

#[test]
fn mariadb() {
    all(&Db::mariadb());
}
