//! Movers are killed at any moment: no row is lost, none is moved twice.

use tokio::runtime::Runtime;
use windrow_testkit::command::Running;
use windrow_testkit::proxy::{Direction, Proxy};

use crate::support::{Db, HELD, hold, let_go, move_rows, move_table, number, start, until};

/// Kills, unless the environment says otherwise.
const ROUNDS: usize = 10;

fn rounds() -> usize {
    number("WINDROW_TEST_KILLS", ROUNDS)
}

/// Lets queries of MariaDB or MySQL count up to many rows.
fn deep_recursion(db: &Db) -> &'static str {
    match db.is_mysql() {
        true => "set global cte_max_recursion_depth = 1000000",
        false => "set global max_recursive_iterations = 1000000",
    }
}

/// Pending rows. The destination has no unique key, so that a second arrival would be seen.
fn fill(from: &Db, to: &Db, rows: usize) {
    from.sql("create table pending (id int primary key, v varchar(200))");
    to.sql("create table final (id int, v varchar(200))");
    from.sql(&format!(
        "insert into pending with recursive n (i) as (select 1 union all select i + 1 from n where i < {rows}) \
         select i, 'a row of some length, so that batches are not over before they have begun' from n"
    ));
}

/// Starts a proxy before a server. Returns it with what it runs on, and the URL through it.
fn proxy_before(url: &str) -> (Runtime, Proxy, String) {
    let server = url.split('@').nth(1).unwrap().split('/').next().unwrap();
    let runtime = Runtime::new().unwrap();
    let proxy = runtime.block_on(Proxy::builder(server).start()).unwrap();
    let through = proxy.through(url).unwrap();
    (runtime, proxy, through)
}

/// In one snapshot every row is in exactly one place.
#[track_caller]
fn none_lost_none_twice(db: &Db, rows: usize) {
    let counts = db.sql(
        "select count(*), count(distinct id) from (select id from pending union all select id from final) a",
    );
    assert_eq!(counts, format!("{rows}|{rows}"));
}

fn goal(round: usize, arrived: usize, rows: usize) -> usize {
    (arrived + 1 + (round * 37) % 100).min(rows)
}

fn within(db: &Db, jobs: &str) {
    let rounds = rounds();
    let rows = (600 * rounds).min(900 * 1000);
    if let Db::Mariadb(_) = db {
        db.sql(deep_recursion(db));
    }
    fill(db, db, rows);
    let mover = || start(db, "final", &["--batch", "10", "--jobs", jobs]);
    let mut survivor = mover();
    for round in 0..rounds {
        let other = mover();
        let goal = goal(round, db.count("final"), rows);
        until("rows arrive", || db.count("final") >= goal);
        survivor.kill9();
        survivor = other;
        none_lost_none_twice(db, rows);
    }
    survivor.end().ends(0);
    move_rows(db, "final", &[]).ends(0);
    none_lost_none_twice(db, rows);
    assert_eq!(db.count("final"), rows);
}

#[test]
fn movers_within_mariadb() {
    within(&Db::mariadb(), "2");
}

#[test]
fn movers_within_a_file() {
    within(&Db::sqlite(), "1");
}

fn across(from: &Db, to: &Db, movers: usize) {
    let rows = 200 * rounds();
    if let Db::Mariadb(_) = from {
        from.sql(deep_recursion(from));
    }
    fill(from, to, rows);
    carry(from, to, rows, movers, &[]);
}

/// Movers are killed until all rows have arrived, each once; its `id` tells. `keys`: what they are
/// told in turn.
fn carry(from: &Db, to: &Db, rows: usize, movers: usize, keys: &[&str]) {
    let url = to.url();
    let mut turns = keys.iter().cycle();
    for round in 0..rounds() {
        let goal = goal(round, to.count("final"), rows);
        let movers: Vec<Running> = (0..movers)
            .map(|_| {
                let mut more = vec!["--to", &*url, "--batch", "10", "--jobs", "2"];
                more.extend(turns.next().into_iter().flat_map(|key| ["--key", *key]));
                start(from, "final", &more)
            })
            .collect();
        until("rows arrive", || to.count("final") >= goal);
        for mover in movers {
            mover.kill9();
        }
        let counts = to.sql("select count(*) - count(distinct id) from final");
        assert_eq!(counts, "0");
    }
    let mut more = vec!["--to", &*url];
    more.extend(turns.next().into_iter().flat_map(|key| ["--key", *key]));
    move_rows(from, "final", &more).ends(0);
    assert_eq!(from.count("pending"), 0);
    let counts = to.sql("select count(*), count(distinct id) from final");
    assert_eq!(counts, format!("{rows}|{rows}"));
    // What the dead left is cleaned up.
    assert_eq!(to.count("windrow_moved"), 0);
    assert_eq!(from.count("windrow_batches"), 0);
    assert_eq!(from.count("windrow_rejected"), 0);
}

#[test]
fn movers_from_mariadb_to_postgresql() {
    across(&Db::mariadb(), &Db::postgres(), 2);
}

#[test]
fn movers_from_a_file_to_postgresql() {
    across(&Db::sqlite(), &Db::postgres(), 2);
}

#[test]
fn movers_from_postgresql_to_mariadb() {
    across(&Db::postgres(), &Db::mariadb(), 2);
}

#[test]
fn movers_from_mariadb_to_a_file() {
    across(&Db::mariadb(), &Db::sqlite(), 1);
}

/// Keys without a type, of which five at a time are spelled alike.
fn untyped(from: &Db, to: &Db, id: &str) {
    let rows = 200 * rounds();
    from.sql(&format!(
        "create table pending (k primary key, id int, v text);
        insert into pending with recursive n (i) as (select 0 union all select i + 1 from n where i < {rows} - 1)
            select case i % 5 when 0 then i / 5 when 1 then cast(i / 5 as text) when 2 then cast(cast(i / 5 as text) as blob)
                when 3 then i / 5 + 0.5 else (i / 5) || '.5' end, i, 'a row of some length' from n"
    ));
    to.sql(&format!("create table final (k {id}, id int, v text)"));
    carry(from, to, rows, 1, &[]);
}

#[test]
fn keys_without_a_type_from_a_file_to_a_file() {
    let (from, to) = (Db::sqlite(), Db::sqlite());
    untyped(&from, &to, "");
    let rows = 200 * rounds();
    let kinds = to.sql("select typeof(k), count(*) from final group by 1 order by 1");
    let (fifth, texts) = (rows / 5, rows / 5 * 2);
    assert_eq!(
        kinds,
        format!("blob|{fifth}\ninteger|{fifth}\nreal|{fifth}\ntext|{texts}")
    );
}

#[test]
fn keys_without_a_type_from_a_file_to_postgresql() {
    untyped(&Db::sqlite(), &Db::postgres(), "text");
}

#[test]
fn movers_that_are_told_other_keys_in_turn() {
    for (from, to) in [
        (Db::mariadb(), Db::postgres()),
        (Db::sqlite(), Db::mariadb()),
    ] {
        if let Db::Mariadb(_) = from {
            from.sql(deep_recursion(&from));
        }
        let rows = 200 * rounds();
        from.sql("create table pending (id int primary key, code varchar(20) not null unique)");
        to.sql("create table final (id int, code varchar(20))");
        from.sql(&format!(
            "insert into pending with recursive n (i) as (select 1 union all select i + 1 from n where i < {rows}) \
             select i, {} from n",
            match from {
                Db::Mariadb(_) => "concat('c', i)",
                _ => "'c' || i",
            }
        ));
        let movers = match from {
            Db::Sqlite(_) => 1,
            _ => 2,
        };
        carry(&from, &to, rows, movers, &["id", "code", "code"]);
    }
}

/// The rows of a killed mover reach the server of the destination only after the next mover has
/// moved them. `meanwhile`: a value with which the key of one of them is inserted again before.
fn late_rows(meanwhile: Option<&str>) {
    let (from, to) = (Db::postgres(), Db::postgres());
    fill(&from, &to, 10);
    to.sql("alter table final add check (v <> 'refused')");
    let url = to.url();
    let (_runtime, proxy, through) = proxy_before(&url);
    let killed = start(&from, "final", &["--to", &through, "--follow"]);
    let is_idle = || to.count("final") == 10 && to.count("windrow_moved") == 0;
    until("the first rows are moved", is_idle);
    let others = "select coalesce(string_agg(pid::text, ','), '0') from pg_stat_activity \
                  where datname = current_database() and pid <> pg_backend_pid()";
    let sessions = to.sql(others);
    proxy.pause(Direction::ToServer);
    let sent = proxy.bytes(Direction::ToServer);
    from.sql("insert into pending select i, 'a row of some length, as the first ones are' from generate_series(11, 20) i");
    until("rows are under way", || {
        proxy.bytes(Direction::ToServer) > sent + 500
    });
    killed.kill9();
    let next = start(&from, "final", &["--to", &url]);
    until("the rows are moved", || from.count("pending") == 0);
    let claims = "windrow_batches where batch like '%?%'";
    until("markers are deleted, or kept", || {
        to.count("windrow_moved") == 0 || from.count(claims) > 0
    });
    let mut again = None;
    let mut rows = 20;
    if let Some(v) = meanwhile {
        from.sql(&format!("insert into pending values (15, '{v}')"));
        again = Some(start(&from, "final", &["--to", &url]));
        until("the row is moved", || from.count("pending") == 0);
        rows += to.count(&format!("final where v = '{v}'"));
    }
    proxy.resume(Direction::ToServer);
    let is_over = format!("select count(*) from pg_stat_activity where pid in ({sessions})");
    until("the sessions of the killed mover end", || {
        to.sql(&is_over) == "0"
    });
    let counts = to.sql("select count(*), count(distinct id) from final");
    assert_eq!(counts, format!("{rows}|20"));
    for mover in [Some(next), again].into_iter().flatten() {
        mover.end();
    }
    assert_eq!((to.count("windrow_moved"), from.count(claims)), (0, 0));
    let written = to.count("final where v = 'again'");
    let refused = from.count("windrow_rejected");
    let expected = match meanwhile {
        None => (0, 0),
        Some("refused") => (0, 1),
        Some(_) => (1, 0),
    };
    assert_eq!((written, refused), expected);
}

#[test]
fn rows_that_a_killed_mover_has_sent_are_not_written_after_the_next_mover_wrote_them() {
    late_rows(None);
}

/// A row that has the key of one of them is moved meanwhile, or becomes a dead letter.
#[test]
fn keys_that_are_inserted_again_let_no_late_row_of_a_killed_mover_in() {
    late_rows(Some("again"));
    late_rows(Some("refused"));
}

/// Connections break while rows of a batch are answered, some before and some after the cut.
#[test]
fn rows_of_a_batch_whose_outcome_is_unknown_are_not_written_again() {
    let (from, to) = (Db::postgres(), Db::postgres());
    fill(&from, &to, 300);
    let url = to.url();
    let (_runtime, proxy, through) = proxy_before(&url);
    let mover = start(&from, "final", &["--to", &through, "--follow"]);
    let is_idle = || from.count("pending") == 0 && to.count("windrow_moved") == 0;
    until("the first rows are moved", is_idle);
    let rounds = 4 * rounds();
    for round in 1..=rounds {
        let bytes = round * 2000 / rounds;
        proxy.cut_after(Direction::ToClient, bytes.try_into().unwrap());
        from.sql(&format!(
            "insert into pending select {round} * 300 + i, 'another row' from generate_series(1, 300) i"
        ));
        until("rows are moved", || from.count("pending") == 0);
    }
    let rows = (rounds + 1) * 300;
    let counts = to.sql("select count(*), count(distinct id) from final");
    assert_eq!(counts, format!("{rows}|{rows}"));
    mover.terminate().ends(0);
}

/// Connections break while the markers of a killed mover's rows are assigned to another batch.
#[test]
fn rows_whose_markers_may_be_assigned_are_not_written_again() {
    let (from, to) = (Db::postgres(), Db::postgres());
    fill(&from, &to, 1);
    hold(&from);
    let url = to.url();
    move_rows(&from, "final", &["--to", &url, HELD]).ends(1);
    to.sql("create table one as select move, left(key, 8) as tag from windrow_moved");
    let_go(&from);
    let (_runtime, proxy, through) = proxy_before(&url);
    let mover = start(&from, "final", &["--to", &through, "--follow"]);
    let is_idle = || from.count("pending") == 0 && to.count("windrow_moved") == 0;
    until("the first row is moved", is_idle);
    let (rounds, mut answers) = (2 * rounds(), 0);
    for round in 0..=rounds {
        // A killed mover has written the rows of a batch that is not noted.
        let ids = format!("generate_series({round} * 300 + 2, {round} * 300 + 301) i");
        to.sql(&format!(
            "insert into final select i, 'written' from {ids};
             insert into windrow_moved select move, tag || '[' || i || ']', 'dead{round}' from one, {ids}"
        ));
        if round > 0 {
            let bytes = answers * round / rounds;
            proxy.cut_after(Direction::ToClient, bytes.try_into().unwrap());
        }
        let before = proxy.bytes(Direction::ToClient);
        from.sql(&format!("insert into pending select i, 'late' from {ids}"));
        until("rows are moved", || from.count("pending") == 0);
        if round == 0 {
            answers = usize::try_from(proxy.bytes(Direction::ToClient) - before).unwrap();
        }
    }
    let rows = (rounds + 1) * 300 + 1;
    let counts = to.sql("select count(*), count(distinct id) from final");
    assert_eq!(counts, format!("{rows}|{rows}"));
    mover.terminate().ends(0);
}

/// Another mover removes the markers of a batch and forgets the batch, between the two moments at
/// which a mover reads the marker of a row and looks for the note of its batch.
#[test]
fn a_row_whose_marker_is_removed_after_it_was_read_is_written() {
    let (from, to) = (Db::postgres(), Db::postgres());
    fill(&from, &to, 1);
    hold(&from);
    let url = to.url();
    move_rows(&from, "final", &["--to", &url, HELD]).ends(1);
    to.sql("create table one as select * from windrow_moved");
    let_go(&from);
    let mover = start(&from, "final", &["--to", &url, "--follow"]);
    let is_idle = || {
        let counts = [from.count("pending"), to.count("windrow_moved")];
        counts == [0, 0] && from.count("windrow_batches") == 0
    };
    until("the first row is moved", is_idle);
    let old = to.sql("insert into windrow_moved select * from one returning batch");
    from.sql(&format!("insert into windrow_batches values ('{old}')"));
    let runtime = Runtime::new().unwrap();
    let locked = |db: &Db, table: &str| {
        runtime.block_on(async {
            let url = db.url();
            let connecting = tokio_postgres::connect(&url, tokio_postgres::NoTls);
            let (client, connection) = connecting.await.unwrap();
            tokio::spawn(connection);
            let lock = format!("begin; lock table {table} in access exclusive mode");
            client.batch_execute(&lock).await.unwrap();
            client
        })
    };
    let waits = "pg_locks where not granted and database = (select oid from pg_database where datname = current_database())";
    let markers = locked(&to, "windrow_moved");
    from.sql("insert into pending values (1, 'again')");
    until("the row is to be written", || to.count(waits) > 0);
    let batches = locked(&from, "windrow_batches");
    runtime.block_on(markers.batch_execute("rollback")).unwrap();
    until("the note is looked for", || from.count(waits) > 0);
    to.sql("delete from windrow_moved");
    let forget = format!("delete from windrow_batches where batch = '{old}'; commit");
    runtime.block_on(batches.batch_execute(&forget)).unwrap();
    until("the row is moved", || from.count("pending") == 0);
    assert_eq!(to.count("final where v = 'again'"), 1);
    mover.terminate().ends(0);
}

/// Markers of a finished batch stay, as if its mover had died there. A move of another table to the
/// same destination must not forget that the batch was finished.
#[test]
fn a_move_of_another_table_forgets_no_batch_whose_markers_are_left() {
    let (from, to) = (Db::postgres(), Db::postgres());
    fill(&from, &to, 1);
    from.sql("create table payments (id int primary key)");
    to.sql("create table final_payments (id int)");
    let url = to.url();
    let move_both = || {
        move_rows(&from, "final", &["--to", &url]).ends(0);
        move_table(&from, "payments", "final_payments", &["--to", &url]).ends(0);
    };
    move_both();
    to.sql(
        "create function stay() returns trigger language plpgsql as $$ begin raise exception 'not now'; end $$;
         create trigger stay before delete on windrow_moved for each row execute function stay()",
    );
    from.sql("insert into pending values (2, 'a'), (3, 'b'); insert into payments values (1)");
    move_both();
    assert_eq!(to.count("windrow_moved"), 3);
    to.sql("drop function stay cascade");
    from.sql("insert into pending values (2, 'c')");
    move_both();
    assert_eq!((from.count("pending"), to.count("final")), (0, 4));
    assert_eq!(to.count("final where v = 'c'"), 1);
    assert_eq!(to.count("final_payments"), 1);
    assert_eq!(to.count("windrow_moved"), 0);
    assert_eq!(from.count("windrow_batches"), 0);
}
