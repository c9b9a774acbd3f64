//! Times mean what they mean to psql: by the settings of the environment, the URL or the database.

use crate::support::{Db, Said};

/// A date in the order that the session has, a moment in its zone, one in UTC.
const ROWS: &str = "id,d,t\n1,01/02/2024,2024-01-02 03:04:05\n2,2024-02-01,2024-01-01T18:04:05Z\n";

/// What both rows are where days come first and the zone is Tokyo's.
const READ: &str = "2024-02-01|1704132245";

const WAYS: [&[&str]; 4] = [
    &[],
    &["--null", "NA", "--null", ""],
    &["--on-conflict", "ignore"],
    &["--batch-rows", "1"],
];

#[track_caller]
fn is_read(db: &Db, url: &str, environment: &[(&str, &str)]) {
    let file = db.file("t.csv", ROWS);
    // Rows of a view go one by one.
    for table in ["t", "w"] {
        for way in WAYS.iter().filter(|way| table == "t" || way.is_empty()) {
            let mut command = db.command_to(url, &[&[&*file, "-t", table], *way].concat());
            command.envs(environment.iter().copied());
            Said::of(command.spawn().unwrap()).is(0, &["2 rows written"]);
            let rows =
                "select distinct to_char(d, 'YYYY-MM-DD'), extract(epoch from t)::bigint from t";
            assert_eq!(
                db.exec(rows).trim(),
                READ,
                "{table} {way:?} {environment:?}"
            );
            db.exec("delete from t");
        }
    }
}

#[test]
fn as_psql_reads_them() {
    let db = Db::postgres();
    db.exec(
        "create table t (id int primary key, d date, t timestamptz); create view w as select * from t",
    );
    let url = db.url();
    is_read(
        &db,
        &url,
        &[("PGTZ", "Asia/Tokyo"), ("PGDATESTYLE", "SQL, DMY")],
    );
    let options = "-c TimeZone=Asia/Tokyo -c DateStyle=German";
    is_read(&db, &url, &[("PGOPTIONS", options)]);
    let join = if url.contains('?') { '&' } else { '?' };
    let encoded = options.replace(' ', "%20").replace('=', "%3D");
    let by_url = format!("{url}{join}options={encoded}");
    is_read(&db, &by_url, &[("PGOPTIONS", "-c TimeZone=America/Lima")]);
    let name = db.exec("select current_database()");
    db.exec(&format!(
        "alter database {name} set timezone = 'Asia/Tokyo'; alter database {name} set datestyle = 'ISO, DMY'",
        name = name.trim()
    ));
    is_read(&db, &url, &[]);
}
