//! A proxy before a PostgreSQL server that lets one connection at a time have a transaction.
//!
//! What two connections do at once at the server may be told as no order of the two explains (READ
//! COMMITTED allows that), with or without a gateway. Behind a turnstile nothing is at once, so
//! whatever no order explains was done by who speaks to it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;

/// Who waits for longer than this is let in beside the other one: it may be what the other one
/// waits for.
const LONGEST: Duration = Duration::from_secs(2);

/// A listening turnstile; it ends when it is dropped.
pub struct Turnstile {
    address: SocketAddr,
    crowded: Arc<AtomicU64>,
    accepting: JoinHandle<()>,
}

impl Turnstile {
    /// Listens before a server. Its runtime must live as long as it.
    pub async fn before(server: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let crowded = Arc::new(AtomicU64::new(0));
        let gate = Gate {
            turn: Arc::new(Semaphore::new(1)),
            crowded: Arc::clone(&crowded),
        };
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                // A line that breaks is its ends' matter.
                tokio::spawn(carry(client, server, gate.clone()));
            }
        });
        Ok(Self {
            address,
            crowded,
            accepting,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How often two were let in at once.
    pub fn crowded(&self) -> u64 {
        self.crowded.load(Ordering::SeqCst)
    }
}

impl Drop for Turnstile {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

#[derive(Clone)]
struct Gate {
    turn: Arc<Semaphore>,
    crowded: Arc<AtomicU64>,
}

/// What both directions of a connection know.
#[derive(Default)]
struct Turn {
    permit: Option<OwnedSemaphorePermit>,
    /// It was let in without one.
    squeezed: bool,
    /// ReadyForQuery messages that are due.
    due: usize,
    /// Something was sent since the last Sync.
    open: bool,
}

impl Turn {
    fn is_in(&self) -> bool {
        self.permit.is_some() || self.squeezed
    }

    fn sent(&mut self, tag: u8) {
        match tag {
            b'S' | b'Q' | b'F' => {
                self.due += 1;
                self.open = false;
            }
            b'P' | b'B' | b'D' | b'E' | b'C' | b'H' => self.open = true,
            _ => {}
        }
    }

    fn ready(&mut self, status: u8) {
        self.due = self.due.saturating_sub(1);
        if self.due == 0 && !self.open && status == b'I' {
            self.permit = None;
            self.squeezed = false;
        }
    }
}

async fn carry(client: TcpStream, server: SocketAddr, gate: Gate) -> Result<()> {
    let server = TcpStream::connect(server).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let turn = Arc::new(Mutex::new(Turn::default()));
    let forth = forth(from_client, to_server, gate, Arc::clone(&turn));
    let back = back(from_server, to_client, turn);
    let (forth, back) = tokio::join!(forth, back);
    forth.and(back)
}

async fn forth(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    gate: Gate,
    turn: Arc<Mutex<Turn>>,
) -> Result<()> {
    let mut input = Vec::new();
    // The first message of a connection has no tag.
    if let Some(length) = more(&mut from, &mut input, 0).await? {
        to.write_all(&input[..length]).await?;
        input.drain(..length);
        while let Some(length) = more(&mut from, &mut input, 1).await? {
            let whole = wholes(&input, length);
            enter(&gate, &turn, &input[..whole]).await;
            to.write_all(&input[..whole]).await?;
            input.drain(..whole);
        }
    }
    to.shutdown().await.context("the server is gone")
}

/// Waits until it is this connection's turn, and notes what it sends.
async fn enter(gate: &Gate, turn: &Mutex<Turn>, messages: &[u8]) {
    if messages[0] == b'X' {
        return;
    }
    let entered = turn.lock().await.is_in();
    let mut permit = None;
    if !entered {
        let waiting = Arc::clone(&gate.turn).acquire_owned();
        permit = tokio::time::timeout(LONGEST, waiting)
            .await
            .ok()
            .map(Result::unwrap);
    }
    let mut turn = turn.lock().await;
    if !entered {
        turn.squeezed = permit.is_none();
        turn.permit = permit;
        gate.crowded
            .fetch_add(turn.squeezed.into(), Ordering::SeqCst);
    }
    for message in tags(messages) {
        turn.sent(message.0);
    }
    // It went out between the look and now.
    if entered && !turn.is_in() {
        turn.permit = Arc::clone(&gate.turn).acquire_owned().await.ok();
    }
}

async fn back(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    turn: Arc<Mutex<Turn>>,
) -> Result<()> {
    let mut input = Vec::new();
    let mut broken = Ok(());
    while let Ok(Some(length)) = more(&mut from, &mut input, 1).await {
        let whole = wholes(&input, length);
        if broken.is_ok() {
            broken = to.write_all(&input[..whole]).await;
        }
        let mut turn = turn.lock().await;
        for (tag, body) in tags(&input[..whole]) {
            if tag == b'Z' {
                turn.ready(body[0]);
            }
        }
        drop(turn);
        input.drain(..whole);
    }
    *turn.lock().await = Turn::default();
    Ok(to.shutdown().await?)
}

/// Reads until a whole message is there; its length with all. `None` at the end.
async fn more(from: &mut OwnedReadHalf, input: &mut Vec<u8>, tag: usize) -> Result<Option<usize>> {
    loop {
        if let Some(length) = message(input, tag) {
            return Ok(Some(length));
        }
        if from.read_buf(input).await? == 0 {
            return Ok(None);
        }
    }
}

fn message(input: &[u8], tag: usize) -> Option<usize> {
    let length = input.get(tag..tag + 4)?;
    let length = u32::from_be_bytes(length.try_into().ok()?);
    let whole = usize::try_from(length).ok()? + tag;
    (input.len() >= whole).then_some(whole)
}

/// The length of all messages that are whole.
fn wholes(input: &[u8], first: usize) -> usize {
    let mut end = first;
    while let Some(length) = message(&input[end..], 1) {
        end += length;
    }
    end
}

/// Tags and bodies of whole messages.
fn tags(mut input: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let length = message(input, 1)?;
        let (message, rest) = input.split_at(length);
        input = rest;
        Some((message[0], &message[5..]))
    })
}
