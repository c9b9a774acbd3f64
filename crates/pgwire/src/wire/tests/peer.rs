//! A server made by hand, which says whatever a test wants.

use std::time::Duration;

use bytes::{BufMut, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A listener on loopback, and the URL of it without TLS.
pub(super) async fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (
        listener,
        format!("postgres://u:secret@127.0.0.1:{port}/d?sslmode=disable"),
    )
}

/// One message.
pub(super) fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = BytesMut::new();
    bytes.put_u8(tag);
    bytes.put_i32(i32::try_from(body.len() + 4).unwrap());
    bytes.put_slice(body);
    bytes.to_vec()
}

/// What makes a client believe that it is let in.
pub(super) fn welcome() -> Vec<u8> {
    [
        message(b'R', &[0, 0, 0, 0]),
        message(b'S', b"server_version\x0015.0\0"),
        message(b'K', &[0, 0, 0, 7, 0, 0, 0, 9]),
        message(b'Z', b"I"),
    ]
    .concat()
}

/// Takes a client, reads its startup message, says `words`, and closes once the client does, or at
/// once if `hang_up`.
pub(super) async fn say(listener: &TcpListener, words: &[u8], hang_up: bool) {
    let mut socket = accept(listener).await;
    // A client that has had enough closes: that is no failure of this side.
    drop(socket.write_all(words).await);
    if !hang_up {
        drop(tokio::time::timeout(Duration::from_secs(60), drain(&mut socket)).await);
    }
}

/// Takes a client and reads its startup message.
pub(super) async fn accept(listener: &TcpListener) -> TcpStream {
    let (mut socket, _) = listener.accept().await.unwrap();
    let len = socket.read_u32().await.unwrap();
    let mut startup = vec![0; usize::try_from(len).unwrap() - 4];
    socket.read_exact(&mut startup).await.unwrap();
    socket
}

async fn drain(socket: &mut TcpStream) {
    let mut buffer = [0; 4096];
    while matches!(socket.read(&mut buffer).await, Ok(n) if n > 0) {}
}
