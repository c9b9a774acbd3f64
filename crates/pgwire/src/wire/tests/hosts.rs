use std::time::Duration;

use tokio::net::TcpListener;
use windrow_core::FaultClass;
use windrow_testkit::postgres::Postgres;

use super::support::{TIMEOUT, ask, connect, target};
use crate::wire::Wire;

/// A port of this machine on which nobody listens.
async fn nobody() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().port()
}

#[tokio::test]
async fn the_first_host_that_answers_is_taken() {
    let server = Postgres::start().unwrap();
    let (dead, port) = (nobody().await, server.port());
    let url = format!("postgres://windrow:p@127.0.0.1:{dead},127.0.0.1:{port}/postgres");
    let mut wire = connect(&url).await.unwrap();
    assert_eq!(ask(&mut wire, "select 1").await, "1");
    assert_eq!(&*wire.peer, format!("127.0.0.1:{port}"));
}

#[tokio::test]
async fn a_host_that_cannot_be_reached_is_named_without_the_password() {
    let dead = nobody().await;
    let url = format!("postgres://u:hush@127.0.0.1:{dead},no-such-host.invalid:99/d");
    let fault = connect(&url).await.unwrap_err();
    assert_eq!(fault.class, FaultClass::Unavailable);
    let text = fault.to_string();
    assert!(text.contains(&format!("127.0.0.1:{dead}")), "{text}");
    assert!(text.contains("no-such-host.invalid:99"), "{text}");
    assert!(!format!("{fault:?}").contains("hush"));
}

#[tokio::test]
async fn a_unix_socket_is_a_host() {
    let server = Postgres::start().unwrap();
    let folder = server.socket_folder().to_str().unwrap().replace('/', "%2F");
    let url = format!("postgres://windrow@{folder}:{}/postgres", server.port());
    let mut wire = connect(&url).await.unwrap();
    assert_eq!(ask(&mut wire, "select inet_client_addr()").await, "");
    assert!(wire.peer.ends_with(&format!(".s.PGSQL.{}", server.port())));
    wire.cancel_key().send(TIMEOUT).await.unwrap();
}

#[tokio::test]
async fn a_peer_that_says_nothing_is_given_up() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port();
    let target = target(&format!("postgres://u:hush@127.0.0.1:{port}/d"));
    let fault = Wire::connect(&target, &[], Duration::from_millis(50))
        .await
        .unwrap_err();
    assert_eq!(fault.class, FaultClass::Unavailable);
    assert!(fault.message.contains("connect_timeout"), "{fault}");
}

#[tokio::test]
async fn a_server_of_the_wrong_kind_is_passed_over() {
    let read_only = Postgres::builder()
        .set("default_transaction_read_only", "on")
        .start()
        .unwrap();
    let writable = Postgres::start().unwrap();
    let (a, b) = (read_only.port(), writable.port());
    let base = format!("postgres://windrow@127.0.0.1:{a},127.0.0.1:{b}/postgres");
    for (kind, port) in [("any", a), ("read-write", b), ("primary", a)] {
        let wire = connect(&format!("{base}?target_session_attrs={kind}"))
            .await
            .unwrap();
        assert_eq!(&*wire.peer, format!("127.0.0.1:{port}"), "{kind}");
    }
    let alone = format!("{}?target_session_attrs=read-write", read_only.url());
    let fault = connect(&alone).await.unwrap_err();
    assert_eq!(fault.class, FaultClass::Unavailable);
    assert!(fault.message.contains("read-write"), "{fault}");
}

#[tokio::test]
async fn a_full_server_may_be_tried_again_and_a_missing_database_not() {
    let server = Postgres::builder()
        .set("max_connections", "4")
        .set("superuser_reserved_connections", "0")
        .start()
        .unwrap();
    let missing = connect(&server.url_for("missing")).await.unwrap_err();
    assert_eq!(
        (missing.class, &*missing.code),
        (FaultClass::Invalid, "3D000")
    );
    let mut held = Vec::new();
    let full = loop {
        match connect(&server.url()).await {
            Ok(wire) => held.push(wire),
            Err(fault) => break fault,
        }
        assert!(held.len() < 9);
    };
    assert_eq!(
        (full.class, &*full.code),
        (FaultClass::Unavailable, "53300")
    );
}
