//! Into CockroachDB, which has transactions: each row goes together with its marker.

use windrow_testkit::cockroachdb::{CockroachDatabase, shared};

use crate::support::{Db, move_rows, number, start, until};

fn count(there: &CockroachDatabase, sql: &str) -> String {
    there.exec(sql).unwrap().trim().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_movers_lose_nothing_and_double_nothing() {
    let there = shared().await.unwrap();
    tokio::task::block_in_place(|| {
        let rounds = number("WINDROW_TEST_KILLS", 5);
        let (from, rows) = (Db::postgres(), 100 * rounds);
        from.sql(&format!(
            "create table pending (id int primary key, v text);
            insert into pending select i, 'v' || i from generate_series(1, {rows}) i"
        ));
        // No unique key: a second arrival would be seen.
        there.exec("create table final (id int, v text)").unwrap();
        let more = ["--to", there.url(), "--batch", "10", "--jobs", "2"];
        for round in 0..rounds {
            let goal = from.count("pending").saturating_sub(1 + (round * 37) % 50);
            let movers = [(); 2].map(|()| start(&from, "final", &more));
            until("rows go", || from.count("pending") <= goal);
            for mover in movers {
                mover.kill9();
            }
        }
        move_rows(&from, "final", &more).ends(0);
        assert_eq!(
            (
                from.count("pending"),
                from.count("windrow_rejected"),
                from.count("windrow_batches")
            ),
            (0, 0, 0)
        );
        let all = count(&there, "select count(*), count(distinct id) from final");
        assert_eq!(all, format!("{rows}|{rows}"));
        assert_eq!(count(&there, "select count(*) from windrow_moved"), "0");
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_rows_stay_behind_and_what_every_row_lacks_ends_the_move() {
    let there = shared().await.unwrap();
    tokio::task::block_in_place(|| {
        let from = Db::sqlite();
        from.sql("create table pending (id int primary key, tenant text, n int);
            insert into pending with t (i) as (select 1 union all select i + 1 from t where i < 200) select i, 'ab', i from t;
            update pending set n = null where id = 50; update pending set tenant = 'gone' where id = 60");
        there.exec("create table final_ab (id int primary key, tenant text, n int not null); insert into final_ab values (7, 'there', 0);
            create table final (id int primary key, tenant text, n int, site int not null)").unwrap();
        let told = move_rows(&from, "final", &["--to", there.url(), "--where", "n > 0"]).ends(1);
        assert!(
            told.err
                .contains("has a column that the source does not have"),
            "{}",
            told.err
        );
        assert_eq!(from.count("pending"), 200);
        move_rows(&from, "final_{tenant}", &["--to", there.url()]).ends(3);
        let letters =
            from.sql("select \"key\", destination, code from windrow_rejected order by id");
        assert_eq!(
            letters,
            "[7]|final_ab|23505\n[50]|final_ab|23502\n[60]|final_gone|42P01"
        );
        assert_eq!(count(&there, "select count(*) from final_ab"), "198");
    });
}
