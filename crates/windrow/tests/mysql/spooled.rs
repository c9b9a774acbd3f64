//! INSERTs that the spool answers, and the order of statements behind them.

use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;
use windrow_mysqlwire::command;
use windrow_testkit::command::run;
use windrow_testkit::mariadb::{MariaDb, sql};
use windrow_testkit::process::Windrow;

use crate::raw::{LoginForm, RawClient, Success, error, execute, first_row, success};
use crate::support::{Gateway, TEST_TIMEOUT, TRIED, create, metric, serve, url};

/// The metric of writes that were written as rows.
const ROW_WRITES: &str = "windrow_mysql_statements_total{way=\"row\"}";

/// The number with which the first client is greeted.
const FIRST_ID: u32 = 0x4000_0000;

const ROWS: &str = "create table t (id int primary key, v varchar(20));
    create table made (id bigint auto_increment primary key, v varchar(20))";

fn gateway(directory: &TempDir, more: &[&str]) -> Gateway {
    let mut options = vec!["--spool", directory.path().to_str().unwrap()];
    options.extend_from_slice(more);
    Gateway::with(MariaDb::builder(), &options)
}

fn row_writes(windrow: &Windrow) -> u64 {
    metric(windrow.address(), ROW_WRITES)
}

/// Returns the number and SQLSTATE of the error; 0 for none.
async fn code(client: &mut RawClient, text: &str) -> (u16, String) {
    let answer = client.query(text).await.unwrap();
    error(&answer).map_or_else(Default::default, |error| {
        let state = String::from_utf8_lossy(&error.state).into_owned();
        (error.number, state)
    })
}

fn done(affected: u64, insert_id: u64) -> Option<Success> {
    Some(Success {
        affected,
        insert_id,
        warnings: 0,
        info: String::new(),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_insert_is_answered_by_the_spool_and_statements_come_after_it() {
    let directory = tempfile::tempdir().unwrap();
    let gateway = gateway(&directory, &[]);
    gateway.exec(ROWS);
    let mut client = gateway.client().await;
    client.ok("set @windrow_ack = 'spool'").await;
    let insert = client.ok("insert into t (id, v) values (1, 'a')").await;
    assert_eq!(success(&insert), done(1, 0));
    let prepared = b"insert into t (id, v) values (?, ?)";
    client.prepare(0, prepared).await.unwrap();
    let id = client.id(0).unwrap();
    let answer = client.ask(&execute(id, &["2", "b"])).await.unwrap();
    assert_eq!(success(&answer), done(1, 0));
    assert_eq!(row_writes(&gateway.windrow), 2);
    // Reads, joined writes and transactions of the session see the rows.
    let count = "select count(*) from t";
    assert_eq!(first_row(&client.ok(count).await), ["2"]);
    client.ok("insert into t (id, v) values (3, 'c')").await;
    let update = client.ok("update t set v = 'new' where id = 3").await;
    assert_eq!(success(&update).unwrap().affected, 1);
    client.ok("insert into t (id, v) values (4, 'd')").await;
    client.ok("begin").await;
    assert_eq!(first_row(&client.ok(count).await), ["4"]);
    // A transaction goes to the server.
    client.ok("insert into t (id, v) values (5, 'e')").await;
    client.ok("commit").await;
    assert_eq!(row_writes(&gateway.windrow), 4);
    let rows = "select group_concat(id, v order by id) from t";
    assert_eq!(gateway.exec(rows).trim(), "1a,2b,3new,4d,5e");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_in_the_spool_has_no_number_yet() {
    let directory = tempfile::tempdir().unwrap();
    let gateway = gateway(&directory, &["--ack", "spool"]);
    gateway.exec(ROWS);
    let mut client = gateway.client().await;
    // A client that has not asked for the spool has its number.
    let insert = client.ok("insert into made (v) values ('a')").await;
    assert_eq!(success(&insert), done(1, 1));
    client.ok("insert into t (id, v) values (1, 'a')").await;
    assert_eq!(row_writes(&gateway.windrow), 1);
    client.ok("set @windrow_ack = 'spool'").await;
    let insert = client.ok("insert into made (v) values ('b')").await;
    assert_eq!(success(&insert), done(1, 0));
    assert_eq!(
        first_row(&client.ok("select last_insert_id()").await),
        ["0"]
    );
    let insert = client.ok("insert into made (id, v) values (7, 'c')").await;
    assert_eq!(success(&insert), done(1, 7));
    assert_eq!(row_writes(&gateway.windrow), 3);
    client.ok("set @windrow_ack = 'commit'").await;
    let insert = client.ok("insert into made (v) values ('d')").await;
    assert_eq!(success(&insert), done(1, 8));
    assert_eq!(row_writes(&gateway.windrow), 3);
    let rows = "select group_concat(id, v order by id) from made";
    assert_eq!(gateway.exec(rows).trim(), "1a,2b,7c,8d");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_insert_that_the_spool_cannot_take_is_refused_if_the_session_has_asked() {
    let directory = tempfile::tempdir().unwrap();
    let gateway = gateway(&directory, &[]);
    gateway.exec(ROWS);
    gateway.exec(
        "create table filled (id int primary key, at datetime default current_timestamp);
         create table fired (id int);
         create trigger fires before insert on fired for each row set new.id = new.id + 1",
    );
    let refused = (1235, "0A000".to_owned());
    let mut client = gateway.client().await;
    client
        .ok("set @windrow_ack = 'spool', time_zone = '+02:00'")
        .await;
    for text in [
        "insert ignore into t values (1, 'a')",
        "insert into t (id, v) values (1, 'a') on duplicate key update v = 'b'",
        "replace into t values (1, 'a')",
        "insert into t (id, v) values (1, upper('a'))",
        "insert into t (id, v) values (1, 'a'), (2, 'b')",
        "insert into t values (1, 'a')",
        "insert into t select 1, 'a'",
        "insert into t (id, v) values (1, 'a') returning id",
        "insert into t (id, v) values (1, 'longer than twenty characters')",
        "insert into t (id, v) values (1.5, 'a')",
        "insert into t (v) values ('a')",
        "insert into made (id, v) values (0, 'a')",
        "insert into filled (id) values (1)",
        "insert into fired (id) values (1)",
        "/* by */ insert into t (id, v) values (1, concat('a'))",
    ] {
        assert_eq!(code(&mut client, text).await, refused, "{text}");
    }
    client
        .prepare(0, b"insert into t (id, v) values (?, 'a')")
        .await
        .unwrap();
    let id = client.id(0).unwrap();
    let answer = client.ask(&execute(id, &["no number"])).await.unwrap();
    assert_eq!(error(&answer).unwrap().number, 1235);
    client.ok("set foreign_key_checks = 0").await;
    let insert = "insert into t (id, v) values (1, 'a')";
    assert_eq!(code(&mut client, insert).await, refused);
    // All else goes to the database.
    client.ok("set @windrow_ack = null").await;
    client.ok(insert).await;
    client.ok("set @windrow_ack = 'spool'").await;
    client.ok("update t set v = 'b' where id = 1").await;
    client.ok("delete from t where id = 1").await;
    assert_eq!(row_writes(&gateway.windrow), 0);
    assert_eq!(gateway.exec("select count(*) from t").trim(), "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_setting_lasts_until_the_session_is_reset() {
    let directory = tempfile::tempdir().unwrap();
    let gateway = gateway(&directory, &[]);
    gateway.exec(ROWS);
    let user = gateway.direct.user.clone();
    let mut client = gateway.client().await;
    for (round, reset) in [true, false].into_iter().enumerate() {
        client.ok("set @windrow_ack = 'spool'").await;
        client
            .ok(&format!("insert into t (id, v) values ({round}, 'a')"))
            .await;
        assert_eq!(row_writes(&gateway.windrow), 1 + round as u64);
        match reset {
            true => drop(client.ask(&[command::RESET_CONNECTION]).await.unwrap()),
            false => drop(client.change_user(&user, TRIED).await.unwrap()),
        }
        client
            .ok(&format!(
                "insert into t (id, v) values ({}, 'a')",
                10 + round
            ))
            .await;
        assert_eq!(row_writes(&gateway.windrow), 1 + round as u64);
    }
    assert_eq!(
        code(&mut client, "set @windrow_ack = 'never'").await.0,
        1231
    );
    // In another database of the server rows are not written.
    gateway.exec("create database other; create table other.t (id int)");
    client.ok("use other").await;
    client.ok("set @windrow_ack = 'spool'").await;
    let insert = "insert into t (id) values (1)";
    assert_eq!(code(&mut client, insert).await.0, 1235);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_spool_the_setting_is_refused() {
    let gateway = Gateway::start();
    let mut client = gateway.client().await;
    assert_eq!(
        code(&mut client, "set @windrow_ack = 'spool'").await.0,
        1231
    );
    client.ok("set @windrow_ack = 'commit'").await;
}

/// A table of all that is read of a value for the spool, and values; some are refused.
const TYPES: &str =
    "(id int primary key, tiny tinyint, small smallint unsigned, big bigint unsigned,
    exact decimal(9, 3), single float, twice double, words text, short varchar(5), padded char(4),
    latin varchar(9) character set latin1, bytes varbinary(4), fixed binary(4), image blob,
    day date, local datetime(3), moment timestamp(6) null, span time, plain json,
    mood enum('sad', 'glad'), flags set('a', 'b'), born year, code uuid, bits bit(8),
    made timestamp default current_timestamp, word varchar(9) default 'it''s')";

const VALUES: &[&str] = &[
    "(id, tiny, small, big) values (1, -128, 65535, 18446744073709551615)",
    "(id, tiny) values (2, 128)",
    "(id, exact, single, twice) values (3, -1.234, 0.1, 1e-300)",
    "(id, exact, single, twice) values (4, '5', '2.5', '0.30000000000000004')",
    "(id, exact) values (5, 1.2345)",
    "(id, words, short) values (6, 'it''s \\\\ \\n \\% \"ö\" 😀', 'äöüß€')",
    "(id, short) values (7, 'too long')",
    "(id, padded, latin) values (8, 'ab  ', 'plain')",
    "(id, latin) values (9, 'ö')",
    "(id, bytes, fixed, image) values (10, x'00ff', 0x01, _binary'a\\0b')",
    "(id, bytes, image) values (11, 'ö', 'words')",
    "(id, bytes) values (12, 'five!')",
    "(id, day, local, moment) values (13, '2024-02-29', '2024-02-29T23:59:59.120', '2024-02-29 12:00:00.000001')",
    "(id, day) values (14, '2023-02-29')",
    "(id, local) values (15, '2024-02-29 1:02:03')",
    "(id, span) values (16, '-123:04:05')",
    "(id, plain) values (17, '{\"b\" : 1, \"a\":2}')",
    "(id, plain) values (18, '\"text\"')",
    "(id, mood, flags, born) values (19, 'glad', 'a,b', 1999)",
    "(id, mood) values (20, 'none')",
    "(id, code) values (21, 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11')",
    "(id, bits) values (22, 5)",
    "(id, words, tiny) values (23, null, true)",
    "(id, words, word) values (24, 7, default)",
    "(id, day) values (25, now())",
];

/// Values that are refused, or that the database refuses afterwards.
const REFUSED: [u16; 9] = [2, 5, 7, 9, 12, 14, 15, 22, 25];
const REJECTED: [u16; 1] = [20];

#[tokio::test(flavor = "multi_thread")]
async fn values_are_stored_as_the_server_would() {
    let directory = tempfile::tempdir().unwrap();
    let gateway = gateway(&directory, &[]);
    // MySQL has no such type.
    let types = match gateway.exec("select version()").contains("MariaDB") {
        true => TYPES.to_owned(),
        false => TYPES.replace("code uuid", "code varchar(36)"),
    };
    gateway.exec(&format!(
        "create table spooled {types}; create table told {types}"
    ));
    let mut client = gateway.client().await;
    client
        .ok("set time_zone = '+00:00', @windrow_ack = 'spool'")
        .await;
    let mut direct = gateway.direct().await;
    direct.ok("set time_zone = '+00:00'").await;
    for (values, id) in VALUES.iter().zip(1_u16..) {
        let (number, _) = code(&mut client, &format!("insert into spooled {values}")).await;
        assert_eq!(
            number,
            if REFUSED.contains(&id) { 1235 } else { 0 },
            "{values}"
        );
        if number == 0 {
            let told = code(&mut direct, &format!("insert into told {values}")).await;
            assert_eq!(told.0 != 0, REJECTED.contains(&id), "{values}");
        }
    }
    // The question comes after all that is in the spool.
    client.ok("select 1").await;
    let rows = |table| {
        let columns = "id, tiny, small, big, exact, single, twice, hex(words), hex(short), hex(padded), latin, \
             hex(bytes), hex(fixed), hex(image), day, local, moment, span, plain, mood, flags, born, code, word";
        gateway.exec(&format!("select {columns} from {table} order by id"))
    };
    assert_eq!(rows("spooled"), rows("told"));
    let rejected = gateway.exec("select count(*) from windrow_rejected");
    assert_eq!(rejected.trim(), REJECTED.len().to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn answered_rows_arrive_once_over_kills() {
    const CLIENTS: usize = 6;
    let server = MariaDb::builder().start().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let direct = create(&server, TRIED);
    let exec = |text: &str| sql(&url(&direct), text).unwrap();
    exec("create table t (id int not null, v varchar(20), key (id))");
    let spool = directory.path().to_str().unwrap();
    let mut answered = Vec::new();
    for round in 0..4 {
        let (mut windrow, through) = serve(&direct, &["--spool", spool]);
        let mut writing = tokio::task::JoinSet::new();
        for client in 0..CLIENTS {
            let through = through.clone();
            writing.spawn(async move {
                let form = LoginForm::default();
                let (mut session, _) = RawClient::connect(&through, &form).await.unwrap();
                session.ok("set @windrow_ack = 'spool'").await;
                let mut answered = Vec::new();
                for row in 0..1_000 {
                    let id = (round * CLIENTS + client) * 1_000 + row;
                    let text = format!("insert into t (id, v) values ({id}, 'x')");
                    match session.query(&text).await {
                        Ok(answer) if success(&answer).is_some() => answered.push(id),
                        _ => break,
                    }
                }
                answered
            });
        }
        let taken = async {
            while row_writes(&windrow) < 200 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(TEST_TIMEOUT, taken).await.unwrap();
        windrow.kill9().unwrap();
        while let Some(ids) = writing.join_next().await {
            answered.extend(ids.unwrap());
        }
    }
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_windrow"));
    let mut draining = windrow_testkit::command::command(program);
    draining.args([
        "serve",
        "--drain-only",
        "--to",
        &url(&direct),
        "--spool",
        spool,
    ]);
    run(&mut draining).ends(0);
    assert_eq!(
        exec("select count(*) from (select id from t group by id having count(*) > 1) d").trim(),
        "0"
    );
    let stored = exec("select id from t order by id");
    let stored: Vec<usize> = stored.lines().map(|id| id.parse().unwrap()).collect();
    assert!(answered.len() > 400, "{}", answered.len());
    for id in &answered {
        assert!(
            stored.binary_search(id).is_ok(),
            "{id} was answered and is not stored"
        );
    }
    // At most one row of each client was not answered when it was stored.
    assert!(stored.len() <= answered.len() + 4 * CLIENTS);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_for_the_spool_can_be_killed() {
    let directory = tempfile::tempdir().unwrap();
    let gateway = gateway(&directory, &[]);
    gateway.exec(ROWS);
    let mut client = gateway.client().await;
    client.ok("set @windrow_ack = 'spool'").await;
    client.ok("insert into t (id, v) values (0, 'a')").await;
    let mut holder = gateway.direct().await;
    holder.ok("begin").await;
    holder.ok("insert into t (id, v) values (1, 'mine')").await;
    client
        .ok("insert into t (id, v) values (1, 'theirs')")
        .await;
    client.put(&crate::raw::query(b"delete from t"));
    client.flush().await.unwrap();
    let mut killer = gateway.client().await;
    let is_answered = AtomicBool::new(false);
    let kills = async {
        while !is_answered.load(Ordering::Relaxed) {
            killer.ok(&format!("kill query {FIRST_ID}")).await;
            tokio::task::yield_now().await;
        }
    };
    let answered = async {
        let answer = client.answer(command::QUERY).await.unwrap();
        is_answered.store(true, Ordering::Relaxed);
        answer
    };
    let (answer, ()) = tokio::join!(answered, kills);
    assert_eq!(error(&answer).unwrap().number, 1317);
    holder.ok("rollback").await;
    // A kill that came behind the answer meets this statement, whatever it says.
    client.put(&crate::raw::query(b"do 0"));
    client.flush().await.unwrap();
    client.answer(command::QUERY).await.unwrap();
    let count = client.ok("select group_concat(v order by id) from t").await;
    assert_eq!(first_row(&count), ["a,theirs"]);
}

/// A setting that would have no effect is refused: its writes would be taken for safe.
#[tokio::test(flavor = "multi_thread")]
async fn a_setting_without_effect_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let gateway = gateway(&directory, &[]);
    let mut client = gateway.client().await;
    for text in [
        "set @windrow_ack = 'spool'; select 1",
        "set @windrow_idempotency_key = 'k'; select 1",
        "set @windrow_idempotency_key = ''",
    ] {
        assert_eq!(code(&mut client, text).await.0, 1231, "{text}");
    }
}
