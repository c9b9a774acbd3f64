//! Within one file.

use crate::support::{Db, move_rows, start};

const PENDING: &str = "create table pending (id integer primary key autoincrement, tenant text, v int check (v <> 13), note text default 'none',
    twice int as (v * 2)); create index pending_by_v on pending (v); create unique index \"odd \"\"name\" on pending (note) where note <> 'none';";

fn rows(from: usize, to: usize, tenant: &str) -> String {
    format!(
        "insert into pending (tenant, v) with n (i) as (select {from} union all select i + 1 from n where i < {to}) select {tenant}, i + 100 from n;"
    )
}

#[test]
fn rows_go_to_the_table_of_their_tenant() {
    let db = Db::sqlite();
    db.sql(PENDING);
    db.sql(&rows(
        1,
        900,
        "case i % 3 when 0 then 'a' when 1 then 'b\"c' else 'ü''d' end",
    ));
    db.sql("insert into pending (tenant, v, note) values (null, 0, 'x'), (7.5, 1, 'y')");
    let told = move_rows(&db, "final_{tenant}", &["--create", "--batch", "250"]).ends(3);
    assert!(told.err.contains("901 rows moved"), "{}", told.err);
    for (table, rows) in [
        ("final_a", 300),
        ("\"final_b\"\"c\"", 300),
        ("\"final_ü'd\"", 300),
        ("\"final_7.5\"", 1),
    ] {
        assert_eq!(db.count(table), rows, "{table}");
    }
    assert_eq!(db.count("pending"), 0);
    let letters = db.sql("select destination, code, \"key\", \"row\" from windrow_rejected");
    assert_eq!(
        letters,
        "|42602|[901]|{\"id\":901,\"tenant\":null,\"v\":0,\"note\":\"x\",\"twice\":0}"
    );
    let indexes = db.sql("select name from sqlite_schema where type = 'index' and tbl_name = 'final_a' order by name");
    assert_eq!(indexes, "final_a_by_v\nfinal_a_odd \"name");
    assert_eq!(db.sql("select sum(twice) - 2 * sum(v) from final_a"), "0");
}

#[test]
fn refused_rows_become_dead_letters_and_all_others_go() {
    let db = Db::sqlite();
    db.sql(PENDING);
    db.sql(&rows(1, 1000, "'a'"));
    db.sql("update pending set tenant = null where id = 9;
        create table final (id integer primary key on conflict ignore, tenant text not null on conflict replace default 'x', v int check (v <> 600), note text);
        insert into final values (17, 'there', 0, ''), (999, 'there', 0, '')");
    let told = move_rows(&db, "final", &["--batch", "300"]).ends(3);
    assert!(
        told.err.contains("996 rows moved") && told.err.contains("4 went"),
        "{}",
        told.err
    );
    let letters = db
        .sql("select \"row\" ->> 'id', code from windrow_rejected order by 1 + (\"row\" ->> 'id')");
    assert_eq!(letters, "9|23502\n17|23505\n500|23514\n999|23505");
    assert_eq!((db.count("pending"), db.count("final")), (0, 998));
}

#[test]
fn constraints_of_the_commit_name_their_row() {
    let db = Db::sqlite();
    db.sql("create table devices (id integer primary key); insert into devices values (1);
        create table pending (id integer primary key, device int, parent int);
        create table final (id integer primary key, device int references devices deferrable initially deferred,
            parent int references final deferrable initially deferred);
        create table seen (device int references devices deferrable initially deferred);
        create trigger t after insert on final when new.id = 250 begin insert into seen values (77); end;
        insert into pending with t (i) as (select 1 union all select i + 1 from t where i < 1000) select i, 1, i - 1 from t;
        update pending set parent = null where id in (1, 34, 251, 501); update pending set device = 2 where id in (33, 500)");
    let told = move_rows(&db, "final", &["--batch", "1000"]).ends(3);
    assert!(told.err.contains("3 went"), "{}", told.err);
    let letters = db.sql("select \"row\" ->> 'id', destination, code from windrow_rejected order by 1 + (\"row\" ->> 'id')");
    assert_eq!(letters, "33|final|23503\n250|final|23503\n500|final|23503");
    assert_eq!((db.count("pending"), db.count("final")), (0, 997));
    // The same where each tenant has a table.
    db.sql("insert into pending (id, device) select id, 1 from final; update pending set device = 5 where id = 3;
        create table of_5 (id integer primary key, device int references devices deferrable initially deferred, parent int)");
    move_rows(&db, "of_{device}", &["--create"]).ends(3);
    assert_eq!((db.count("of_1"), db.count("pending")), (996, 0));
    let letters = db.sql("select destination from windrow_rejected where destination like 'of%'");
    assert_eq!(letters, "of_5");
}

#[test]
fn what_a_deferred_key_keeps_stays() {
    let db = Db::sqlite();
    db.sql("create table pending (id integer primary key); create table final (id integer primary key);
        create table child (parent int references pending deferrable initially deferred); insert into pending values (1), (2), (3); insert into child values (2)");
    let told = move_rows(&db, "final", &[]).ends(3);
    assert!(told.err.contains("1 stay in pending"), "{}", told.err);
    assert_eq!((db.count("pending"), db.count("final")), (1, 2));
}

#[test]
fn tables_without_row_numbers_and_keys_of_several_columns() {
    let db = Db::sqlite();
    db.sql("create table pending (device text collate nocase, n int, b blob, primary key (device, n)) without rowid;
        insert into pending with t (i) as (select 1 union all select i + 1 from t where i < 500) select 'D' || (i % 7), i, x'00ff' from t");
    move_rows(
        &db,
        "final",
        &["--create", "--where", "n > 10", "--limit", "100"],
    )
    .ends(0);
    assert_eq!(
        db.sql("select count(*), sum(length(b)) from final"),
        "100|200"
    );
    move_rows(&db, "final", &[]).ends(0);
    assert_eq!((db.count("pending"), db.count("final")), (0, 500));
}

#[test]
fn two_programs_at_once_share_the_rows() {
    let db = Db::sqlite();
    db.sql(PENDING);
    db.sql(&rows(1, 3000, "'a'"));
    let more = ["--create", "--batch", "50"];
    let movers = [(); 2].map(|()| start(&db, "final", &more));
    for mover in movers {
        mover.end().ends(0);
    }
    assert_eq!(
        (
            db.count("pending"),
            &*db.sql("select count(*), count(distinct id) from final")
        ),
        (0, "3000|3000")
    );
}

#[test]
fn rows_that_are_not_utf_8_go_as_they_are_or_are_dead_letters() {
    let (db, other) = (Db::sqlite(), Db::sqlite());
    db.sql("create table pending (id integer primary key, tenant text, v text);
        create table final_a (id integer primary key, tenant text, v text check (id <> 5));
        insert into pending with t (i) as (select 1 union all select i + 1 from t where i < 300) select i, 'a', 'v' from t;
        update pending set v = cast(x'78ff' as text) where id in (5, 7); update pending set tenant = cast(x'61ff' as text) where id = 9;
        update pending set tenant = cast(x'61fe' as text) where id = 10");
    let dry = move_rows(&db, "final_{tenant}", &["--dry-run", "--create"]).ends(3);
    assert!(!dry.out.contains('\u{fffd}'), "{}", dry.out);
    let told = move_rows(&db, "final_{tenant}", &["--create"]).ends(3);
    assert!(told.err.contains("297 rows moved"), "{}", told.err);
    assert_eq!(db.sql("select hex(v) from final_a where id = 7"), "78FF");
    let letters = db.sql("select \"row\" ->> 'id', destination, code, coalesce(\"row\" ->> '$.v.windrow_bytes', '-'),
        coalesce(\"row\" ->> '$.tenant.windrow_bytes', '-') from windrow_rejected order by 1 + (\"row\" ->> 'id')");
    assert_eq!(
        letters,
        "5|final_a|23514|78ff|-\n9||42602|-|61ff\n10||42602|-|61fe"
    );
    // To another database: a text that is not UTF-8 cannot go, a route that is not names nothing.
    db.sql("delete from windrow_rejected; insert into pending values (1, 'a', 'v'), (2, 'a', cast(x'78ff' as text)), (3, cast(x'61ff' as text), 'v')");
    let told = move_rows(&db, "final_{tenant}", &["--create", "--to", &other.url()]).ends(3);
    assert!(
        told.err.contains("1 rows moved") || told.err.contains("1 row moved"),
        "{}",
        told.err
    );
    let letters = db.sql("select \"key\", destination, code from windrow_rejected order by id");
    assert_eq!(letters, "[2]|final_a|22021\n[3]||42602");
}
