//! The state of Windrow's spool, as seen from outside.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use windrow_testkit::process::Windrow;
use windrow_testkit::procfs;

/// Time between looks.
const STEP: Duration = Duration::from_millis(50);

/// The state of the spool at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moment {
    /// Seconds since the beginning.
    pub at: f64,
    /// Entries that were ever acknowledged.
    pub end: u64,
    /// Of these, what the database has.
    pub applied: u64,
    /// Resident memory of Windrow, in bytes.
    pub resident: u64,
}

impl Moment {
    /// Entries that the database does not have.
    pub fn waiting(&self) -> u64 {
        self.end.saturating_sub(self.applied)
    }
}

/// Asks `GET /v1/lanes`. Where the database has not been asked yet, nothing counts as applied.
///
/// # Errors
/// Nobody answers, or there is no spool.
pub fn look(address: SocketAddr) -> Result<Moment> {
    let mut stream = TcpStream::connect(address).context("nobody listens")?;
    stream.write_all(b"GET /v1/lanes HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (_, body) = answer.split_once("\r\n\r\n").context("no answer")?;
    let lanes: serde_json::Value = serde_json::from_str(body).context("no JSON")?;
    let partition = lanes.pointer("/spool/partitions/0");
    let number = |name: &str| partition.and_then(|part| part.get(name)?.as_u64());
    Ok(Moment {
        end: number("end").context("there is no spool")?,
        applied: number("applied").unwrap_or(0),
        ..Moment::default()
    })
}

/// Waits until the database has all that is in the spool.
///
/// # Errors
/// The timeout is over.
pub fn level(address: SocketAddr, timeout: Duration) -> Result<()> {
    let start = Instant::now();
    while look(address)?.waiting() > 0 {
        anyhow::ensure!(
            start.elapsed() < timeout,
            "the spool is not applied within {timeout:?}"
        );
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Looks again and again until it is ended.
#[derive(Debug)]
pub struct Depths {
    stop: Sender<()>,
    looking: JoinHandle<Result<Vec<Moment>>>,
}

impl Depths {
    /// Begins.
    pub fn start(windrow: &Windrow) -> Self {
        let (pid, address) = (windrow.pid(), windrow.address());
        let (stop, stopped) = mpsc::channel();
        let looking = thread::spawn(move || {
            let start = Instant::now();
            let mut moments = Vec::new();
            loop {
                let ended = stopped.recv_timeout(STEP) != Err(RecvTimeoutError::Timeout);
                moments.push(Moment {
                    at: start.elapsed().as_secs_f64(),
                    resident: procfs::resident_bytes(pid)?,
                    ..look(address)?
                });
                if ended {
                    return Ok(moments);
                }
            }
        });
        Self { stop, looking }
    }

    /// Looks once more, and gives what was seen.
    ///
    /// # Errors
    /// Windrow has not answered.
    pub fn end(self) -> Result<Vec<Moment>> {
        drop(self.stop);
        let moments = self.looking.join();
        moments.map_err(|_| anyhow!("who looks at the spool panicked"))?
    }
}

/// All moments as CSV.
pub fn csv(moments: &[Moment]) -> String {
    let mut text = String::from("seconds,acknowledged,applied,resident_bytes\n");
    for m in moments {
        writeln!(text, "{:.3},{},{},{}", m.at, m.end, m.applied, m.resident).ok();
    }
    text
}
