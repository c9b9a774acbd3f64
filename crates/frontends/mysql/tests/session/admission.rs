//! Admission: users, proofs, TLS, limits.

use std::sync::Arc;
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, OptsBuilder, SslOpts};
use tokio::net::TcpStream;
use windrow_mysql_frontend::UserConfig;
use windrow_mysqlwire::auth::{CACHING_SHA2, NATIVE};
use windrow_mysqlwire::{CapabilityFlags, ErrorPacket, LoginRequest, Verifier, Wire};
use windrow_testkit::mariadb::is_mysql;

use crate::support::Stand;

/// The longest packet of a login here.
const MAX_BYTES: usize = 1_000;

fn code(result: Result<Conn, Error>) -> u16 {
    match result {
        Err(Error::Server(error)) => error.code,
        Err(error) => panic!("{error}"),
        Ok(_) => 0,
    }
}

fn user(name: &str, plugin: &str, server_password: Option<&str>) -> UserConfig {
    UserConfig {
        name: name.to_owned(),
        verifier: Verifier::of("s3cret", plugin),
        server_password: server_password.map(Into::into),
    }
}

/// A name for a user of this test alone: servers may be shared.
fn name(stand: &Stand) -> String {
    let name = format!("u_{}", stand.target.database);
    let create = format!(
        "create user '{name}'@'%' identified by 's3cret'; grant all on {}.* to '{name}'@'%'",
        stand.target.database
    );
    stand.database.exec(&create).unwrap();
    name.chars().take(80).collect()
}

fn as_user(stand: &Stand, name: &str, password: &str) -> OptsBuilder {
    stand.opts().user(Some(name)).pass(Some(password))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proof_opens_the_server_without_the_password() {
    let stand = Stand::new().await;
    let name = name(&stand);
    // MySQL 9 knows no native proofs, and asks for the password before it has seen one.
    let is_mysql = is_mysql(stand.database.url()).unwrap();
    let (plugin, password, other) = match is_mysql {
        true => (CACHING_SHA2, Some("s3cret"), NATIVE),
        false => (NATIVE, None, CACHING_SHA2),
    };
    stand.keeper.replace(vec![user(&name, plugin, password)]);
    let mut client = Conn::new(as_user(&stand, &name, "s3cret")).await.unwrap();
    let who: Option<String> = client.query_first("select user()").await.unwrap();
    assert!(who.unwrap().starts_with(&name));
    assert_eq!(code(Conn::new(as_user(&stand, &name, "wrong")).await), 1045);
    assert_eq!(code(Conn::new(as_user(&stand, &name, "")).await), 1045);
    assert_eq!(
        code(Conn::new(as_user(&stand, "nobody", "s3cret")).await),
        1045
    );
    assert_eq!(code(Conn::new(stand.opts()).await), 1045);
    stand.keeper.replace(vec![user(&name, plugin, None)]);
    Conn::new(as_user(&stand, &name, "s3cret")).await.unwrap();
    client.query_drop("do 1").await.unwrap();
    // A user whose verifier is another one is out.
    let changed = user(&name, other, Some("s3cret"));
    stand.keeper.replace(vec![changed]);
    assert!(client.query_drop("do 1").await.is_err());
    let mut client = Conn::new(as_user(&stand, &name, "s3cret")).await.unwrap();
    client.query_drop("do 1").await.unwrap();
    assert_eq!(code(Conn::new(as_user(&stand, &name, "wrong")).await), 1045);
    // A session that changes its user proves itself again.
    let opts = mysql_async::ChangeUserOpts::default().with_pass(Some("wrong".to_owned()));
    assert!(client.change_user(opts).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_servers_refusals_are_its_own() {
    let stand = Stand::new().await;
    let opts = stand.opts().db_name(Some("no_such_database"));
    assert_eq!(code(Conn::new(opts).await), 1049);
    let name = name(&stand);
    // Trusted here, and not there.
    assert_eq!(
        code(Conn::new(as_user(&stand, &name, "s3cret")).await),
        1045
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_can_be_required() {
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let chain = vec![certificate.der().clone()];
    let private = rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .unwrap();
    let stand = Stand::with(|config| {
        config.tls = Some(Arc::new(tls));
        config.require_tls = true;
    })
    .await;
    assert_eq!(code(Conn::new(stand.opts()).await), 3159);
    let any = SslOpts::default()
        .with_danger_accept_invalid_certs(true)
        .with_danger_skip_domain_validation(true);
    let mut client = Conn::new(stand.opts().ssl_opts(Some(any))).await.unwrap();
    assert_eq!(client.query_first("select 7").await.unwrap(), Some(7));
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_beyond_the_most_are_refused() {
    let stand = Stand::with(|config| config.max_clients = 1).await;
    let client = stand.client().await;
    assert_eq!(code(Conn::new(stand.opts()).await), 1040);
    client.disconnect().await.unwrap();
    while Conn::new(stand.opts()).await.is_err() {}
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_away_is_reported() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = closed.local_addr().unwrap().port();
    drop(closed);
    let stand = Stand::with(|config| config.target.port = port).await;
    assert_eq!(code(Conn::new(stand.opts()).await), 1429);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_wait_for_a_server_connection_as_long_as_is_allowed() {
    let stand = Stand::with(|config| {
        config.max_server_connections = 1;
        config.server_wait = Duration::ZERO;
    })
    .await;
    let mut client = stand.client().await;
    assert_eq!(code(Conn::new(stand.opts()).await), 1040);
    // Another user of the same client needs no second one.
    let lock = format!("select get_lock('{}', 0)", stand.target.database);
    for _ in 0..3 {
        assert_eq!(client.query_first(&lock).await.unwrap(), Some(1));
        let same = mysql_async::ChangeUserOpts::default();
        client.change_user(same).await.unwrap();
    }
    client.disconnect().await.unwrap();
    while Conn::new(stand.opts()).await.is_err() {}
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_would_compress_is_refused() {
    let stand = Stand::new().await;
    let mut request = LoginRequest::own(&stand.target);
    request.capabilities |= CapabilityFlags::CLIENT_COMPRESS;
    let mut wire = Wire::new(TcpStream::connect(stand.front).await.unwrap());
    wire.packet(MAX_BYTES).await.unwrap().unwrap();
    wire.set_next(1);
    wire.put(&request.encode());
    wire.flush().await.unwrap();
    let answer = wire.packet(MAX_BYTES).await.unwrap().unwrap();
    assert_eq!(ErrorPacket::parse(&answer).unwrap().number, 1043);
}

/// MySQL's own client sends a zero byte for no password, and then waits for the success.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_mysql_without_a_password_is_trusted() {
    let stand = Stand::new().await;
    for (proof, is_answered) in [(&b""[..], false), (b"\0", false), (&[7; 32], true)] {
        let mut request = LoginRequest::own(&stand.target);
        request.plugin = CACHING_SHA2.into();
        request.proof = proof.to_vec();
        let mut wire = Wire::new(TcpStream::connect(stand.front).await.unwrap());
        wire.packet(MAX_BYTES).await.unwrap().unwrap();
        wire.set_next(1);
        wire.put(&request.encode());
        wire.flush().await.unwrap();
        let answer = wire.packet(MAX_BYTES).await.unwrap().unwrap();
        assert_eq!(answer[..] == [1, 3], is_answered, "{proof:?}: {answer:?}");
    }
}
