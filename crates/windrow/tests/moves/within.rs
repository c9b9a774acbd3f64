//! Within one database: all rows arrive, each where it belongs.

use crate::support::{move_rows, postgres, sql, start};

const PENDING: &str = "create table pending (id bigint generated always as identity primary key,
    tenant text, v numeric, at timestamptz not null default now(), twice numeric generated always as (v * 2) stored);";

#[test]
fn rows_go_to_one_table_and_keep_their_values() {
    let db = postgres();
    sql(&db, PENDING);
    sql(&db, "create table final (at timestamptz, extra int default 7, v numeric, id bigint generated always as identity, tenant text, twice text);
        insert into pending (tenant, v) select 't' || i % 3, i + 0.50 from generate_series(1, 2500) i;
        create table copy as select * from pending");
    let told = move_rows(db.url(), "pending", "final", &["--batch", "1000"]).ends(0);
    assert!(
        told.err.contains("2500 rows moved in 3 batches"),
        "{}",
        told.err
    );
    let left = sql(&db, "select count(*) from pending");
    let same = sql(
        &db,
        "select count(*) from final join copy using (id, tenant, v, at) where extra = 7 and final.twice is null",
    );
    assert_eq!((left.as_str(), same.as_str()), ("0", "2500"));
    move_rows(db.url(), "pending", "final", &[]).ends(0);
}

#[test]
fn tenants_have_tables_of_their_own_whatever_they_are_called() {
    let db = postgres();
    sql(&db, PENDING);
    let odd = [
        "acme",
        "ACME",
        "a b",
        "x\"; drop table pending; --",
        "ä.ö",
        "{tenant}",
        "$1",
        "it's",
    ];
    for (number, tenant) in odd.iter().enumerate() {
        let quoted = tenant.replace('\'', "''");
        let table = format!("final_{tenant}").replace('"', "\"\"");
        sql(
            &db,
            &format!(
                "create table \"{table}\" (like pending including generated);
            insert into pending (tenant, v) select '{quoted}', i from generate_series(1, {}) i",
                10 + number
            ),
        );
    }
    let told = move_rows(db.url(), "pending", "final_{tenant}", &["--batch", "30"]).ends(0);
    assert!(told.err.contains("108 rows moved"), "{}", told.err);
    for (number, tenant) in odd.iter().enumerate() {
        let table = format!("final_{tenant}").replace('"', "\"\"");
        let count = sql(
            &db,
            &format!(
                "select count(*), count(distinct tenant), min(tenant), sum(twice - v - v) from \"{table}\""
            ),
        );
        assert_eq!(count, format!("{}|1|{tenant}|0", 10 + number));
    }
    assert_eq!(sql(&db, "select count(*) from pending"), "0");
}

#[test]
fn more_tenants_than_a_batch_may_have_all_get_their_rows() {
    let db = postgres();
    sql(
        &db,
        "create table pending (id int primary key, tenant int);
        insert into pending select i, i % 300 from generate_series(1, 900) i",
    );
    move_rows(db.url(), "pending", "final_{tenant}", &["--create"]).ends(0);
    let tables = sql(&db, "select count(*), sum((xpath('/row/n/text()', query_to_xml('select count(*) n from ' || quote_ident(relname), false, true, '')))[1]::text::int)
        from pg_class where relname ~ '^final_[0-9]+$'");
    assert_eq!(tables, "300|900");
}

#[test]
fn sources_of_several_tables_are_emptied_by_their_keys() {
    let db = postgres();
    sql(&db, "create table pending (id int, region text, v int, primary key (region, id)) partition by list (region);
        create table p1 partition of pending for values in ('a');
        create table p2 partition of pending for values in ('b', 'c');
        create table final (id int, region text, v int check (v <> 13), who text);
        insert into pending select i, chr(97 + i % 3), i from generate_series(1, 300) i");
    move_rows(db.url(), "pending", "final", &["--batch", "50"]).ends(3);
    assert_eq!(
        sql(&db, "select count(*), count(distinct id) from final"),
        "299|299"
    );
    assert_eq!(sql(&db, "select count(*) from pending"), "0");
    assert_eq!(
        sql(&db, "select key, \"row\"->>'v', code from windrow_rejected"),
        "[\"b\", 13]|13|23514"
    );
}

#[test]
fn several_movers_share_the_work() {
    let db = postgres();
    sql(&db, "create table pending (id int primary key, tenant text);
        create table final_a (id int, tenant text); create table final_b (id int, tenant text);
        insert into pending select i, case when i % 2 = 0 then 'a' else 'b' end from generate_series(1, 4000) i");
    let more = ["--batch", "25", "--jobs", "2"];
    let movers = [(); 2].map(|()| start(db.url(), "pending", "final_{tenant}", &more));
    let moved: u64 = movers
        .into_iter()
        .map(|mover| {
            let told = mover.end().ends(0);
            told.err
                .split(' ')
                .find_map(|word| word.parse::<u64>().ok())
                .unwrap()
        })
        .sum();
    assert_eq!(moved, 4000);
    let all = sql(
        &db,
        "select count(*), count(distinct id) from (select * from final_a union all select * from final_b) f",
    );
    assert_eq!(all, "4000|4000");
    assert_eq!(
        sql(&db, "select count(*) from final_a where tenant <> 'a'"),
        "0"
    );
}

#[test]
fn a_batch_takes_no_more_than_it_may() {
    for keyed in ["", "partition by range (id)"] {
        let db = postgres();
        sql(
            &db,
            &format!(
                "create table pending (id int primary key) {keyed}; create table final (id int primary key)"
            ),
        );
        if !keyed.is_empty() {
            sql(
                &db,
                "create table low partition of pending for values from (0) to (5);
                create table high partition of pending for values from (5) to (100)",
            );
        }
        for (rows, limit, batches) in [(9, "100", 3), (10, "100", 4), (1, "100", 1), (10, "6", 2)] {
            sql(
                &db,
                &format!(
                    "truncate pending, final; insert into pending select generate_series({rows}, 1, -1)"
                ),
            );
            let more = ["--batch", "3", "--limit", limit];
            let told = move_rows(db.url(), "pending", "final", &more).ends(0);
            let moved = limit.parse::<u64>().unwrap().min(rows);
            let batches = match batches {
                1 => "1 batch;".to_owned(),
                several => format!("{several} batches;"),
            };
            let expected = format!("{moved} rows moved in {batches}");
            assert!(told.err.contains(&expected), "{keyed}: {}", told.err);
            let first = sql(&db, "select count(*), coalesce(max(id), 0) from final");
            assert_eq!(first, format!("{moved}|{moved}"), "{keyed}");
            assert_eq!(
                sql(&db, "select count(*) from pending"),
                (rows - moved).to_string()
            );
        }
    }
}

#[test]
fn several_movers_empty_one_table_into_another() {
    let db = postgres();
    sql(
        &db,
        "create table pending (id int primary key); create table final (id int);
        insert into pending select generate_series(1, 4000)",
    );
    let more = ["--batch", "25", "--jobs", "2"];
    let movers = [(); 2].map(|()| start(db.url(), "pending", "final", &more));
    for mover in movers {
        mover.end().ends(0);
    }
    let all = sql(&db, "select count(*), count(distinct id) from final");
    assert_eq!(all, "4000|4000");
    assert_eq!(sql(&db, "select count(*) from pending"), "0");
}
