//! TLS for clients.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use windrow_pg::PgConfig;
use windrow_pg::config::UserConfig;
use windrow_testkit::pgclient::{backend, frontend};
use windrow_testkit::postgres::Postgres;

use crate::auth::{server, verifier};
use crate::support::{SSL_REQUEST, Stand, config, rest, until, words};

struct Certificate {
    der: CertificateDer<'static>,
    pem: String,
    key: PrivateKeyDer<'static>,
}

fn certificate() -> Certificate {
    let key = KeyPair::generate().unwrap();
    let params =
        CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    Certificate {
        der: certificate.der().clone(),
        pem: certificate.pem(),
        key: PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
    }
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn stand(
    server: &Postgres,
    folder: &Path,
    change: impl FnOnce(&mut PgConfig),
) -> (Stand, Certificate) {
    let certificate = certificate();
    std::fs::write(folder.join("root.crt"), &certificate.pem).unwrap();
    let tls = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der.clone()], certificate.key.clone_key())
        .unwrap();
    let mut config = config(&server.url());
    config.tls = Some(Arc::new(tls));
    config.roles.users = vec![UserConfig {
        name: "one".to_owned(),
        verifier: verifier(server, "one").into(),
        server_password: None,
    }];
    change(&mut config);
    (Stand::new(config), certificate)
}

const WHO: &str = "select current_user";

#[test]
fn every_sslmode_of_libpq_and_channel_binding() {
    let server = server();
    let folder = tempfile::tempdir().unwrap();
    let (stand, _) = stand(&server, folder.path(), |_| {});
    let root = folder.path().join("root.crt");
    for parameters in [
        "sslmode=disable",
        "sslmode=allow",
        "sslmode=prefer",
        "sslmode=require",
        "sslmode=require&channel_binding=require",
        "sslmode=require&channel_binding=disable",
        "sslmode=verify-ca&sslrootcert=ROOT",
        "sslmode=verify-full&sslrootcert=ROOT&channel_binding=require",
    ] {
        let parameters = parameters.replace("ROOT", &root.display().to_string());
        let url = format!("{}?{parameters}", stand.url("one:secret%20one", "app"));
        assert_eq!(stand.psql(&url, WHO).as_deref(), Ok("one"), "{parameters}");
        let wrong = url.replace("secret%20one", "wrong");
        let error = stand.psql(&wrong, WHO).unwrap_err();
        assert!(error.contains("password authentication failed"), "{error}");
    }
    let refused = format!(
        "{}?sslmode=disable&channel_binding=require",
        stand.url("one:secret%20one", "app")
    );
    assert!(stand.psql(&refused, WHO).is_err());
}

#[test]
fn plain_text_can_be_refused() {
    let server = server();
    let folder = tempfile::tempdir().unwrap();
    let (stand, _) = stand(&server, folder.path(), |config| config.require_tls = true);
    let url = |mode: &str| format!("{}?sslmode={mode}", stand.url("one:secret%20one", "app"));
    assert_eq!(stand.psql(&url("require"), WHO).as_deref(), Ok("one"));
    assert_eq!(stand.psql(&url("prefer"), WHO).as_deref(), Ok("one"));
    let error = stand.psql(&url("disable"), WHO).unwrap_err();
    assert!(error.contains("require_tls"), "{error}");
    let refused = stand.refusal(&[("user", "one"), ("database", "app")]);
    assert_eq!(words(&refused).0, "28000");
}

fn client(certificate: &Certificate, protocols: &[&[u8]]) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.der.clone()).unwrap();
    let mut client = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    TlsConnector::from(Arc::new(client))
}

/// Begins with TLS, says bytes and gives the first nine of the answer.
async fn direct(
    front: SocketAddr,
    client: TlsConnector,
    said: Vec<u8>,
) -> std::io::Result<Vec<u8>> {
    let socket = TcpStream::connect(front).await?;
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = client.connect(name, socket).await?;
    stream.write_all(&said).await?;
    let mut first = Vec::new();
    stream.take(9).read_to_end(&mut first).await?;
    Ok(first)
}

#[test]
fn tls_may_be_the_first_word() {
    let server = server();
    let folder = tempfile::tempdir().unwrap();
    let (stand, certificate) = stand(&server, folder.path(), |_| {});
    let begin = |protocols: &[&[u8]]| {
        let mut out = Vec::new();
        frontend::startup(&mut out, &[("user", "one"), ("database", "app")]);
        let client = client(&certificate, protocols);
        stand.runtime.block_on(direct(stand.front, client, out))
    };
    let offered = begin(&[b"postgresql"]).unwrap();
    assert_eq!((offered[0], offered[8]), (b'R', 10));
    for refused in [begin(&[]), begin(&[b"h2"])] {
        assert!(refused.is_err() || refused.is_ok_and(|said| said.is_empty()));
    }
}

#[test]
fn a_cancel_request_may_be_encrypted() {
    let server = server();
    let folder = tempfile::tempdir().unwrap();
    let (stand, certificate) = stand(&server, folder.path(), |config| config.roles.users.clear());
    let mut sleeper = stand.client("windrow", "app");
    let mut out = Vec::new();
    frontend::query(&mut out, "select pg_sleep(600)");
    sleeper.send(&out).unwrap();
    until("it sleeps", || {
        server.exec("select count(*) from pg_stat_activity where query = 'select pg_sleep(600)' and state = 'active'").unwrap() == "1"
    });
    let mut cancel = Vec::new();
    frontend::cancel(&mut cancel, sleeper.cancel_key().unwrap());
    let client = client(&certificate, &[b"postgresql"]);
    let said = stand.runtime.block_on(direct(stand.front, client, cancel));
    // Without an alert before the end the client's library calls the connection cut off.
    assert_eq!(said.unwrap(), b"");
    let answer = sleeper.until_ready().unwrap();
    assert_eq!(backend::sqlstate(&answer).as_deref(), Some("57014"));
}

#[test]
fn what_is_no_handshake_harms_nobody() {
    let server = server();
    let folder = tempfile::tempdir().unwrap();
    let (stand, _) = stand(&server, folder.path(), |_| {});
    for bytes in [&[0x16, 3, 1, 0, 0][..], &[0x16; 600][..], SSL_REQUEST] {
        let mut socket = stand.socket();
        socket.write_all(bytes).unwrap();
        socket.shutdown(std::net::Shutdown::Write).unwrap();
        let said = rest(&mut socket);
        // Nothing, a yes to TLS, or an alert.
        assert!(
            said.is_empty() || said[0] == b'S' || said[0] == 0x15,
            "{said:?}"
        );
    }
    let url = format!("{}?sslmode=require", stand.url("one:secret%20one", "app"));
    assert_eq!(stand.psql(&url, WHO).as_deref(), Ok("one"));
}
