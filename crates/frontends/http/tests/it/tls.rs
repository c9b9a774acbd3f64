//! The same over TLS.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use windrow_http::HttpConfig;

use crate::support::{config, good, post, serve_with};

const CERTIFICATE: &[u8] = include_bytes!("tls/cert.pem");
const KEY: &[u8] = include_bytes!("tls/key.pem");

#[tokio::test]
async fn rows_over_tls() {
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE).unwrap();
    let key = PrivateKeyDer::from_pem_slice(KEY).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let server = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).unwrap();
    let client = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let tls = Some(Arc::new(server));
    let (server, seen) = serve_with(HttpConfig { tls, ..config() }, good).await;

    let mut plain = server.connect().await;
    plain
        .send("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await;
    assert!(!plain.rest_bytes().await.starts_with(b"HTTP"));

    let connector = tokio_rustls::TlsConnector::from(Arc::new(client));
    let name = ServerName::try_from("localhost").unwrap();
    let socket = server.connect().await.0;
    let mut stream = connector.connect(name, socket).await.unwrap();
    let request = post("/v1/tables/t/rows", "application/json", "{\"a\":1}");
    stream
        .write_all(
            request
                .replace("host: localhost", "host: localhost\r\nconnection: close")
                .as_bytes(),
        )
        .await
        .unwrap();
    let mut told = String::new();
    stream.read_to_string(&mut told).await.unwrap();
    assert!(
        told.starts_with("HTTP/1.1 201") && told.ends_with("{\"rows\":1}"),
        "{told}"
    );
    assert_eq!(seen.writes().len(), 1);
}
