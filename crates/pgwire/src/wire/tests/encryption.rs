use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;
use windrow_core::FaultClass;
use windrow_testkit::postgres::{Postgres, PostgresBuilder};

use super::support::{ask, connect};

/// Certificates in files.
struct Papers {
    dir: TempDir,
}

impl Papers {
    /// An authority, and a server's and a user's certificate by it; a self-signed one; another
    /// authority.
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let papers = Self { dir };
        let authority = authority();
        papers.write("ca.crt", &authority.pem());
        papers.write("other.crt", &self::authority().pem());
        for (name, alternative) in [("server", "localhost"), ("client", "cert_user")] {
            let key = KeyPair::generate().unwrap();
            let mut params = CertificateParams::new(vec![alternative.to_owned()]).unwrap();
            params
                .distinguished_name
                .push(rcgen::DnType::CommonName, alternative);
            let certificate = params.signed_by(&key, &authority).unwrap();
            papers.write(&format!("{name}.crt"), &certificate.pem());
            papers.write(&format!("{name}.key"), &key.serialize_pem());
        }
        let selfmade = authority_params();
        let key = KeyPair::generate().unwrap();
        papers.write("self.crt", &selfmade.self_signed(&key).unwrap().pem());
        papers.write("self.key", &key.serialize_pem());
        papers
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, pem: &str) {
        std::fs::write(self.path(name), pem).unwrap();
    }

    fn server(&self, name: &str) -> PostgresBuilder {
        Postgres::builder().tls(
            &self.path(&format!("{name}.crt")),
            &self.path(&format!("{name}.key")),
        )
    }
}

fn authority_params() -> CertificateParams {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    CertifiedIssuer::self_signed(authority_params(), KeyPair::generate().unwrap()).unwrap()
}

const ENCRYPTED: &str = "select ssl from pg_stat_ssl where pid = pg_backend_pid()";

#[tokio::test]
async fn each_mode_encrypts_or_does_not() {
    let papers = Papers::new();
    let with = papers.server("server").start().unwrap();
    let without = Postgres::start().unwrap();
    for (mode, on_with, on_without) in [
        ("disable", "f", Some("f")),
        ("allow", "f", Some("f")),
        ("prefer", "t", Some("f")),
        ("require", "t", None),
    ] {
        let url = |server: &Postgres| format!("{}?sslmode={mode}", server.url());
        let mut wire = connect(&url(&with)).await.unwrap();
        assert_eq!(ask(&mut wire, ENCRYPTED).await, on_with, "{mode}");
        wire.terminate().await;
        match (connect(&url(&without)).await, on_without) {
            (Ok(mut wire), Some(on)) => assert_eq!(ask(&mut wire, ENCRYPTED).await, on, "{mode}"),
            (Err(fault), None) => {
                // The code says nothing about the role.
                assert_eq!((fault.class, &*fault.code), (FaultClass::Denied, "08001"));
                assert!(fault.message.contains("does not offer TLS"), "{fault}");
            }
            (other, _) => panic!("{mode}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn certificates_are_verified_as_far_as_asked() {
    let papers = Papers::new();
    let server = papers.server("server").start().unwrap();
    let port = server.port();
    for (host, mode, roots, accepted) in [
        ("localhost", "verify-full", "ca.crt", true),
        ("127.0.0.1", "verify-full", "ca.crt", false),
        ("127.0.0.1", "verify-ca", "ca.crt", true),
        ("localhost", "verify-full", "other.crt", false),
        ("localhost", "verify-ca", "other.crt", false),
        ("localhost", "require", "other.crt", false),
        ("127.0.0.1", "require", "ca.crt", true),
    ] {
        let roots = papers.path(roots);
        let url = format!(
            "postgres://windrow@{host}:{port}/postgres?sslmode={mode}&sslrootcert={}",
            roots.display()
        );
        match connect(&url).await {
            Ok(mut wire) => {
                assert!(accepted, "{url}");
                assert_eq!(ask(&mut wire, ENCRYPTED).await, "t");
            }
            Err(fault) => {
                assert!(!accepted, "{url}: {fault}");
                assert_eq!((fault.class, &*fault.code), (FaultClass::Denied, "08001"));
                assert!(fault.message.contains("certificate"), "{fault}");
            }
        }
    }
}

#[tokio::test]
async fn a_self_signed_certificate_is_trusted_where_it_is_named() {
    let papers = Papers::new();
    let server = papers.server("self").start().unwrap();
    let url = |host: &str, mode: &str, roots: &str| {
        format!(
            "postgres://windrow@{host}:{}/postgres?sslmode={mode}&sslrootcert={}",
            server.port(),
            papers.path(roots).display()
        )
    };
    for (host, mode, roots, accepted) in [
        ("localhost", "verify-full", "self.crt", true),
        ("127.0.0.1", "verify-full", "self.crt", false),
        ("127.0.0.1", "verify-ca", "self.crt", true),
        ("localhost", "verify-ca", "ca.crt", false),
    ] {
        let entered = connect(&url(host, mode, roots)).await;
        assert_eq!(
            entered.is_ok(),
            accepted,
            "{host} {mode} {roots}: {entered:?}"
        );
    }
    let missing = connect(&url("localhost", "verify-ca", "missing.pem"))
        .await
        .unwrap_err();
    assert_eq!(missing.class, FaultClass::Invalid);
    assert!(missing.message.contains("missing.pem"), "{missing}");
}

#[tokio::test]
async fn a_password_is_bound_to_the_connection() {
    let papers = Papers::new();
    for (name, algorithm) in [
        ("p256", &rcgen::PKCS_ECDSA_P256_SHA256),
        ("p384", &rcgen::PKCS_ECDSA_P384_SHA384),
    ] {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let certificate = authority_params().self_signed(&key).unwrap();
        papers.write(&format!("{name}.crt"), &certificate.pem());
        papers.write(&format!("{name}.key"), &key.serialize_pem());
        let server = papers
            .server(name)
            .hba("hostssl all scram_user 127.0.0.1/32 scram-sha-256")
            .start()
            .unwrap();
        server
            .exec("create role scram_user login password 'p'")
            .unwrap();
        for binding in ["require", "prefer", "disable"] {
            let url = format!(
                "postgres://scram_user:p@127.0.0.1:{}/postgres?sslmode=require&channel_binding={binding}",
                server.port()
            );
            let entered = connect(&url).await;
            assert!(entered.is_ok(), "{name} {binding}: {entered:?}");
            let wrong = connect(&url.replace(":p@", ":q@")).await.unwrap_err();
            assert_eq!(wrong.class, FaultClass::Denied, "{wrong}");
        }
    }
}

#[tokio::test]
async fn a_user_may_be_let_in_by_a_certificate() {
    let papers = Papers::new();
    let ca = papers.path("ca.crt");
    let server = papers.server("server");
    // The server reads it from its own folder, as its own account.
    let readable = Permissions::from_mode(0o755);
    std::fs::set_permissions(papers.dir.path(), readable).unwrap();
    let server = server
        .set("ssl_ca_file", ca.to_str().unwrap())
        .hba("hostssl all cert_user 127.0.0.1/32 cert")
        .start()
        .unwrap();
    server.exec("create role cert_user login").unwrap();
    let url = format!(
        "postgres://cert_user@127.0.0.1:{}/postgres?sslmode=require",
        server.port()
    );
    assert!(connect(&url).await.is_err());
    let with = format!(
        "{url}&sslcert={}&sslkey={}",
        papers.path("client.crt").display(),
        papers.path("client.key").display()
    );
    let mut wire = connect(&with).await.unwrap();
    assert_eq!(ask(&mut wire, "select current_user").await, "cert_user");
}

#[tokio::test]
async fn the_way_that_the_server_lets_in_is_found() {
    let papers = Papers::new();
    let server = papers
        .server("server")
        .hba("hostnossl all plain_user 127.0.0.1/32 trust")
        .hba("hostssl all tls_user 127.0.0.1/32 trust")
        .hba("host all plain_user,tls_user 127.0.0.1/32 reject")
        .start()
        .unwrap();
    server
        .exec("create role plain_user login; create role tls_user login")
        .unwrap();
    for (user, mode, encrypted) in [
        ("plain_user", "prefer", Some("f")),
        ("plain_user", "allow", Some("f")),
        ("plain_user", "require", None),
        ("tls_user", "prefer", Some("t")),
        ("tls_user", "allow", Some("t")),
        ("tls_user", "disable", None),
    ] {
        let port = server.port();
        let url = format!("postgres://{user}@127.0.0.1:{port}/postgres?sslmode={mode}");
        match (connect(&url).await, encrypted) {
            (Ok(mut wire), Some(on)) => assert_eq!(ask(&mut wire, ENCRYPTED).await, on, "{url}"),
            (Err(fault), None) => assert_eq!(fault.class, FaultClass::Denied, "{url}"),
            (other, _) => panic!("{url}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn large_exchanges_pass_through_tls() {
    let papers = Papers::new();
    let server = papers.server("server").start().unwrap();
    let mut wire = connect(&format!("{}?sslmode=require", server.url()))
        .await
        .unwrap();
    let sql = format!("select '{}' || repeat('y', 5000000)", "x".repeat(5_000_000));
    assert_eq!(ask(&mut wire, &sql).await.len(), 10_000_000);
    assert_eq!(ask(&mut wire, "select 1").await, "1");
}
