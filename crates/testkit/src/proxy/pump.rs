//! One direction of one connection: read, wait, write.

use std::io;

use bytes::Bytes;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::control::Control;
use super::delay::Draws;
use super::direction::Direction;
use super::turns::Turns;

/// Chunks that may be under way in one direction: bounded, so that a paused line pushes back on its
/// sender.
const CHUNKS: usize = 256;

/// The largest chunk, in bytes.
const CHUNK: usize = 16 * 1024;

/// How a direction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The sender has finished, and the receiver was told so.
    Closed,
    /// It must end at once, with the other direction.
    Cut,
}

struct Chunk {
    due: Instant,
    bytes: Bytes,
    last: bool,
}

/// Copies from one socket to the other; what is read meanwhile is under way side by side, so a
/// delay costs no throughput.
pub(crate) async fn pump(
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
