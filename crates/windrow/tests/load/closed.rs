//! A server that does not allow LOAD DATA LOCAL.

use windrow_testkit::mariadb::MariaDb;

use crate::support::{Db, READINGS, Said, readings};

#[test]
fn many_rows_go_by_one_insert() {
    let server = MariaDb::builder().set("local-infile", "0").start().unwrap();
    let url = server.create_database().unwrap();
    let sql = |sql: &str| windrow_testkit::mariadb::sql(&url, sql).unwrap();
    sql(READINGS);
    let db = Db::sqlite();
    let file = db.file("r.csv", readings(5000) + "5001,S,5000,,\n1,S,1,,\n");
    let arguments = [
        &file,
        "-t",
        "readings",
        "--resume",
        "--rejects",
        "bad.csv",
        "--batch-rows",
        "1000",
    ];
    let said = Said::of(db.command_to(&url, &arguments).spawn().unwrap());
    said.is(
        3,
        &[
            "5000 rows written, 2 refused",
            "INSERT of many rows",
            "line ",
        ],
    );
    let sums = "select count(*), sum(id), count(note) from readings";
    assert_eq!(sql(sums).trim(), "5000|12502500|4286");
    // All of it has its marks.
    let again = Said::of(db.command_to(&url, &arguments).spawn().unwrap());
    again.is(3, &["nothing to do"]);
}
