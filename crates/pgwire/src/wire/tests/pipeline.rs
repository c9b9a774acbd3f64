use std::time::Duration;

use windrow_testkit::postgres::Postgres;

use super::support::{TIMEOUT, ask, connect, parse, run, short, sync};
use crate::wire::{Answer, Wire};

async fn exchange(wire: &mut Wire, syncs: usize) -> Vec<String> {
    let mut heard = Vec::new();
    wire.exchange(syncs, &mut |answer| heard.push(short(&answer)))
        .await
        .unwrap();
    heard
}

#[tokio::test]
async fn a_hundred_thousand_statements_go_out_while_their_answers_come_in() {
    const STATEMENTS: usize = 100_000;
    let server = Postgres::start().unwrap();
    let mut wire = connect(&server.url()).await.unwrap();
    ask_ok(&mut wire, "create table t (id int primary key, text text)").await;
    parse(
        &mut wire,
        "s",
        "insert into t values ($1, $2) returning id, text",
    );
    let text = "x".repeat(200);
    for id in 0..STATEMENTS {
        run(&mut wire, "s", &[&id.to_string(), &text]);
    }
    sync(&mut wire);
    // Both directions are far beyond what socket buffers hold.
    assert!(wire.out().len() > 20_000_000);
    let mut ids = 0..STATEMENTS;
    let (mut rows, mut ready) = (0, 0);
    let mut on = |answer: Answer<'_>| match answer {
        Answer::DataRow(row) => {
            let id = std::str::from_utf8(row.get(0).unwrap()).unwrap();
            assert_eq!(id.parse().ok(), ids.next());
            assert_eq!(row.get(1), Some(text.as_bytes()));
        }
        Answer::CommandComplete(tag) => rows += tag.rows(),
        Answer::Ready(status) => ready += usize::from(status == b'I'),
        Answer::Error(error) => panic!("{error}"),
        _ => {}
    };
    tokio::time::timeout(TIMEOUT * 2, wire.exchange(1, &mut on))
        .await
        .expect("sending and receiving wait for each other")
        .unwrap();
    assert_eq!((rows, ready, ids.len()), (100_000, 1, 0));
    assert!(wire.out().is_empty());
    assert_eq!(ask(&mut wire, "select count(*) from t").await, "100000");
}

#[tokio::test]
async fn an_error_skips_to_its_sync_and_no_further() {
    let server = Postgres::start().unwrap();
    let mut wire = connect(&server.url()).await.unwrap();
    ask_ok(&mut wire, "create table t (id int primary key)").await;
    parse(&mut wire, "s", "insert into t values ($1)");
    run(&mut wire, "s", &["1"]);
    run(&mut wire, "s", &["1"]);
    run(&mut wire, "s", &["2"]);
    sync(&mut wire);
    run(&mut wire, "s", &["3"]);
    sync(&mut wire);
    assert_eq!(
        exchange(&mut wire, 2).await,
        [
            "ParseComplete",
            "BindComplete",
            "INSERT 0 1",
            "BindComplete",
            "23505",
            "ready I",
            "BindComplete",
            "INSERT 0 1",
            "ready I"
        ]
    );
    let left = wire.simple("select id from t").await.unwrap().unwrap();
    assert_eq!(left, [[Some("3".to_owned())]]);
}

#[tokio::test]
async fn errors_are_told_in_full() {
    let server = Postgres::start().unwrap();
    let mut wire = connect(&server.url()).await.unwrap();
    ask_ok(
        &mut wire,
        "create schema s; create table s.t (id int constraint positive check (id > 0))",
    )
    .await;
    let error = wire
        .simple("insert into s.t values (-1)")
        .await
        .unwrap()
        .unwrap_err();
    assert_eq!((&*error.severity, &*error.code), ("ERROR", "23514"));
    assert_eq!(error.schema.as_deref(), Some("s"));
    assert_eq!(error.table.as_deref(), Some("t"));
    assert_eq!(error.constraint.as_deref(), Some("positive"));
    assert_eq!(error.detail.as_deref(), Some("Failing row contains (-1)."));
    let error = wire.simple("select  nothing").await.unwrap().unwrap_err();
    assert_eq!((&*error.code, error.position), ("42703", Some(9)));
    let error = wire.simple("select '\0'").await.unwrap().unwrap_err();
    assert_eq!(error.code, "22021");
    assert_eq!(ask(&mut wire, "select 1").await, "1");
}

#[tokio::test]
async fn descriptions_copy_and_empty_statements_are_understood() {
    let server = Postgres::start().unwrap();
    let mut wire = connect(&server.url()).await.unwrap();
    ask_ok(&mut wire, "create table t (id int, name varchar(9))").await;
    use postgres_protocol::message::frontend;
    parse(&mut wire, "s", "select id, name from t where id = $1");
    frontend::describe(b'S', "s", wire.out()).unwrap();
    parse(&mut wire, "", "");
    run(&mut wire, "", &[]);
    frontend::close(b'S', "s", wire.out()).unwrap();
    sync(&mut wire);
    let mut heard = Vec::new();
    wire.exchange(1, &mut |answer| match answer {
        Answer::ParameterDescription(oids) => heard.push(format!("{:?}", oids.collect::<Vec<_>>())),
        Answer::RowDescription(fields) => heard.extend(fields.map(|f| {
            format!(
                "{} {} {} {}",
                f.name, f.type_oid, f.type_modifier, f.column_id
            )
        })),
        other => heard.push(short(&other)),
    })
    .await
    .unwrap();
    assert_eq!(
        heard,
        [
            "ParseComplete",
            "[23]",
            "id 23 -1 1",
            "name 1043 13 2",
            "ParseComplete",
            "BindComplete",
            "EmptyQuery",
            "CloseComplete",
            "ready I"
        ]
    );

    frontend::query("copy t from stdin", wire.out()).unwrap();
    frontend::CopyData::new(&b"1\ta\n2\t\\N\n"[..])
        .unwrap()
        .write(wire.out());
    frontend::copy_done(wire.out());
    assert_eq!(
        exchange(&mut wire, 1).await,
        ["CopyIn", "COPY 2", "ready I"]
    );
    frontend::query("copy t to stdout", wire.out()).unwrap();
    let mut copied = Vec::new();
    wire.exchange(1, &mut |answer| {
        if let Answer::CopyData(data) = answer {
            copied.extend_from_slice(data);
        }
    })
    .await
    .unwrap();
    assert_eq!(copied, b"1\ta\n2\t\\N\n");
    let rows = wire
        .simple("select name from t order by id")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(rows, [[Some("a".to_owned())], [None]]);
}

#[tokio::test]
async fn reported_parameters_and_settings_are_known() {
    let server = Postgres::start().unwrap();
    let target = super::support::target(&server.url());
    let settings = [("lock_timeout", "321ms".to_owned())];
    let mut wire = Wire::connect(&target, &settings, TIMEOUT).await.unwrap();
    assert_eq!(ask(&mut wire, "show lock_timeout").await, "321ms");
    assert_eq!(ask(&mut wire, "show application_name").await, "windrow");
    assert_eq!(wire.parameter("client_encoding"), Some("UTF8"));
    assert_eq!(wire.parameter("nothing"), None);
    ask_ok(
        &mut wire,
        "set timezone to 'Asia/Tokyo'; do $$ begin raise notice 'hm'; end $$",
    )
    .await;
    assert_eq!(wire.parameter("TimeZone"), Some("Asia/Tokyo"));
    let pid = wire.backend_pid().to_string();
    assert_eq!(ask(&mut wire, "select pg_backend_pid()").await, pid);
    wire.terminate().await;
    let gone = format!("select count(*) from pg_stat_activity where pid = {pid}");
    let start = std::time::Instant::now();
    while server.exec(&gone).unwrap().trim() != "0" {
        assert!(start.elapsed() < TIMEOUT, "the session is still there");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_statement_can_be_interrupted_from_outside() {
    let server = Postgres::start().unwrap();
    let mut wire = connect(&server.url()).await.unwrap();
    let key = wire.cancel_key();
    assert!(!format!("{key:?}").contains(&key.secret.to_string()));
    let (done, mut is_done) = tokio::sync::oneshot::channel();
    let interrupting = async {
        // A request that comes before the statement began does nothing: so it is repeated.
        while is_done.try_recv().is_err() {
            key.send(TIMEOUT).await.unwrap();
        }
    };
    let running = async {
        let answer = wire.simple("select pg_sleep(600)").await;
        done.send(()).unwrap();
        answer
    };
    let (answer, ()) = tokio::join!(running, interrupting);
    assert_eq!(answer.unwrap().unwrap_err().code, "57014");
}

async fn ask_ok(wire: &mut Wire, sql: &str) {
    wire.simple(sql).await.unwrap().unwrap();
}

#[tokio::test]
async fn notices_and_errors_come_as_the_server_sent_them() {
    let server = Postgres::start().unwrap();
    let mut wire = connect(&server.url()).await.unwrap();
    postgres_protocol::message::frontend::query(
        "do $$ begin raise warning 'hm' using errcode = '01ABC'; raise 'no' using hint = 'h'; end $$",
        wire.out(),
    )
    .unwrap();
    let (mut notices, mut errors) = (Vec::new(), Vec::new());
    wire.exchange(1, &mut |answer| match answer {
        Answer::Notice(body) => notices.push(body.to_vec()),
        Answer::Error(error) => errors.push(error.body.to_vec()),
        _ => {}
    })
    .await
    .unwrap();
    let has = |body: &[u8], field: &[u8]| body.windows(field.len()).any(|w| w == field);
    assert_eq!((notices.len(), errors.len()), (1, 1));
    assert!(has(&notices[0], b"C01ABC\0Mhm\0"));
    assert!(has(&errors[0], b"Mno\0Hh\0") && errors[0].ends_with(b"\0\0"));
}
