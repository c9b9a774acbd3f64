//! Within one server of MariaDB.

use crate::support::{Db, move_rows, start};

const PENDING: &str = "create table pending (id bigint auto_increment primary key, tenant varchar(40), v int, note varchar(20), unique u (id, note));";

#[test]
fn rows_go_to_the_table_of_their_tenant() {
    let db = Db::mariadb();
    db.sql(PENDING);
    db.sql("insert into pending (tenant, v, note) select elt(1 + seq % 5, 'a', 'A', 'o`dd', 'it''s \"x\"', '数'), seq, 'n' from seq_1_to_3000;
        insert into pending (tenant, v) values (null, 0), ('', 0), (repeat('x', 40), 0), ('no ', 0)");
    let told = move_rows(
        &db,
        "final_{tenant}",
        &["--create", "--batch", "700", "--jobs", "2"],
    )
    .ends(3);
    assert!(told.err.contains("3001 rows moved"), "{}", told.err);
    for (table, rows) in [
        ("final_a", 600),
        ("final_A", 600),
        ("`final_o``dd`", 600),
        ("`final_it's \"x\"`", 600),
        ("`final_数`", 600),
        ("final_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 1),
    ] {
        assert_eq!(db.count(table), rows, "{table}");
    }
    assert_eq!(db.count("pending"), 0);
    let letters = db.sql(
        "select destination, code, json_value(`row`, '$.tenant') from windrow_rejected order by id",
    );
    assert_eq!(letters, "|42602|NULL\n|42602|\n|42602|no ");
    let checks = db.sql("select count(*) from information_schema.statistics where table_schema = database() and table_name = 'final_数'");
    assert_eq!(checks, "3", "indexes come along");
}

#[test]
fn refused_rows_become_dead_letters_and_all_others_go() {
    let db = Db::mariadb();
    db.sql(PENDING);
    db.sql("insert into pending (tenant, v, note) select 'a', seq, 'short' from seq_1_to_2000;
        update pending set note = 'much too long' where id in (5, 700); update pending set v = null where id = 9; update pending set v = 99999 where id = 1500;
        create table final (id bigint primary key, tenant varchar(40), v int not null check (v < 90000), note varchar(8));
        insert into final values (17, 'there', 0, ''), (1999, 'there', 0, '')");
    let told = move_rows(&db, "final", &["--batch", "500"]).ends(3);
    assert!(
        told.err.contains("1994 rows moved") && told.err.contains("6 went"),
        "{}",
        told.err
    );
    let letters = db.sql("select json_value(`row`, '$.id'), code, coalesce(`constraint`, '-') from windrow_rejected order by cast(json_value(`row`, '$.id') as signed)");
    let (check, long) = match db.is_mysql() {
        true => ("final_chk_1", "22P02"),
        false => ("final.v", "22001"),
    };
    assert_eq!(
        letters,
        format!(
            "5|{long}|-\n9|23502|-\n17|23505|PRIMARY\n700|{long}|-\n1500|23514|{check}\n1999|23505|PRIMARY"
        )
    );
    assert_eq!((db.count("pending"), db.count("final")), (0, 1996));
}

#[test]
fn what_is_asked_for_is_what_is_moved() {
    let db = Db::mariadb();
    db.sql(PENDING);
    db.sql("insert into pending (tenant, v) select 'a', seq from seq_1_to_100");
    move_rows(
        &db,
        "final",
        &[
            "--create", "--where", "v > 50", "--limit", "20", "--batch", "7",
        ],
    )
    .ends(0);
    assert_eq!(
        db.sql("select count(*), min(v), max(v) from final"),
        "20|51|70"
    );
    let told = move_rows(&db, "final", &["--dry-run"]).ends(0);
    assert!(
        format!("{}{}", told.out, told.err).contains("80"),
        "{}{}",
        told.out,
        told.err
    );
    assert_eq!(db.count("pending"), 80);
    // What goes from here has a number that counts up nowhere else.
    db.sql("insert into pending (tenant, v) values ('b', 1)");
    move_rows(&db, "final", &["--key", "id"]).ends(0);
    assert_eq!(
        db.sql("select count(*), count(distinct id) from final"),
        "101|101"
    );
}

#[test]
fn two_programs_at_once_share_the_rows() {
    let db = Db::mariadb();
    db.sql(PENDING);
    db.sql("insert into pending (tenant, v) select elt(1 + seq % 3, 'a', 'b', 'c'), seq from seq_1_to_6000");
    let more = ["--create", "--batch", "100", "--jobs", "2"];
    let movers = [(); 2].map(|()| start(&db, "final_{tenant}", &more));
    for mover in movers {
        mover.end().ends(0);
    }
    let all = db.sql("select count(*), count(distinct id) from (select id from final_a union all select id from final_b union all select id from final_c) a");
    assert_eq!((db.count("pending"), &*all), (0, "6000|6000"));
}

#[test]
fn a_route_that_is_no_text_names_no_table() {
    let (db, other) = (Db::mariadb(), Db::sqlite());
    for more in [&[][..], &["--to", &other.url()]] {
        db.sql("drop table if exists pending, final_a; create table pending (id int primary key, tenant varbinary(10)); create table final_a like pending;
            insert into pending values (1, 'a'), (2, x'61ff'), (3, 'a'), (4, x'ff')");
        let more = [more, &["--create"]].concat();
        let dry = move_rows(&db, "final_{tenant}", &[&more[..], &["--dry-run"]].concat()).ends(3);
        assert!(!dry.out.contains('\u{fffd}'), "{}", dry.out);
        move_rows(&db, "final_{tenant}", &more).ends(3);
        let letters = db.sql("select `key`, destination, code from windrow_rejected order by id");
        assert_eq!(letters, "[2]||42602\n[4]||42602");
        db.sql("delete from windrow_rejected");
        assert_eq!(db.count("pending"), 0);
    }
}
