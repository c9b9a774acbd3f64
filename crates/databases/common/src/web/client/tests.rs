use std::io::Write as _;
use std::net::SocketAddr;

use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;

/// A server for `localhost` that answers whatever comes with one JSON text, and the PEM file of its
/// certificate.
async fn secured() -> (SocketAddr, tempfile::NamedTempFile) {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(own.cert.pem().as_bytes()).unwrap();
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(socket).await else {
                    return;
                };
                let mut read = [0; 4096];
                while stream.read(&mut read).await.is_ok_and(|n| n > 0) {
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n[true]";
                    stream.write_all(answer).await.unwrap();
                }
            });
        }
    });
    (address, file)
}

fn client(url: &str) -> Client {
    let target = Target::parse(url, url.starts_with("xs:"), 1, "").unwrap();
    let origin = Origin::new(target, "Test", Duration::from_secs(5)).unwrap();
    Client::new(Arc::new(origin), HeaderMap::new())
}

fn ask(most: usize) -> Ask {
    Ask {
        method: Method::POST,
        path: "/x".to_owned(),
        body: Bytes::from_static(b"{}"),
        most,
    }
}

#[tokio::test]
async fn a_server_that_proves_itself_is_spoken_to() {
    let (address, roots) = secured().await;
    let (port, roots) = (address.port(), roots.path().display().to_string());
    let mut trusting = client(&format!("xs://localhost:{port}?sslrootcert={roots}"));
    for _ in 0..3 {
        let answer = trusting.exchange(&ask(6)).await.unwrap();
        assert_eq!(&*answer.body, b"[true]");
    }
    // A name that the certificate does not have, and no trust at all.
    let other = format!("xs://127.0.0.1:{port}?sslrootcert={roots}");
    let Loss::NotSent(fault) = client(&other).exchange(&ask(6)).await.unwrap_err() else {
        panic!("something was sent");
    };
    assert_eq!((fault.class, &*fault.code), (FaultClass::Denied, "28000"));
    let missing = format!("xs://localhost:{port}?sslrootcert=/nowhere.pem");
    let Loss::NotSent(fault) = client(&missing).exchange(&ask(6)).await.unwrap_err() else {
        panic!("something was sent");
    };
    assert_eq!(fault.class, FaultClass::Invalid);
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_not_taken() {
    let (address, roots) = secured().await;
    let roots = roots.path().display().to_string();
    let url = format!("xs://localhost:{}?sslrootcert={roots}", address.port());
    let loss = client(&url).exchange(&ask(5)).await.unwrap_err();
    let Loss::TooLarge(why) = loss else {
        panic!("{loss:?}");
    };
    assert!(why.contains("larger than 5 bytes"), "{why}");
}

#[tokio::test]
async fn a_connection_that_was_closed_meanwhile_is_opened_again() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = tokio::spawn(async move {
        for _ in 0..2 {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut read = [0; 4096];
            assert!(socket.read(&mut read).await.unwrap() > 0);
            let answer = b"HTTP/1.1 503 Away\r\ncontent-length: 0\r\n\r\n";
            socket.write_all(answer).await.unwrap();
        }
        drop(listener);
    });
    let mut client = client(&format!("x://127.0.0.1:{port}"));
    let answer = client.exchange(&ask(9)).await.unwrap();
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    // The end of the connection has to be seen first.
    if let Some(connection) = &mut client.connection {
        while connection.sender.ready().await.is_ok() {
            tokio::task::yield_now().await;
        }
    }
    client.exchange(&ask(9)).await.unwrap();
    serve.await.unwrap();
    let Loss::NotSent(fault) = client.exchange(&ask(9)).await.unwrap_err() else {
        panic!("something was sent");
    };
    assert_eq!(fault.class, FaultClass::Unavailable);
}
