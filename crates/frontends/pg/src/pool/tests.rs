use std::time::Duration;

use windrow_pgwire::Target;
use windrow_pgwire::target::Credential;
use windrow_testkit::postgres::{Postgres, PostgresDatabase, shared};
use windrow_testkit::proxy::Proxy;

use super::*;
use crate::client::{Identity, Settings};
use crate::config::DatabaseConfig;

fn config(url: &str) -> PgConfig {
    PgConfig {
        databases: vec![DatabaseConfig::new("app", Target::parse(url).unwrap())],
        max_server_connections: 1,
        ..PgConfig::default()
    }
}

fn pool(url: &str) -> Pool {
    Pool::new(&config(url), &PgMetrics::default())
}

fn who(role: &str, set: &[(&str, &str)], application_name: &str) -> Who {
    let set = set
        .iter()
        .map(|(name, sql)| (Name::from(*name), Name::from(*sql)));
    Who {
        identity: Identity {
            database: "app".into(),
            role: role.into(),
        },
        settings: Settings {
            startup: Arc::default(),
            set: set.collect(),
            version: 0,
        },
        application_name: application_name.into(),
        credential: Credential::Own,
    }
}

fn anybody(database: &PostgresDatabase) -> Who {
    let role = Target::parse(database.url()).unwrap().role().to_owned();
    who(&role, &[], "test")
}

async fn ask(loan: &mut Loan, sql: &str) -> String {
    let rows = loan.wire.simple(sql).await.unwrap().unwrap();
    let first = rows
        .into_iter()
        .next()
        .and_then(|row| row.into_iter().next());
    first.flatten().unwrap_or_default()
}

async fn back(loan: Loan, who: &Who, generated: bool, clean: bool) -> Option<i64> {
    let leftover = match (generated, clean) {
        (_, false) => Leftover::Unknown,
        (true, true) => Leftover::Values,
        (false, true) => Leftover::Nothing,
    };
    match loan.give_back(&who.settings, leftover, &[]).await {
        GivenBack::Free(drawn) => drawn.last,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn equal_sessions_share_a_connection_without_a_word() {
    let database = shared().unwrap();
    let upstream = database
        .url()
        .split('@')
        .nth(1)
        .unwrap()
        .split('/')
        .next()
        .unwrap();
    let proxy = Proxy::builder(upstream).start().await.unwrap();
    let pool = pool(&proxy.through(database.url()).unwrap());
    let mut who = anybody(&database);
    let pid = pool.take(&who).await.unwrap();
    let first = pid.wire.backend_pid();
    back(pid, &who, false, true).await;
    let before = proxy.round_trips();
    for _ in 0..3 {
        let loan = pool.take(&who).await.unwrap();
        assert_eq!(loan.wire.backend_pid(), first);
        back(loan, &who, false, true).await;
    }
    assert_eq!(proxy.round_trips(), before);
    // Everything that differs is said at once.
    who.application_name = "other".into();
    who.settings.set = vec![
        (
            Name::from("search_path"),
            Name::from("SET search_path = pg_catalog"),
        ),
        (
            Name::from("timezone"),
            Name::from("SET TIME ZONE 'Asia/Tokyo' -- a comment"),
        ),
    ]
    .into();
    let mut loan = pool.take(&who).await.unwrap();
    assert_eq!(
        (loan.wire.backend_pid(), proxy.round_trips()),
        (first, before + 1)
    );
    let settings = ask(
        &mut loan,
        "select concat_ws('|', current_setting('application_name'), current_setting('TimeZone'), current_setting('search_path'))",
    );
    assert_eq!(settings.await, "other|Asia/Tokyo|pg_catalog");
    back(loan, &who, false, true).await;
    assert_eq!(proxy.connections(), 1);
}

#[tokio::test]
async fn what_is_left_behind_keeps_the_connection() {
    let database = shared().unwrap();
    let pool = pool(database.url());
    let who = anybody(&database);
    let mut loan = pool.take(&who).await.unwrap();
    for (leave, clean_up, why) in [
        (
            "create temp table t ()",
            "drop table t",
            "temporary objects",
        ),
        (
            "create function pg_temp.f() returns int language sql as 'select 1'",
            "drop function pg_temp.f()",
            "temporary objects",
        ),
        ("listen c", "unlisten *", "LISTEN"),
        ("prepare p as select 1", "deallocate p", "PREPARE"),
        (
            "begin; declare c cursor with hold for select 1; commit",
            "close all",
            "a cursor WITH HOLD",
        ),
        (
            "select pg_advisory_lock(1)",
            "select pg_advisory_unlock_all()",
            "an advisory lock",
        ),
        ("set role pg_monitor", "reset role", "another role"),
        (
            "set session authorization pg_monitor",
            "reset session authorization",
            "another role",
        ),
        (
            "select set_config('work_mem', '1MB', false)",
            "reset work_mem",
            "session settings",
        ),
        ("begin", "rollback", "an open transaction"),
    ] {
        ask(&mut loan, leave).await;
        let pid = loan.wire.backend_pid();
        let (mut kept, said) = match loan.give_back(&who.settings, Leftover::Unknown, &[]).await {
            GivenBack::Kept(kept, why) => (kept, why),
            other => panic!("{leave}: {other:?}"),
        };
        assert_eq!((said, kept.wire.backend_pid()), (why, pid), "{leave}");
        ask(&mut kept, clean_up).await;
        match kept.give_back(&who.settings, Leftover::Unknown, &[]).await {
            GivenBack::Free { .. } => {}
            other => panic!("{clean_up}: {other:?}"),
        }
        loan = pool.take(&who).await.unwrap();
        assert_eq!(loan.wire.backend_pid(), pid);
    }
}

#[tokio::test]
async fn settings_that_the_session_knows_of_keep_nothing() {
    let database = shared().unwrap();
    let pool = pool(database.url());
    let mut who = anybody(&database);
    let mut loan = pool.take(&who).await.unwrap();
    ask(&mut loan, "set time zone 'UTC'").await;
    ask(&mut loan, "set role pg_monitor").await;
    ask(&mut loan, "set application_name = 'new'").await;
    let plain = who.settings.clone();
    who.settings.set = vec![
        (Name::from("role"), Name::from("set role pg_monitor")),
        (Name::from("timezone"), Name::from("set time zone 'UTC'")),
    ]
    .into();
    back(loan, &who, false, false).await;
    who.settings = plain;
    let mut loan = pool.take(&who).await.unwrap();
    let state = ask(
        &mut loan,
        "select concat_ws('|', current_user = session_user, current_setting('TimeZone') = reset_val, current_setting('application_name')) \
         from pg_settings where name = 'TimeZone'",
    );
    assert_eq!(state.await, "t|t|test");
}

#[tokio::test]
async fn nobody_sees_what_another_generated_or_hid() {
    let database = shared().unwrap();
    database
        .exec("create table t (id serial, note text)")
        .unwrap();
    let pool = pool(database.url());
    let who = anybody(&database);
    for clean in [true, false] {
        let mut loan = pool.take(&who).await.unwrap();
        let pid = loan.wire.backend_pid();
        ask(&mut loan, "insert into t (note) values ('x') returning id").await;
        ask(&mut loan, "select set_config('my.tenant', '5', false)").await;
        let lastval: i64 = database
            .exec("select max(id) from t")
            .unwrap()
            .parse()
            .unwrap();
        assert_eq!(back(loan, &who, true, clean).await, Some(lastval));
        let mut loan = pool.take(&who).await.unwrap();
        assert_eq!(loan.wire.backend_pid(), pid);
        if !clean {
            assert_eq!(
                ask(&mut loan, "select current_setting('my.tenant', true)").await,
                ""
            );
        }
        assert!(loan.wire.simple("select lastval()").await.unwrap().is_err());
        // A session that generated nothing is told of nothing.
        assert_eq!(back(loan, &who, true, clean).await, None);
    }
}

#[tokio::test]
async fn whoever_waits_too_long_is_told_which_limit_it_is() {
    let database = shared().unwrap();
    let mut config = config(database.url());
    config.server_wait = Duration::ZERO;
    let metrics = PgMetrics::default();
    let pool = Pool::new(&config, &metrics);
    let who = anybody(&database);
    let loan = pool.take(&who).await.unwrap();
    let fault = pool.take(&who).await.unwrap_err();
    assert_eq!(&*fault.code, "53300");
    assert!(
        fault.message.contains("max_server_connections") && fault.message.contains("server_wait"),
        "{fault}"
    );
    assert_eq!((metrics.servers_used.get(), metrics.waiting.get()), (1, 0));
    drop(loan);
    assert_eq!(metrics.servers_used.get(), 0);
    pool.take(&who).await.unwrap();
}

#[tokio::test]
async fn whoever_waits_is_served_in_the_order_of_asking() {
    let database = shared().unwrap();
    let pool = pool(database.url());
    let who = anybody(&database);
    let loan = pool.take(&who).await.unwrap();
    let pid = loan.wire.backend_pid();
    let first = async {
        let loan = pool.take(&who).await.unwrap();
        assert_eq!(loan.wire.backend_pid(), pid);
        loan
    };
    let second = pool.take(&who);
    tokio::pin!(first, second);
    assert!(futures_pending(first.as_mut()).await && futures_pending(second.as_mut()).await);
    back(loan, &who, false, true).await;
    let loan = first.await;
    assert!(futures_pending(second.as_mut()).await);
    back(loan, &who, false, true).await;
    second.await.unwrap();
}

/// Polls once; true if it waits.
async fn futures_pending<F: Future>(future: std::pin::Pin<&mut F>) -> bool {
    tokio::select! {
        biased;
        _ = future => false,
        () = std::future::ready(()) => true,
    }
}

#[tokio::test]
async fn another_role_takes_the_place_of_an_idle_connection() {
    let server = Postgres::start().unwrap();
    server
        .exec("create role a login; create role b login")
        .unwrap();
    let metrics = PgMetrics::default();
    let pool = Pool::new(&config(&server.url()), &metrics);
    for role in ["a", "b", "a"] {
        let who = who(role, &[], "");
        let mut loan = pool.take(&who).await.unwrap();
        assert_eq!(ask(&mut loan, "select current_user").await, role);
        back(loan, &who, false, true).await;
        assert_eq!(
            (metrics.servers_used.get(), metrics.servers_idle.get()),
            (0, 1)
        );
    }
    let lines = pool.lines();
    assert_eq!(lines.len(), 1);
    assert_eq!((&*lines[0].role, lines[0].idle, lines[0].used), ("a", 1, 0));
    pool.close().await;
    assert_eq!(metrics.servers_idle.get(), 0);
}

#[tokio::test]
async fn connections_that_the_server_ended_are_not_given_out() {
    let server = Postgres::start().unwrap();
    let pool = pool(&server.url());
    let who = who("windrow", &[], "");
    let loan = pool.take(&who).await.unwrap();
    let before = loan.wire.backend_pid();
    back(loan, &who, false, true).await;
    server.restart().unwrap();
    // The runtime has to look at its sockets once.
    tokio::task::yield_now().await;
    let mut loan = pool.take(&who).await.unwrap();
    assert_ne!(loan.wire.backend_pid(), before);
    ask(&mut loan, "select 1").await;
    server
        .exec(&format!(
            "select pg_terminate_backend({})",
            loan.wire.backend_pid()
        ))
        .unwrap();
    let given = loan.give_back(&who.settings, Leftover::Values, &[]).await;
    assert!(matches!(given, GivenBack::Lost), "{given:?}");
}

#[tokio::test]
async fn idle_connections_are_closed_after_their_time() {
    let database = shared().unwrap();
    let mut config = config(database.url());
    config.server_idle = Duration::ZERO;
    let metrics = PgMetrics::default();
    let pool = Pool::new(&config, &metrics);
    let who = anybody(&database);
    let loan = pool.take(&who).await.unwrap();
    back(loan, &who, false, true).await;
    assert_eq!(metrics.servers_idle.get(), 1);
    pool.sweep().await;
    assert_eq!(metrics.servers_idle.get(), 0);
}

#[tokio::test]
async fn settings_that_cannot_be_had_are_told_in_the_servers_words() {
    let database = shared().unwrap();
    let pool = pool(database.url());
    let role = anybody(&database).identity.role;
    let who = who(&role, &[("timezone", "SET TIME ZONE 'Nowhere/Land'")], "");
    let fault = pool.take(&who).await.unwrap_err();
    assert_eq!(
        &*fault.message,
        "invalid value for parameter \"TimeZone\": \"Nowhere/Land\""
    );
    let nowhere = Who {
        identity: Identity {
            database: "nowhere".into(),
            ..who.identity
        },
        ..who
    };
    assert_eq!(&*pool.take(&nowhere).await.unwrap_err().code, "3D000");
}

#[tokio::test]
async fn equal_sessions_are_told_the_same_report_at_the_price_of_one_connection() {
    let database = shared().unwrap();
    let metrics = PgMetrics::default();
    let pool = Pool::new(&config(database.url()), &metrics);
    let mut who = anybody(&database);
    who.settings.startup = vec![(Name::from("timezone"), Name::from("Asia/Tokyo"))].into();
    let reports = futures_all(&pool, &who).await;
    assert!(
        reports
            .iter()
            .all(|report| Arc::ptr_eq(report, &reports[0]))
    );
    assert_eq!(metrics.connects_ok.get(), 1);
    let mut out = bytes::BytesMut::new();
    reports[0].write(&mut out, "me");
    let text = String::from_utf8_lossy(&out);
    for part in [
        "TimeZone\0Asia/Tokyo\0",
        "application_name\0me\0",
        "server_version\0",
        "client_encoding\0UTF8\0",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(reports[0].standard_strings && reports[0].utf8);
    assert_eq!(text.matches("application_name").count(), 1);
    // Once it is known, nobody waits for it although all server connections are in use.
    let kept = pool.take(&who).await.unwrap();
    let key = (who.identity.clone(), who.settings.clone());
    let database = pool.database(&who).unwrap();
    let fault = database.take_now(&who).await.unwrap_err();
    assert_eq!(
        (&*fault.code, fault.class),
        ("53300", FaultClass::Overloaded)
    );
    assert!(pool.reports.get(&key, async |_| Err(fault)).await.is_ok());
    drop(kept);
    who.settings.startup = vec![(Name::from("timezone"), Name::from("Nowhere"))].into();
    let fault = pool.report(&who).await.unwrap_err();
    assert_eq!(&*fault.code, "22023");
}

async fn futures_all(pool: &Pool, who: &Who) -> Vec<Arc<Report>> {
    let (a, b, c) = tokio::join!(pool.report(who), pool.report(who), pool.report(who));
    vec![a.unwrap(), b.unwrap(), c.unwrap()]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_at_once_never_have_more_than_there_may_be() {
    let server = Postgres::start().unwrap();
    // The server itself would refuse one more.
    server
        .exec("create role r login connection limit 3")
        .unwrap();
    let mut config = config(&server.url());
    config.max_server_connections = 3;
    let pool = Arc::new(Pool::new(&config, &PgMetrics::default()));
    let mut sessions = tokio::task::JoinSet::new();
    for session in 0..30 {
        let pool = Arc::clone(&pool);
        sessions.spawn(async move {
            let name = format!("session {session}");
            let zone = if session % 2 == 0 {
                "Asia/Tokyo"
            } else {
                "Europe/Paris"
            };
            let set = format!("SET TIME ZONE '{zone}'");
            let who = who("r", &[("timezone", &set)], &name);
            for round in 0..20 {
                let mut loan = pool.take(&who).await.unwrap();
                let state = ask(
                    &mut loan,
                    "select current_setting('application_name') || current_setting('TimeZone')",
                );
                assert_eq!(state.await, format!("{name}{zone}"));
                back(loan, &who, round % 3 == 0, round % 5 != 0).await;
            }
        });
    }
    while let Some(session) = sessions.join_next().await {
        session.unwrap();
    }
    let opened = server.exec("select count(*) from pg_stat_activity where usename = 'r'");
    assert!(opened.unwrap().parse::<u32>().unwrap() <= 3);
}
