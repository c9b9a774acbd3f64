//! The machine's own times for what every write needs: waking a process, and a synced write.
//!
//! Both differ by a multiple between machines, and between hours of one that is shared; without
//! them a latency says little.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

const TIMES: usize = 1_000;

/// The rows of the report's table.
pub(super) fn rows() -> [(&'static str, String); 2] {
    [
        (
            "a byte to a sleeping thread and back",
            microseconds(there_and_back()),
        ),
        ("a synced write of 8 KiB", microseconds(synced_write())),
    ]
}

fn microseconds(median: io::Result<Duration>) -> String {
    match median {
        Ok(time) => format!("{} us (median of {TIMES})", time.as_micros()),
        Err(error) => format!("not measured: {error}"),
    }
}

/// Over a pair of sockets; each side sleeps while the other one works, so it is two wake-ups.
fn there_and_back() -> io::Result<Duration> {
    let (mut here, mut there) = UnixStream::pair()?;
    let echo = thread::spawn(move || {
        let mut byte = [0];
        while there.read_exact(&mut byte).is_ok() && there.write_all(&byte).is_ok() {}
    });
    let median = median(|| {
        here.write_all(&[0])?;
        here.read_exact(&mut [0])
    });
    drop(here);
    // It ends with its socket; that it panicked would be seen as an error above.
    drop(echo.join());
    median
}

fn synced_write() -> io::Result<Duration> {
    let folder = tempfile::tempdir()?;
    let mut file = File::create(folder.path().join("synced"))?;
    let page = [0x57; 8192];
    median(|| {
        file.write_all(&page)?;
        file.sync_data()
    })
}

fn median(mut work: impl FnMut() -> io::Result<()>) -> io::Result<Duration> {
    let mut times = Vec::with_capacity(TIMES);
    for _ in 0..TIMES {
        let start = Instant::now();
        work()?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    Ok(times.get(TIMES / 2).copied().unwrap_or_default())
}
