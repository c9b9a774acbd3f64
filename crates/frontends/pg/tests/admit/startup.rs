//! The first packets.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use windrow_testkit::pgclient::{Client, Message, frontend};
use windrow_testkit::postgres::{Postgres, shared};

use crate::support::{
    GSSENC_REQUEST, SSL_REQUEST, Stand, config, error, messages, packet, receive, rest, words,
};

fn statuses(messages: &[Message]) -> Vec<String> {
    let all = messages.iter().filter(|m| m.tag == b'S');
    let mut all: Vec<_> = all
        .map(|m| String::from_utf8_lossy(&m.body).into_owned())
        .collect();
    all.sort();
    all
}

#[test]
fn a_client_is_told_what_the_server_itself_tells() {
    let server = Postgres::start().unwrap();
    server
        .exec("create role r login; alter role r set timezone = 'Asia/Tokyo'")
        .unwrap();
    let stand = Stand::new(config(&server.url()));
    let direct = windrow_testkit::pgclient::Address::of(&server.url()).unwrap();
    let direct = windrow_testkit::pgclient::Address {
        role: "r".to_owned(),
        ..direct
    };
    for parameters in [
        &[][..],
        &[("application_name", "me")][..],
        &[("DateStyle", "German"), ("client_encoding", "LATIN1")][..],
        &[("options", "-c timezone=UTC -c intervalstyle=iso_8601")][..],
        &[("options", "-c windrow.join=off")][..],
    ] {
        let through = Client::connect_with(&stand.address("r", "app"), parameters).unwrap();
        let ours: Vec<_> = parameters
            .iter()
            .filter(|(_, v)| !v.contains("windrow"))
            .copied()
            .collect();
        let alone = Client::connect_with(&direct, &ours).unwrap();
        assert_eq!(
            statuses(through.startup()),
            statuses(alone.startup()),
            "{parameters:?}"
        );
        let tags: String = through
            .startup()
            .iter()
            .map(|m| char::from(m.tag))
            .filter(|tag| *tag != 'S')
            .collect();
        assert_eq!(tags, "RKZ");
    }
    // One server connection serves all that ask for the same.
    let before = stand.count("windrow_pg_server_connects_total{outcome=\"ok\"}");
    for _ in 0..20 {
        stand.client("r", "app");
    }
    assert_eq!(
        stand.count("windrow_pg_server_connects_total{outcome=\"ok\"}"),
        before
    );
    assert_eq!(stand.count("windrow_pg_logins_total{outcome=\"ok\"}"), 25);
}

#[test]
fn encryption_that_is_not_there_is_declined() {
    let database = shared().unwrap();
    let stand = Stand::new(config(database.url()));
    let role = windrow_testkit::pgclient::Address::of(database.url())
        .unwrap()
        .role;
    let mut socket = stand.socket();
    for request in [GSSENC_REQUEST, SSL_REQUEST] {
        socket.write_all(request).unwrap();
        let mut answer = [0];
        socket.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"N");
    }
    let mut out = Vec::new();
    frontend::startup(&mut out, &[("user", &role), ("database", "app")]);
    socket.write_all(&out).unwrap();
    assert_eq!(receive(&mut socket).tag, b'R');
}

#[test]
fn words_behind_a_request_for_encryption_are_refused() {
    let database = shared().unwrap();
    let stand = Stand::new(config(database.url()));
    let mut startup = Vec::new();
    frontend::startup(&mut startup, &[("user", "me")]);
    for request in [GSSENC_REQUEST, SSL_REQUEST] {
        let (code, text) = words(&error(&stand.say(&[request, &startup].concat())));
        assert_eq!(code, "08P01");
        assert!(
            text.starts_with("received unencrypted data after"),
            "{text}"
        );
    }
    let mut socket = stand.socket();
    let mut answer = [0];
    for _ in 0..2 {
        socket.write_all(SSL_REQUEST).unwrap();
        socket.read_exact(&mut answer).unwrap();
    }
    assert_eq!(&answer, b"E");
}

#[test]
fn what_is_no_client_is_told_so() {
    let database = shared().unwrap();
    let stand = Stand::new(config(database.url()));
    for (bytes, code) in [
        (packet(&[0, 2, 0, 0]), "0A000"),
        (packet(&[0, 4, 0, 0]), "0A000"),
        (packet(b"\0\x03\0\0user\0me"), "08P01"),
        (packet(b"\0\x03\0\0\0"), "28000"),
    ] {
        assert_eq!(words(&error(&stand.say(&bytes))).0, code, "{bytes:?}");
    }
    // What has no such length is not answered: a goodbye before the first word, another protocol.
    let direct = windrow_testkit::pgclient::Address::of(database.url()).unwrap();
    for bytes in [
        &b"X\0\0\0\x04"[..],
        b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n",
        &[0, 0, 0, 7, 0, 3, 0],
        &[0, 0, 39, 21, 0, 3, 0, 0],
    ] {
        let mut alone = TcpStream::connect(direct.socket).unwrap();
        alone.write_all(bytes).unwrap();
        assert_eq!(stand.say(bytes), rest(&mut alone), "{bytes:?}");
    }
    // Cancel requests are never answered.
    for cancel in [
        &[4, 210, 22, 46, 0, 0, 0, 1, 0, 0, 0, 1][..],
        &[4, 210, 22, 46][..],
    ] {
        assert!(stand.say(&packet(cancel)).is_empty());
    }
    // The longest packet that is allowed is read.
    let filler = "x".repeat(9_900);
    let refused = stand.refusal(&[("user", "me"), ("database", &filler)]);
    assert_eq!(words(&refused).0, "3D000");
}

#[test]
fn newer_versions_are_negotiated() {
    let database = shared().unwrap();
    let stand = Stand::new(config(database.url()));
    let role = windrow_testkit::pgclient::Address::of(database.url())
        .unwrap()
        .role;
    // What is spoken is not negotiated.
    let mut socket = stand.socket();
    let text = format!("\0\x03\0\x02user\0{role}\0database\0app\0\0");
    socket.write_all(&packet(text.as_bytes())).unwrap();
    assert_eq!(receive(&mut socket).tag, b'R');
    let text = format!("\0\x03\x27\x0fuser\0{role}\0database\0app\0_pq_.command\0x\0\0");
    let mut socket = stand.socket();
    socket.write_all(&packet(text.as_bytes())).unwrap();
    let first = receive(&mut socket);
    assert_eq!(first.tag, b'v');
    assert_eq!(first.body, b"\0\x03\0\x02\0\0\0\x01_pq_.command\0");
    assert_eq!(receive(&mut socket).tag, b'R');
}

#[test]
fn refusals_are_the_servers_own() {
    let server = Postgres::start().unwrap();
    server.exec("create role r login").unwrap();
    server.exec("create role nologin").unwrap();
    let mut config = config(&server.url());
    let gone = config.databases[0].target.clone();
    config.databases.push(windrow_pg::DatabaseConfig::new(
        "gone",
        windrow_pgwire::Target::parse(&server.url_for("gone")).unwrap(),
    ));
    drop(gone);
    config.databases.push(windrow_pg::DatabaseConfig::new(
        "alias",
        windrow_pgwire::Target::parse(&server.url_for("gone")).unwrap(),
    ));
    let stand = Stand::new(config);
    for (parameters, code, text) in [
        (
            &[("user", "who"), ("database", "app")][..],
            "28000",
            "role \"who\" does not exist",
        ),
        (
            &[("user", "nologin"), ("database", "app")][..],
            "28000",
            "role \"nologin\" is not permitted to log in",
        ),
        (
            &[("user", "r"), ("database", "gone")][..],
            "3D000",
            "database \"gone\" does not exist",
        ),
        (
            &[("user", "r"), ("database", "alias")][..],
            "3D000",
            "database \"alias\" does not exist",
        ),
        (
            &[("user", "r"), ("database", "other")][..],
            "3D000",
            "database \"other\" does not exist",
        ),
        (
            &[("user", "r")][..],
            "3D000",
            "database \"r\" does not exist",
        ),
        (
            &[("user", "r"), ("database", "app"), ("timezone", "No/Where")][..],
            "22023",
            "invalid value for parameter \"TimeZone\": \"No/Where\"",
        ),
        (
            &[("user", "r"), ("database", "app"), ("fsync", "off")][..],
            "55P02",
            "parameter \"fsync\" cannot be changed now",
        ),
        (
            &[("user", "r"), ("replication", "true")][..],
            "0A000",
            "replication connections are not relayed: connect to the PostgreSQL server itself",
        ),
        (
            &[("user", "r"), ("options", "-c windrow.joyn=off")][..],
            "42704",
            "unrecognized configuration parameter \"windrow.joyn\"",
        ),
    ] {
        let refused = words(&stand.refusal(parameters));
        assert_eq!(
            refused,
            (code.to_owned(), text.to_owned()),
            "{parameters:?}"
        );
    }
    // A server that is away is told of, and once it is back all is well.
    server.stop().unwrap();
    let away = stand.refusal(&[("user", "r"), ("database", "app")]);
    assert_eq!(words(&away).0, "08001");
    server.restart().unwrap();
    crate::support::until("the server is back", || {
        Client::connect(&stand.address("r", "app")).is_ok()
    });
}

#[test]
fn whoever_is_too_slow_is_told() {
    let database = shared().unwrap();
    let mut config = config(database.url());
    config.login_timeout = Duration::from_millis(50);
    let stand = Stand::new(config);
    for said in [&[][..], &[0, 0, 0, 100][..], &[0, 0][..]] {
        let (code, text) = words(&error(&stand.say(said)));
        assert_eq!(code, "57014");
        assert!(text.contains("login_timeout"), "{text}");
    }
}

#[test]
fn there_is_a_bound_and_the_console_is_open_beyond_it() {
    let database = shared().unwrap();
    let role = windrow_testkit::pgclient::Address::of(database.url())
        .unwrap()
        .role;
    let mut config = config(database.url());
    config.max_clients = 2;
    let stand = Stand::new(config);
    let (one, _two) = (stand.client(&role, "app"), stand.client(&role, "app"));
    let refused = stand.refusal(&[("user", &role), ("database", "app")]);
    assert_eq!(
        words(&refused),
        (
            "53300".to_owned(),
            "sorry, too many clients already".to_owned()
        )
    );
    assert!(refused.field(b'H').unwrap().contains("max_clients"));
    let mut console = stand.client(&role, "windrow");
    assert!(messages_of(&console.query("show clients").unwrap()).contains("DDC"));
    drop(one);
    crate::support::until("a place is free", || {
        Client::connect(&stand.address(&role, "app")).is_ok()
    });
}

fn messages_of(all: &[Message]) -> String {
    all.iter().map(|m| char::from(m.tag)).collect()
}

#[test]
fn a_socket_on_this_machine_is_another_way_in() {
    let database = shared().unwrap();
    let role = windrow_testkit::pgclient::Address::of(database.url())
        .unwrap()
        .role;
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(database.url());
    config.unix_socket_dir = Some(folder.path().to_owned());
    let stand = Stand::new(config);
    let port = stand.front.port();
    let file = folder.path().join(format!(".s.PGSQL.{port}"));
    let url = format!(
        "postgres://{role}@/app?host={}&port={port}&sslmode=prefer",
        folder.path().display()
    );
    assert_eq!(stand.psql(&url, "select 1 + 1").as_deref(), Ok("2"));
    let mut socket = std::os::unix::net::UnixStream::connect(&file).unwrap();
    socket.write_all(&packet(&[0, 9, 0, 0])).unwrap();
    let mut all = Vec::new();
    socket.read_to_end(&mut all).unwrap();
    assert_eq!(messages(&all).len(), 1);
    assert!(file.exists());
    let mut stand = stand;
    stand.stop.cancel();
    let running = stand.running.take().unwrap();
    stand.runtime.block_on(running).unwrap();
    assert!(!file.exists());
}

#[test]
fn a_new_session_begins_as_a_new_connection_would() {
    let server = Postgres::start().unwrap();
    server.exec("create role worker login").unwrap();
    let stand = Stand::new(config(&server.url()));
    let value = |sql: &str| {
        let mut client = stand.client("worker", "app");
        let answer = client.query(sql).unwrap();
        windrow_testkit::pgclient::backend::first_value(&answer).unwrap()
    };
    assert_eq!(value("show work_mem"), "4MB");
    let database = server.exec("select current_database()").unwrap();
    for (change, is) in [
        ("alter role worker set work_mem = '5MB'".to_owned(), "5MB"),
        (
            format!(
                "alter role worker in database {} set work_mem = '6MB'",
                database.trim()
            ),
            "6MB",
        ),
        (
            format!(
                "alter role worker in database {} reset all; alter role worker reset all; \
                 alter database {} set work_mem = '7MB'",
                database.trim(),
                database.trim()
            ),
            "7MB",
        ),
        (
            "drop role worker; create role worker login; alter role worker set work_mem = '8MB'"
                .to_owned(),
            "8MB",
        ),
    ] {
        server.exec(&change).unwrap();
        assert_eq!(value("show work_mem"), is, "{change}");
    }
}

#[test]
fn a_role_that_may_not_log_in_any_more_is_told_so() {
    let server = Postgres::start().unwrap();
    server.exec("create role worker login").unwrap();
    let stand = Stand::new(config(&server.url()));
    let sql = "select 1";
    let url = stand.url("worker", "app");
    let mut inside = stand.client("worker", "app");
    assert_eq!(stand.psql(&url, sql).unwrap(), "1");
    server.exec("alter role worker nologin").unwrap();
    let error = stand.psql(&url, sql).unwrap_err();
    assert!(
        error.contains("role \"worker\" is not permitted to log in"),
        "{error}"
    );
    // Who is in is ended soon.
    crate::support::until("the session is ended", || inside.query(sql).is_err());
    server
        .exec("alter role worker login connection limit 1")
        .unwrap();
    let inside = stand.client("worker", "app");
    let error = stand.psql(&url, sql).unwrap_err();
    assert!(
        error.contains("too many connections for role \"worker\""),
        "{error}"
    );
    drop(inside);
    let start = std::time::Instant::now();
    while let Err(error) = stand.psql(&url, sql) {
        assert!(start.elapsed() < crate::support::PATIENCE, "{error}");
    }
    server.exec("drop role worker").unwrap();
    let error = stand.psql(&url, sql).unwrap_err();
    assert!(error.contains("role \"worker\" does not exist"), "{error}");
}

#[test]
fn a_server_connection_outlives_the_clients_of_its_database() {
    let server = Postgres::start().unwrap();
    let stand = Stand::new(config(&server.url()));
    let pid = || {
        let answer = stand
            .client("windrow", "app")
            .query("select pg_backend_pid()");
        windrow_testkit::pgclient::backend::first_value(&answer.unwrap()).unwrap()
    };
    let first = pid();
    let start = std::time::Instant::now();
    let lives = format!("select count(*) from pg_stat_activity where pid = {first}");
    while start.elapsed() < Duration::from_secs(3) {
        assert_eq!(server.exec(&lives).unwrap().trim(), "1");
    }
    assert_eq!(pid(), first);
}

#[test]
fn a_database_that_everybody_has_left_can_be_dropped() {
    let server = Postgres::start().unwrap();
    server.exec("create database gone").unwrap();
    let mut config = config(&server.url());
    config.server_idle = Duration::from_millis(200);
    config.databases.push(windrow_pg::DatabaseConfig::new(
        "gone",
        windrow_pgwire::Target::parse(&server.url_for("gone")).unwrap(),
    ));
    let stand = Stand::new(config);
    let url = stand.url("windrow", "app");
    // By one who comes through here too: at once.
    stand.client("windrow", "gone").query("select 1").unwrap();
    stand.psql(&url, "drop database gone").unwrap();
    stand.psql(&url, "create database gone").unwrap();
    // By one who does not: once the connections have been idle for long enough.
    stand.client("windrow", "gone").query("select 1").unwrap();
    let start = std::time::Instant::now();
    let count = "select count(*) from pg_stat_activity where datname = 'gone'";
    while server.exec(count).unwrap().trim() != "0" {
        assert!(start.elapsed() < crate::support::PATIENCE);
    }
    server.exec("drop database gone").unwrap();
}
