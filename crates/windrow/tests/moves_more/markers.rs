//! The table of markers: those of a batch are found without looking at others.

use crate::support::{Db, move_rows, start};

/// What finds a batch's markers, as the lane writes it.
const BY_BATCH: &str = "where move = '7f' and batch = 'b7'";

/// What finds the marker of a row.
const BY_KEY: &str = "where move = '7f' and \"key\" = '[12345]'";

/// As many markers as many movers have under way. Each batch has a tenth of them.
fn many(db: &Db) {
    db.sql(match db {
        Db::Mariadb(_) => "insert into windrow_moved (move, `key`, batch) select '7f', concat('[', seq, ']'), concat('b', seq div 2000) from seq_1_to_20000",
        Db::Postgres(_) => "insert into windrow_moved (move, key, batch) select '7f', '[' || i || ']', 'b' || i / 2000 from generate_series(1, 20000) i",
        Db::Sqlite(_) => "insert into windrow_moved (move, key, batch) with n (i) as (select 1 union all select i + 1 from n where i < 20000) select '7f', '[' || i || ']', 'b' || i / 2000 from n",
    });
}

fn old(from: &Db, to: &Db, definition: &str) {
    from.sql("create table pending (id int primary key, v varchar(20)); insert into pending values (1, 'a'), (2, 'b')");
    to.sql("create table final (id int, v varchar(20))");
    to.sql(definition);
    let url = to.url();
    let movers = [(); 2].map(|()| start(from, "final", &["--to", &url, "--batch", "1"]));
    for mover in movers {
        mover.end().ends(0);
    }
    assert_eq!((from.count("pending"), to.count("final")), (0, 2));
    many(to);
}

#[test]
fn mariadb_reads_no_marker_of_another_batch() {
    let (from, to) = (Db::sqlite(), Db::mariadb());
    // As an earlier version made it.
    let definition = format!(
        "create table windrow_moved (move varchar(255), `key` varchar(255), batch longtext, primary key (move, `key`)) \
         character set utf8mb4, collate {}",
        to.exact()
    );
    old(&from, &to, &definition);
    let (format, key_at) = match to.is_mysql() {
        true => ("format = traditional", 6),
        false => ("", 5),
    };
    let rows_at = key_at + 3;
    let plan = |sql: &str| to.sql(&format!("explain {format} {sql}"));
    for verb in ["delete from", "select * from"] {
        let told = plan(&format!("{verb} windrow_moved {BY_BATCH}"));
        let cells: Vec<&str> = told.split(['|', '\t']).collect();
        let (key, rows) = (cells[key_at], cells[rows_at].parse::<u64>().unwrap());
        assert!(key == "PRIMARY" && (1..=2500).contains(&rows), "{told}");
    }
    let told = plan(&format!(
        "update windrow_moved set batch = 'c' {}",
        BY_KEY.replace('"', "`")
    ));
    let cells: Vec<&str> = told.split(['|', '\t']).collect();
    assert_eq!(
        (cells[key_at], cells[rows_at]),
        ("windrow_moved_key", "1"),
        "{told}"
    );
}

#[test]
fn who_may_not_change_the_table_of_markers_moves_all_the_same() {
    let (from, to) = (Db::sqlite(), Db::mariadb());
    from.sql("create table pending (id int primary key); insert into pending values (1), (2)");
    to.sql("create table final (id int); create table windrow_moved (move varchar(128), `key` varchar(128), batch varchar(128), primary key (move, `key`))");
    let name = to.sql("select database()");
    let role = &name[name.len().saturating_sub(20)..];
    to.sql(&format!("create user '{role}'@'%' identified by 'secret'; grant select, insert, update, delete on `{name}`.* to '{role}'@'%'"));
    let url = to.url().replace("root@", &format!("{role}:secret@"));
    let told = move_rows(&from, "final", &["--to", &url]).ends(0);
    assert!(
        told.err.contains("keeps the order that it has"),
        "{}",
        told.err
    );
    assert_eq!(
        (
            from.count("pending"),
            to.count("final"),
            to.count("windrow_moved")
        ),
        (0, 2, 0)
    );
    to.sql(&format!("drop user '{role}'@'%'"));
}

#[test]
fn postgresql_reads_no_marker_of_another_batch() {
    let (from, to) = (Db::sqlite(), Db::postgres());
    old(
        &from,
        &to,
        "create table windrow_moved (move text, key text, batch text, primary key (move, key))",
    );
    for analyzed in [false, true] {
        for verb in ["delete from", "select * from"] {
            let told = to.sql(&format!("explain {verb} windrow_moved {BY_BATCH}"));
            assert!(
                told.contains("windrow_moved_batch") && !told.contains("Seq Scan"),
                "{analyzed}: {told}"
            );
        }
        to.sql("analyze windrow_moved");
    }
}

#[test]
fn sqlite_reads_no_marker_of_another_batch() {
    let (from, to) = (Db::mariadb(), Db::sqlite());
    old(
        &from,
        &to,
        "create table windrow_moved (move text, key text, batch text, primary key (move, key))",
    );
    let connection = to.connection();
    for verb in ["delete from", "select * from"] {
        let sql = format!("explain query plan {verb} windrow_moved {BY_BATCH}");
        let told: String = connection
            .query_row(&sql, [], |row| row.get("detail"))
            .unwrap();
        assert!(
            told.contains("windrow_moved_batch (move=? AND batch=?)"),
            "{told}"
        );
    }
}
