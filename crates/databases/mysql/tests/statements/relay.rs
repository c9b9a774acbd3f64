//! A relay between a lane and its server that breaks connections at a statement.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, sink};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

/// A relay on a port of its own.
#[derive(Clone)]
pub(crate) struct Relay {
    pub(crate) port: u16,
    /// True if the next connection that sends one of the words is broken.
    pub(crate) breaks: Arc<AtomicBool>,
    /// True once one of the words goes to the server.
    pub(crate) has_word: Arc<AtomicBool>,
    /// Bytes of clients that have gone to the server.
    pub(crate) passed: Arc<AtomicUsize>,
}

impl Relay {
    /// Starts a relay to this port, which breaks a connection that sends one of these words.
    /// `forwards`: the server still gets the word.
    pub(crate) async fn start(
        server: u16,
        words: &'static [&'static [u8]],
        forwards: bool,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let relay = Self {
            port,
            breaks: Arc::default(),
            has_word: Arc::default(),
            passed: Arc::default(),
        };
        let started = relay.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
                tokio::spawn(pass(client, server, words, forwards, relay.clone()));
            }
        });
        started
    }
}

async fn pass(client: TcpStream, server: TcpStream, words: &[&[u8]], forwards: bool, relay: Relay) {
    let (mut from_client, mut to_client) = client.into_split();
    let (from_server, mut to_server) = server.into_split();
    let from_server = Arc::new(Mutex::new(from_server));
    let back = tokio::spawn({
        let from_server = Arc::clone(&from_server);
        async move { drop(copy(&mut *from_server.lock().await, &mut to_client).await) }
    });
    let mut piece = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from_client.read(&mut piece).await {
        let has = |word: &&[u8]| piece[..count].windows(word.len()).any(|part| part == *word);
        let has_word = words.iter().any(has);
        if has_word && relay.breaks.load(Ordering::SeqCst) {
            back.abort();
            drop(back.await);
            drop(from_client);
            if forwards {
                to_server.write_all(&piece[..count]).await.unwrap();
                // A server that cannot send an answer reads no further statement.
                to_server.shutdown().await.unwrap();
                drop(copy(&mut *from_server.lock().await, &mut sink()).await);
            }
            return;
        }
        relay.has_word.fetch_or(has_word, Ordering::SeqCst);
        to_server.write_all(&piece[..count]).await.unwrap();
        relay.passed.fetch_add(count, Ordering::SeqCst);
    }
}
