//! One connection through the proxy: two directions, each of which reads, waits and writes, and
//! which end together.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::control::{Control, Direction};
use super::delay::{Delay, Draws};

/// Chunks that may be under way in one direction: bounded, so that a paused line pushes back on its
/// sender.
const CHUNKS: usize = 256;

/// The largest chunk, in bytes.
const CHUNK: usize = 16 * 1024;

/// The end of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The sender has finished, and the receiver's socket is shut down.
    Closed,
    /// Both directions must end at once.
    Cut,
}

struct Chunk {
    due: Instant,
    bytes: Bytes,
    last: bool,
}

/// The delays of both directions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delays {
    pub(crate) to_server: Delay,
    pub(crate) to_client: Delay,
}

/// Copies both ways until both sides have closed, one has failed, or it is cut.
pub(crate) async fn run(
    client: TcpStream,
    server: TcpStream,
    delays: Delays,
    control: &Control,
    seed: u64,
) {
    client.set_nodelay(true).ok();
    server.set_nodelay(true).ok();
    let cut = control.cut_comes();
    let ended = copy_both(&client, &server, delays, control, seed);
    let end = tokio::select! {
        () = cut => End::Cut,
        end = ended => end,
    };
    if end == End::Cut {
        client.set_zero_linger().ok();
        server.set_zero_linger().ok();
    }
}

async fn copy_both(
    client: &TcpStream,
    server: &TcpStream,
    delays: Delays,
    control: &Control,
    seed: u64,
) -> End {
    let turns = Turns::default();
    let out = pump(
        client,
        server,
        Direction::ToServer,
        delays.to_server.draws(seed),
        control,
        &turns,
    );
    let back = pump(
        server,
        client,
        Direction::ToClient,
        delays.to_client.draws(seed),
        control,
        &turns,
    );
    tokio::pin!(out, back);
    let (first, other_is_out) = tokio::select! {
        end = &mut out => (end, false),
        end = &mut back => (end, true),
    };
    match first {
        End::Cut => End::Cut,
        End::Closed if other_is_out => out.await,
        End::Closed => back.await,
    }
}

/// Copies from one socket to the other; what is read meanwhile is under way side by side, so a
/// delay costs no throughput.
async fn pump(
    from: &TcpStream,
    to: &TcpStream,
    direction: Direction,
    draws: Draws,
    control: &Control,
    turns: &Turns,
) -> End {
    let (sender, receiver) = mpsc::channel(CHUNKS);
    let reading = read(from, direction, draws, control, turns, sender);
    let writing = write(to, direction, control, receiver);
    let ((), end) = tokio::join!(reading, writing);
    end
}

async fn read(
    from: &TcpStream,
    direction: Direction,
    mut draws: Draws,
    control: &Control,
    turns: &Turns,
    sender: mpsc::Sender<Chunk>,
) {
    let mut buffer = vec![0; CHUNK];
    while let Ok(n @ 1..) = read_some(from, &mut buffer).await {
        if turns.answer_begins(direction) {
            control.round_trips.add(1);
        }
        let allowed = control.flow(direction).take(n);
        let chunk = Chunk {
            due: Instant::now() + draws.next(),
            bytes: Bytes::copy_from_slice(buffer.get(..allowed).unwrap_or_default()),
            last: allowed < n,
        };
        let last = chunk.last;
        if sender.send(chunk).await.is_err() || last {
            break;
        }
    }
}

async fn write(
    to: &TcpStream,
    direction: Direction,
    control: &Control,
    mut receiver: mpsc::Receiver<Chunk>,
) -> End {
    while let Some(chunk) = receiver.recv().await {
        tokio::time::sleep_until(chunk.due).await;
        control.flow(direction).open().await;
        if write_all(to, &chunk.bytes).await.is_err() || chunk.last {
            return End::Cut;
        }
    }
    shut_down_writing(to);
    End::Closed
}

async fn read_some(from: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        from.readable().await?;
        match from.try_read(buffer) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            done => return done,
        }
    }
}

async fn write_all(to: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        to.writable().await?;
        match to.try_write(bytes) {
            Ok(n) => bytes = bytes.get(n..).unwrap_or_default(),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Passes the end of the stream on while the other direction is still open.
fn shut_down_writing(to: &TcpStream) {
    socket2::SockRef::from(to)
        .shutdown(std::net::Shutdown::Write)
        .ok();
}

/// Tells round trips apart: a client's burst followed by the server's.
#[derive(Debug, Default)]
struct Turns {
    /// The client has sent something that the server has not begun to answer.
    asked: AtomicBool,
}

impl Turns {
    /// Notes that bytes go this way; returns true if they begin an answer.
    fn answer_begins(&self, direction: Direction) -> bool {
        match direction {
            Direction::ToServer => {
                self.asked.store(true, Ordering::SeqCst);
                false
            }
            Direction::ToClient => self.asked.swap(false, Ordering::SeqCst),
        }
    }
}
