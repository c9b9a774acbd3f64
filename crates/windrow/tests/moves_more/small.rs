//! Columns of bits, exit statuses.

use crate::support::{Db, move_rows, start, until};

#[test]
fn bits_go_to_bits() {
    let (maria, postgres) = (Db::mariadb(), Db::postgres());
    maria.sql("create table pending (id int primary key, one bit, five bit(5), most bit(64), n bit(8), v bit(8));
        insert into pending values (1, 0, 5, 18446744073709551615, 101, 10), (2, 1, b'10011', 1, 7, 0), (3, null, null, null, null, null)");
    postgres.sql("create table final (id int primary key, one bit, five bit(5), most bit(64), n int, v varbit)");
    move_rows(&maria, "final", &["--to", &postgres.url()]).ends(0);
    let ones = "1".repeat(64);
    let one = format!("{}1", "0".repeat(63));
    assert_eq!(
        postgres.sql("select * from final order by id"),
        format!("1|0|00101|{ones}|101|00001010\n2|1|10011|{one}|7|00000000\n3|||||")
    );
    // And back.
    postgres.sql("alter table final rename to pending");
    maria.sql("create table final like pending");
    move_rows(&postgres, "final", &["--to", &maria.url()]).ends(0);
    assert_eq!(
        maria.sql("select id, one + 0, five + 0, most + 0, n + 0, v + 0 from final order by id"),
        "1|0|5|18446744073709551615|101|10\n2|1|19|1|7|0\n3|NULL|NULL|NULL|NULL|NULL"
    );
    // What has no place is refused.
    postgres.sql("insert into pending values (4, B'1', B'00000', lpad('', 64, '0')::bit(64), 1, repeat('1', 65)::varbit), (5, B'1', B'00000', lpad('', 64, '0')::bit(64), 1, B'111111111')");
    move_rows(&postgres, "final", &["--to", &maria.url()]).ends(3);
    assert_eq!(postgres.count("windrow_rejected"), 2);
}

#[test]
fn a_dry_run_ends_as_the_move_would() {
    let (from, to) = (Db::postgres(), Db::sqlite());
    from.sql("create table pending (id int primary key, v text); insert into pending values (1, 'a'), (2, null)");
    to.sql("create table final_a (id int, v text)");
    for db in [&from, &to] {
        db.sql("create table narrow (id int); create table fine (id int, v text)");
    }
    let url = to.url();
    for more in [&[][..], &["--to", &url]] {
        let ends = |destination: &str, status: i32| {
            move_rows(&from, destination, &[more, &["--dry-run"]].concat()).ends(status);
        };
        ends("fine", 0);
        ends("missing", 1);
        ends("narrow", 1);
        ends("final_{v}", 3);
    }
    let maria = Db::mariadb();
    let (url, long) = (maria.url(), "x".repeat(65));
    for more in [&["--create", "--dry-run"][..], &["--create"]] {
        move_rows(&from, &long, &[&["--to", &url], more].concat()).ends(1);
    }
    move_rows(&from, "pending", &["--dry-run"]).ends(1);
    move_rows(&from, "missing", &["--dry-run", "--create"]).ends(0);
    assert_eq!(from.count("pending"), 2);
}

#[test]
fn following_that_is_told_to_end_has_come_to_its_end() {
    for (refused, status) in [(0, 0), (1, 3)] {
        let db = Db::postgres();
        db.sql("create table pending (id int primary key, v int); create table final (id int, v int check (v > 0))");
        db.sql(&format!(
            "insert into pending values (1, 1), (2, 1 - {refused})"
        ));
        let mover = start(&db, "final", &["--follow"]);
        until("rows are moved", || db.count("pending") == 0);
        mover.terminate().ends(status);
    }
}
