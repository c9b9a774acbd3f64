//! The proxy, in front of a server that answers each byte with the same byte.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests may panic as tests may"
)]

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use windrow_testkit::proxy::{Delay, Direction, Proxy};

/// A server on loopback that sends back what it gets; says where it listens.
async fn echo() -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = socket.split();
                tokio::io::copy(&mut read, &mut write).await.ok();
            });
        }
    });
    address
}

async fn ask(client: &mut TcpStream, text: &[u8]) -> std::io::Result<Vec<u8>> {
    client.write_all(text).await?;
    let mut answer = vec![0; text.len()];
    client.read_exact(&mut answer).await?;
    Ok(answer)
}

async fn connect(proxy: &Proxy) -> TcpStream {
    TcpStream::connect(proxy.address()).await.unwrap()
}

#[tokio::test]
async fn counts_round_trips_connections_and_bytes() {
    let proxy = Proxy::builder(echo().await).start().await.unwrap();
    let mut client = connect(&proxy).await;
    for text in [b"one".as_slice(), b"two", b"three"] {
        assert_eq!(ask(&mut client, text).await.unwrap(), text);
    }
    assert_eq!((proxy.round_trips(), proxy.connections()), (3, 1));
    assert_eq!(proxy.bytes(Direction::ToServer), 11);
    assert_eq!(proxy.bytes(Direction::ToClient), 11);
}

#[tokio::test]
async fn a_large_stream_arrives_unchanged_through_jitter_and_ends() {
    let jitter = |seed| Delay::of(Duration::ZERO).jitter(Duration::from_millis(2), seed);
    let proxy = Proxy::builder(echo().await)
        .to_server(jitter(1))
        .to_client(jitter(2))
        .start()
        .await
        .unwrap();
    let sent: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    let (mut read, mut write) = connect(&proxy).await.into_split();
    let copy = sent.clone();
    let sending = tokio::spawn(async move {
        write.write_all(&copy).await.unwrap();
        // Dropping this half tells the server that nothing follows.
    });
    let mut got = Vec::new();
    read.read_to_end(&mut got).await.unwrap();
    sending.await.unwrap();
    assert!(got == sent);
}

#[tokio::test]
async fn answers_are_late_by_the_delay_at_least() {
    let proxy = Proxy::builder(echo().await)
        .round_trip(Duration::from_millis(60))
        .start()
        .await
        .unwrap();
    let mut client = connect(&proxy).await;
    let start = Instant::now();
    ask(&mut client, b"x").await.unwrap();
    assert!(start.elapsed() >= Duration::from_millis(60));
}

#[tokio::test]
async fn a_cut_after_n_bytes_lets_exactly_these_through() {
    let proxy = Proxy::builder(echo().await).start().await.unwrap();
    let mut client = connect(&proxy).await;
    ask(&mut client, b"warm").await.unwrap();
    proxy.cut_after(Direction::ToClient, 3);
    client.write_all(b"abcdef").await.unwrap();
    let mut got = Vec::new();
    // The cut is a reset, so reading may end in an error; what came before counts.
    while let Ok(n @ 1..) = client.read_buf(&mut got).await {
        assert!(n <= 3);
    }
    assert!(b"abc".starts_with(&got), "{got:?}");
    assert_eq!(proxy.bytes(Direction::ToServer), 10);
    // The next connection is whole.
    assert_eq!(
        ask(&mut connect(&proxy).await, b"abcdef").await.unwrap(),
        b"abcdef"
    );
}

#[tokio::test]
async fn a_cut_ends_open_connections_and_refusing_new_ones() {
    let proxy = Proxy::builder(echo().await).start().await.unwrap();
    let mut client = connect(&proxy).await;
    ask(&mut client, b"x").await.unwrap();
    proxy.refuse(true);
    proxy.cut();
    assert!(ask(&mut client, b"x").await.is_err());
    assert!(ask(&mut connect(&proxy).await, b"x").await.is_err());
    proxy.refuse(false);
    assert_eq!(ask(&mut connect(&proxy).await, b"x").await.unwrap(), b"x");
}

#[tokio::test]
async fn a_paused_direction_holds_bytes_back_and_loses_none() {
    let proxy = Proxy::builder(echo().await).start().await.unwrap();
    let mut client = connect(&proxy).await;
    ask(&mut client, b"x").await.unwrap();
    proxy.pause(Direction::ToClient);
    client.write_all(b"later").await.unwrap();
    while proxy.bytes(Direction::ToClient) < 6 {
        tokio::task::yield_now().await;
    }
    let mut byte = [0];
    let early = client.try_read(&mut byte).map_err(|e| e.kind());
    assert_eq!(early, Err(std::io::ErrorKind::WouldBlock));
    proxy.resume(Direction::ToClient);
    let mut answer = [0; 5];
    client.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"later");
}

#[tokio::test]
async fn a_url_is_led_through() {
    let upstream = echo().await;
    let proxy = Proxy::builder(upstream.clone()).start().await.unwrap();
    let url = proxy
        .through(&format!("postgres://u@{upstream}/db?x=1"))
        .unwrap();
    assert_eq!(url, format!("postgres://u@{}/db?x=1", proxy.address()));
    assert!(proxy.through("postgres://u@elsewhere/db").is_err());
}
