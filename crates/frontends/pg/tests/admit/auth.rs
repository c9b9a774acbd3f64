//! Passwords.

use std::io::Write;
use std::sync::{Arc, Mutex};

use windrow_pg::config::UserConfig;
use windrow_pg::{Console, PgConfig, Roles};
use windrow_testkit::pgclient::{Message, frontend};
use windrow_testkit::postgres::Postgres;

use crate::support::{Stand, config, receive, words};

/// A server that asks the roles `one` and `two` for their passwords.
pub(crate) fn server() -> Postgres {
    let server = Postgres::builder()
        .hba("host all one 127.0.0.1/32 scram-sha-256")
        .hba("host all two 127.0.0.1/32 scram-sha-256")
        .hba("host all old 127.0.0.1/32 md5")
        .start()
        .unwrap();
    server
        .exec(
            "set password_encryption = 'scram-sha-256';
             create role one login password 'secret one';
             create role two login password 'secret two';
             set password_encryption = 'md5';
             create role old login password 'secret old';",
        )
        .unwrap();
    server
}

pub(crate) fn verifier(server: &Postgres, role: &str) -> String {
    let sql = format!("select rolpassword from pg_authid where rolname = '{role}'");
    server.exec(&sql).unwrap()
}

fn user(server: &Postgres, name: &str, of: &str, server_password: Option<&str>) -> UserConfig {
    UserConfig {
        name: name.to_owned(),
        verifier: verifier(server, of).into(),
        server_password: server_password.map(Into::into),
    }
}

fn configured(server: &Postgres) -> PgConfig {
    let mut config = config(&server.url());
    config.roles.users = vec![
        user(server, "one", "one", None),
        // Another password here than at the server.
        user(server, "two", "one", Some("secret two")),
        // The verifier of another password, and nothing else to log in with.
        user(server, "old", "one", None),
    ];
    config.roles.admins = vec!["one".to_owned()];
    config
}

const WHO: &str = "select current_user";

#[test]
fn the_right_password_opens_the_server_as_well() {
    let server = server();
    let stand = Stand::new(configured(&server));
    assert_eq!(
        stand
            .psql(&stand.url("one:secret%20one", "app"), WHO)
            .as_deref(),
        Ok("one")
    );
    assert_eq!(
        stand
            .psql(&stand.url("two:secret%20one", "app"), WHO)
            .as_deref(),
        Ok("two")
    );
    // Of `old` the server asks for what the proof does not give away.
    let error = stand
        .psql(&stand.url("old:secret%20one", "app"), WHO)
        .unwrap_err();
    assert!(
        error.contains("old") && error.contains("password"),
        "{error}"
    );
    assert!(!error.contains("secret"), "{error}");
}

#[test]
fn the_role_of_the_url_comes_with_its_own_password() {
    let server = server();
    let url = format!(
        "postgres://two:secret%20two@127.0.0.1:{}/postgres",
        server.port()
    );
    let mut config = config(&url);
    config.roles.users = vec![user(&server, "two", "one", None)];
    let stand = Stand::new(config);
    assert_eq!(
        stand
            .psql(&stand.url("two:secret%20one", "app"), WHO)
            .as_deref(),
        Ok("two")
    );
}

#[test]
fn nobody_else_comes_in_and_nobody_learns_who_there_is() {
    let server = server();
    let stand = Stand::new(configured(&server));
    for user in ["one", "nobody"] {
        let error = stand
            .psql(&stand.url(&format!("{user}:wrong"), "app"), WHO)
            .unwrap_err();
        let expected = format!("FATAL:  password authentication failed for user \"{user}\"");
        assert!(error.contains(&expected), "{error}");
        assert!(stand.psql(&stand.url(user, "app"), WHO).is_err());
        // The database is not talked of before.
        let error = stand
            .psql(&stand.url(&format!("{user}:wrong"), "none"), WHO)
            .unwrap_err();
        assert!(error.contains(&expected), "{error}");
    }
    assert_eq!(
        stand.count("windrow_pg_logins_total{outcome=\"denied\"}"),
        4
    );
    let salt = |role: &str| {
        let challenge = challenge(&stand, role);
        let text = String::from_utf8_lossy(&challenge.body[4..]).into_owned();
        text.split_once(',').unwrap().1.to_owned()
    };
    assert_eq!(salt("nobody"), salt("nobody"));
    assert_ne!(salt("nobody"), salt("nobody else"));
    assert_eq!(salt("nobody").len(), salt("one").len());
}

/// The server-first-message for a role.
fn challenge(stand: &Stand, role: &str) -> Message {
    let mut socket = stand.socket();
    let mut out = Vec::new();
    frontend::startup(&mut out, &[("user", role), ("database", "app")]);
    socket.write_all(&out).unwrap();
    let offer = receive(&mut socket);
    assert_eq!(offer.body, b"\0\0\0\x0aSCRAM-SHA-256\0\0");
    socket
        .write_all(&initial("SCRAM-SHA-256", b"n,,n=,r=abc"))
        .unwrap();
    receive(&mut socket)
}

fn initial(mechanism: &str, first: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frontend::message(&mut out, b'p', |out| {
        out.extend_from_slice(mechanism.as_bytes());
        out.push(0);
        out.extend_from_slice(&u32::try_from(first.len()).unwrap().to_be_bytes());
        out.extend_from_slice(first);
    });
    out
}

#[test]
fn a_conversation_out_of_its_grammar_ends() {
    let server = server();
    let stand = Stand::new(configured(&server));
    let first = || initial("SCRAM-SHA-256", b"n,,n=,r=abc");
    let mut long = vec![b'p'];
    long.extend_from_slice(&1_000_000_u32.to_be_bytes());
    for (said, code) in [
        (b"Q\0\0\0\x06x\0".to_vec(), "08P01"),
        (long, "08P01"),
        (b"p\0\0\0\x03".to_vec(), "08P01"),
        (b"p\0\0\0\x08abcd".to_vec(), "08P01"),
        (initial("SCRAM-SHA-1", b"n,,n=,r=abc"), "08P01"),
        (
            initial("SCRAM-SHA-256-PLUS", b"p=tls-server-end-point,,n=,r=abc"),
            "08P01",
        ),
        (initial("SCRAM-SHA-256", b"nonsense"), "08P01"),
        (initial("SCRAM-SHA-256", b"\xff\xfe"), "08P01"),
        ([first(), b"p\0\0\0\x07c=x".to_vec()].concat(), "08P01"),
        ([first(), b"p\0\0\0\x0cc=biws,p".to_vec()].concat(), "08P01"),
    ] {
        let mut socket = stand.socket();
        let mut out = Vec::new();
        frontend::startup(&mut out, &[("user", "one"), ("database", "app")]);
        out.extend_from_slice(&said);
        socket.write_all(&out).unwrap();
        let error = crate::support::error(&crate::support::rest(&mut socket));
        assert_eq!(words(&error).0, code, "{said:?}");
    }
}

#[test]
fn the_console_is_for_admins() {
    let server = server();
    let stand = Stand::new(configured(&server));
    let version = stand
        .psql(&stand.url("one:secret%20one", "windrow"), "show version")
        .unwrap();
    assert!(version.starts_with("Windrow "), "{version}");
    let error = stand
        .psql(&stand.url("two:secret%20one", "windrow"), "show version")
        .unwrap_err();
    assert!(error.contains("may not use the console"), "{error}");
}

#[test]
fn roles_can_be_read_again() {
    let server = server();
    let roles = Arc::new(Mutex::new(Err("pg.users.x has no verifier".to_owned())));
    let reload = Arc::clone(&roles);
    let console = Console {
        reload: Arc::new(move || reload.lock().unwrap().clone()),
        ..Console::default()
    };
    let stand = Stand::with(configured(&server), console);
    let admin = stand.url("one:secret%20one", "windrow");
    let error = stand.psql(&admin, "reload").unwrap_err();
    assert!(
        error.contains("nothing was changed: pg.users.x has no verifier"),
        "{error}"
    );
    // That everybody is trusted takes more than a file that was emptied by mistake.
    *roles.lock().unwrap() = Ok(Roles::default());
    assert!(
        stand
            .psql(&admin, "reload")
            .unwrap_err()
            .contains("restart")
    );
    *roles.lock().unwrap() = Ok(Roles {
        users: vec![user(&server, "two", "two", None)],
        admins: vec!["two".to_owned()],
        ..Roles::default()
    });
    stand.psql(&admin, "reload").unwrap();
    assert!(stand.psql(&admin, "reload").is_err());
    let two = stand.url("two:secret%20two", "app");
    assert_eq!(stand.psql(&two, WHO).as_deref(), Ok("two"));
    stand
        .psql(&stand.url("two:secret%20two", "windrow"), "reload")
        .unwrap();
}
