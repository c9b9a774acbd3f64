//! A line between two machines: a proxy that holds bytes back for half of a round trip.
//!
//! Each direction of a connection has two threads, because the timers of an event loop have a
//! granularity of a millisecond.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

/// Chunks of bytes that may be under way in one direction.
const CHUNKS: usize = 256;

/// The largest chunk, in bytes.
const CHUNK_BYTES: usize = 64 * 1024;

/// Starts to take connections, each of which goes to `to` over a line with this round trip.
pub(super) fn start(listener: TcpListener, to: SocketAddr, round_trip: Duration) {
    // Linux may wake a thread 50 us late, to save wake-ups. Threads inherit this.
    fs::write("/proc/self/timerslack_ns", "1").ok();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            thread::spawn(move || connect(client, to, round_trip / 2));
        }
    });
}

fn connect(client: TcpStream, to: SocketAddr, delay: Duration) -> Result<()> {
    let server = TcpStream::connect(to)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let back = (server.try_clone()?, client.try_clone()?);
    thread::spawn(move || carry(back.0, back.1, delay));
    carry(client, server, delay);
    Ok(())
}

/// Carries bytes of one direction until either side ends.
fn carry(mut from: TcpStream, mut to: TcpStream, delay: Duration) {
    let (sender, receiver) = mpsc::sync_channel::<(Instant, Vec<u8>)>(CHUNKS);
    thread::spawn(move || {
        for (due, bytes) in receiver {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        to.shutdown(Shutdown::Both).ok();
    });
    let mut buffer = vec![0; CHUNK_BYTES];
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        let bytes = buffer.get(..n).unwrap_or_default().to_vec();
        if sender.send((Instant::now() + delay, bytes)).is_err() {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_pass_both_ways_in_order_and_an_end_passes_too() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let line = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = line.local_addr().unwrap();
        start(line, server.local_addr().unwrap(), Duration::from_micros(1));
        let mut client = TcpStream::connect(at).unwrap();
        let (mut far, _) = server.accept().unwrap();
        let sent: Vec<u8> = (0..=u8::MAX).cycle().take(3 * CHUNK_BYTES).collect();
        let mut got = vec![0; sent.len()];
        client.write_all(&sent).unwrap();
        far.read_exact(&mut got).unwrap();
        assert_eq!(got, sent);
        far.write_all(b"answer").unwrap();
        let mut answer = [0; 6];
        client.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"answer");
        drop(far);
        assert_eq!(client.read(&mut got).unwrap(), 0);
    }
}
