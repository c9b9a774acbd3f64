//! Whatever a server's settings are, a write means what it says.

use windrow_core::sink::Purpose;
use windrow_core::{Rung, Unit, Verdict};
use windrow_database::Driver;
use windrow_database::Options;
use windrow_mysql::Mysql;
use windrow_testkit::mariadb::{MariaDb, MariaDbBuilder, is_mysql, shared, sql};

use crate::support::*;
use windrow_testkit::row;

/// Settings that only one of the products has.
struct Own {
    options: &'static [(&'static str, &'static str)],
    globals: &'static str,
}

const MARIADB: Own = Own {
    options: &[
        ("skip-character-set-client-handshake", "1"),
        ("old-mode", "NO_DUP_KEY_WARNINGS_WITH_IGNORE"),
        (
            "sql-mode",
            "ANSI,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH,NO_TABLE_OPTIONS,STRICT_ALL_TABLES",
        ),
    ],
    globals:
        "set global check_constraint_checks = 0, global in_predicate_conversion_threshold = 2, \
              global max_statement_time = 30, global tx_read_only = 1;
              revoke super on *.* from app@'%'",
};

const MYSQL: Own = Own {
    options: &[(
        "sql-mode",
        "ANSI,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH,STRICT_ALL_TABLES",
    )],
    globals: "set global max_execution_time = 30000, global transaction_read_only = 1;
              revoke super, connection_admin on *.* from app@'%'",
};

/// Settings that make other servers of a server.
fn odd(own: &Own) -> MariaDbBuilder {
    let settings = [
        ("completion-type", "RELEASE"),
        ("transaction-isolation", "SERIALIZABLE"),
        ("character-set-server", "latin1"),
        ("default-storage-engine", "MyISAM"),
        ("max-join-size", "1"),
        ("max-error-count", "0"),
        (
            "init-connect",
            "SET autocommit = 0, sql_select_limit = 1, sql_safe_updates = 1, foreign_key_checks = 0",
        ),
    ];
    let server = MariaDb::builder();
    settings
        .iter()
        .chain(own.options)
        .fold(server, |server, (name, value)| server.set(name, value))
}

#[tokio::test]
async fn a_server_of_odd_settings_changes_no_answer() {
    let own = match is_mysql(shared().unwrap().url()).unwrap() {
        true => MYSQL,
        false => MARIADB,
    };
    let server = odd(&own).start().unwrap();
    let url = server.create_database().unwrap();
    sql(
        &url,
        "set global sql_select_limit = 1, global sql_auto_is_null = 1, global unique_checks = 0,
           global foreign_key_checks = 0, global time_zone = '+05:00', global lc_messages = 'de_DE';
         create user app@'%'; grant all on *.* to app@'%';
         create table p (id int primary key) engine=innodb character set utf8mb4;
         create table t (id int primary key, k char(9), at timestamp null, p int, n int check (n < 100),
           unique (k), foreign key (p) references p (id)) engine=innodb character set utf8mb4;
         insert into p values (1);",
    )
    .unwrap();
    sql(&url, own.globals).unwrap();
    let url = url.replace("root@", "app@");
    let sink = Driver::open(&Mysql, &url, &Options::default())
        .await
        .unwrap();
    let mut executor = sink.connect(Purpose::Batches).await.unwrap();
    let mut run = async |units: Vec<Unit>| {
        let report = executor.execute(&units).await;
        let outcomes: Vec<_> = report.verdicts.into_iter().map(told).collect();
        outcomes
    };
    let put = insert("t", &["id", "k", "at", "p", "n"]).shape();
    let at = "2020-01-01T00:00:00Z";
    let rows = (0..40).map(|n| unit(&put, row![n, format!("ä\\{n}"), at, 1, n]));
    for outcome in run(rows.collect()).await {
        assert_eq!(outcome.unwrap()[0].rows, 1);
    }
    let read = get("t").shape();
    let told = run((0..40).map(|n| unit(&read, row![n])).collect()).await;
    for (n, outcome) in told.iter().enumerate() {
        let row = &outcome.as_ref().unwrap()[0].returned.as_ref().unwrap().rows[0];
        assert_eq!((&row[1], &row[2]), (&format!("ä\\{n}").into(), &at.into()));
    }
    let keep = insert("t", &["id", "k", "p", "n"]).ignore().shape();
    let bad = vec![
        unit(&keep, row![50, "no parent", 2, 1]),
        unit(&keep, row![51, "too large", 1, 100]),
        unit(&keep, row![52, "ä\\5", 1, 1]),
        unit(&keep, row![3, "is there", 1, 1]),
        unit(&keep, row![4, "is there", 1, 1]),
    ];
    let outcomes = run(bad).await;
    let codes = outcomes[..3].iter().map(|o| fault(o).code.to_string());
    assert_eq!(codes.collect::<Vec<_>>(), ["23503", "23514", "23505"]);
    assert_eq!(fault(&outcomes[2]).constraint(), Some("k"));
    assert!(
        outcomes[3..]
            .iter()
            .all(|o| o.as_ref().unwrap()[0].rows == 0)
    );
    let set = update("t", &["n"]).key(&["k"]).shape();
    let changed = run((0..40)
        .map(|n| unit(&set, row![n + 1, format!("Ä\\{n}")]))
        .collect())
    .await;
    assert!(
        changed.iter().all(|o| o.as_ref().unwrap()[0].rows == 1),
        "{changed:?}"
    );
    let drop = delete("t").returning(&["k"]).shape();
    let gone = run((0..40).map(|n| unit(&drop, row![n])).collect()).await;
    assert!(
        gone.iter().all(|o| o.as_ref().unwrap()[0].rows == 1),
        "{gone:?}"
    );
}

/// `COMMIT AND CHAIN` opens the next transaction at once, and what should commit by itself would be
/// a part of it.
#[tokio::test]
async fn what_is_acknowledged_outlives_the_server_whatever_a_commit_begins() {
    let server = MariaDb::builder()
        .fsync(true)
        .set("completion-type", "CHAIN")
        .start()
        .unwrap();
    let url = server.create_database().unwrap();
    sql(&url, "create table t (id int primary key, n int)").unwrap();
    let sink = Driver::open(&Mysql, &url, &Options::default())
        .await
        .unwrap();
    let mut executor = sink.connect(Purpose::Batches).await.unwrap();
    let put = insert("t", &["id", "n"]).shape();
    let set = update("t", &["n"]).shape();
    let mut acknowledged = 0;
    for from in (0..800).step_by(20) {
        let inserts = (from..from + 20).map(|id| unit(&put, row![id, 0]));
        let updates = (from..from + 10).map(|id| unit(&set, row![1, id]));
        let single = unit(&put, row![from + 10_000, 0]);
        for units in [inserts.collect(), updates.collect(), vec![single]] {
            let units: Vec<Unit> = units;
            let verdicts = executor.execute(&units).await.verdicts;
            let told = verdicts
                .iter()
                .filter(|v| matches!(v, Verdict::Final(Ok(_))));
            acknowledged += told.count();
        }
    }
    assert_eq!(acknowledged, 800 + 400 + 40);
    server.kill9().unwrap();
    server.restart().unwrap();
    let stored = sql(&url, "select count(*), sum(n) from t").unwrap();
    assert_eq!(stored, "840|400");
}

#[tokio::test]
async fn a_log_of_statements_takes_every_write() {
    let server = MariaDb::builder()
        .set("log-bin", "log")
        .set("server-id", "1")
        .set("binlog-format", "STATEMENT")
        .start()
        .unwrap();
    let url = server.create_database().unwrap();
    sql(&url, "create table t (id int primary key, n int)").unwrap();
    let sink = Driver::open(&Mysql, &url, &Options::default())
        .await
        .unwrap();
    let mut executor = sink.connect(Purpose::Batches).await.unwrap();
    let shapes = [
        insert("t", &["id", "n"]).shape(),
        insert("t", &["id", "n"]).ignore().shape(),
        insert("t", &["id", "n"]).upsert().shape(),
        update("t", &["n"]).shape(),
    ];
    for (n, shape) in shapes.iter().enumerate() {
        let row = |id: i32| if n == 3 { row![7, id] } else { row![id, 1] };
        let units: Vec<Unit> = (0..20).map(|id| unit(shape, row(id))).collect();
        let report = executor.execute(&units).await;
        assert_eq!(rung(&report, Rung::Fused), 20, "{report:?}");
        for verdict in report.verdicts {
            assert_eq!(told(verdict).unwrap()[0].rows, u64::from(n != 1));
        }
    }
    assert_eq!(sql(&url, "select sum(n) from t").unwrap(), "140");
}

/// A right that only administrators have is needed for nothing.
#[tokio::test]
async fn an_ordinary_user_can_write() {
    let bed = Bed::new("create table t (id int primary key)").await;
    let database = bed.sql("select database()");
    let user = format!("u{}", bed.sql("select left(sha2(database(), 256), 20)"));
    bed.sql(&format!(
        "create user {user}@'%'; grant all on {database}.* to {user}@'%'"
    ));
    let url = bed.database.url().replace("root@", &format!("{user}@"));
    let sink = Driver::open(&Mysql, &url, &Options::default())
        .await
        .unwrap();
    let mut executor = sink.connect(Purpose::Batches).await.unwrap();
    let put = insert("t", &["id"]).shape();
    let units: Vec<Unit> = (0..5).map(|id| unit(&put, row![id])).collect();
    let report = executor.execute(&units).await;
    bed.sql(&format!("drop user {user}@'%'"));
    for verdict in report.verdicts {
        assert_eq!(told(verdict).unwrap()[0].rows, 1);
    }
}
