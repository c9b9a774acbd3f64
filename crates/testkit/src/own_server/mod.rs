//! A real server of a test's own: on loopback, on a free port, in a temporary directory, gone
//! afterwards, however the process ends.
//!
//! PostgreSQL and MariaDB say here how they are started and when they are ready; all else is the
//! same for both.

mod account;
mod programs;
mod template;
mod watchdog;

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::unistd::Pid;
use rand::RngExt;
use tempfile::TempDir;

pub(crate) use account::Account;
pub(crate) use programs::{build_of, installed, named_folder};
pub(crate) use template::{Template, feed, run, scratch};
pub(crate) use watchdog::{Stop, Watched};

use crate::locked;

/// The time that a start, a stop or a recovery may take.
pub(crate) const SERVER_TIMEOUT: Duration = Duration::from_secs(60);

/// Attempts to find a port that is still free when the server takes it.
const MAX_PORTS: usize = 20;

/// A product that can be started.
pub(crate) trait Product {
    /// The product's name, for messages.
    const NAME: &'static str;

    /// Words in the log of a server that may start later, or on another port.
    const PASSING: &'static [&'static str];

    /// The way in which a server is stopped whose data may be lost.
    const STOP: Stop;

    /// Returns the program that is run, with its arguments.
    fn command(&self, place: &Place) -> (PathBuf, Vec<String>);

    /// Returns true once a server takes connections. `news`: its log since the start.
    fn is_ready(&self, place: &Place, pid: u32, news: &str) -> bool;
}

/// The files and the port of a server.
#[derive(Debug)]
pub(crate) struct Place {
    dir: TempDir,
    port: u16,
}

impl Place {
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Returns the folder of the server's data.
    pub(crate) fn data(&self) -> PathBuf {
        self.dir().join("data")
    }

    fn log_path(&self) -> PathBuf {
        self.dir().join("log")
    }

    /// Returns all that the server has written to its log.
    pub(crate) fn log(&self) -> String {
        let text = fs::read(self.log_path()).unwrap_or_default();
        String::from_utf8_lossy(&text).into_owned()
    }
}

/// A server that this value owns: it is stopped and its files are removed when the value is
/// dropped, and also when the process that holds it is killed.
#[derive(Debug)]
pub(crate) struct OwnServer<P: Product> {
    product: P,
    account: Account,
    running: Mutex<Option<Watched>>,
    databases: AtomicU64,
    place: Place,
}

impl<P: Product> OwnServer<P> {
    /// Starts a server on the data in `dir`, and waits until it takes connections.
    ///
    /// # Errors
    /// It does not start; the message ends with its log.
    pub(crate) fn start(product: P, account: Account, dir: TempDir) -> Result<Self> {
        let mut server = Self {
            product,
            account,
            running: Mutex::default(),
            databases: AtomicU64::new(0),
            place: Place { dir, port: 0 },
        };
        for _ in 0..MAX_PORTS {
            server.place.port = free_port()?;
            if server.try_run()? {
                return Ok(server);
            }
        }
        bail!("no free port on 127.0.0.1 in {MAX_PORTS} tries")
    }

    pub(crate) fn product(&self) -> &P {
        &self.product
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// Returns the main process; `None` while the server is down.
    pub(crate) fn pid(&self) -> Option<u32> {
        locked(&self.running).as_ref().map(Watched::pid)
    }

    /// Returns a name that no database of the server has.
    pub(crate) fn new_name(&self) -> String {
        format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed))
    }

    /// Stops the server, if it is up.
    ///
    /// # Errors
    /// The watchdog cannot be reached.
    pub(crate) fn stop(&self, how: Stop) -> Result<()> {
        let watched = locked(&self.running).take();
        watched.map_or(Ok(()), |watched| watched.stop(how))
    }

    /// Stops the server, if it is up, and starts it again on the same port with the same data.
    ///
    /// # Errors
    /// It does not come up; the message ends with its log.
    pub(crate) fn restart(&self) -> Result<()> {
        self.stop(P::STOP)?;
        let start = Instant::now();
        while !self.try_run()? {
            if start.elapsed() > SERVER_TIMEOUT {
                let (port, log) = (self.place.port, self.place.log());
                bail!("port {port} or the data stay taken:\n{log}");
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Starts the server; false if the port was taken, or if a process of a server that was killed
    /// still runs.
    fn try_run(&self) -> Result<bool> {
        let seen = self.place.log().len();
        let (program, arguments) = self.product.command(&self.place);
        let watched = Watched::start(
            self.account.command(Path::new("/bin/sh")),
            self.place.dir(),
            &self.place.log_path(),
            &program,
            &arguments,
        )?;
        let news = || {
            let log = self.place.log();
            log.get(seen..).unwrap_or_default().to_owned()
        };
        let start = Instant::now();
        while watched.is_running() && start.elapsed() < SERVER_TIMEOUT {
            if self.product.is_ready(&self.place, watched.pid(), &news()) {
                *locked(&self.running) = Some(watched);
                return Ok(true);
            }
            thread::sleep(Duration::from_millis(5));
        }
        watched.stop(P::STOP)?;
        let news = news();
        if P::PASSING.iter().any(|text| news.contains(text)) {
            return Ok(false);
        }
        bail!("{} does not start:\n{news}", P::NAME)
    }
}

impl<P: Product> Drop for OwnServer<P> {
    fn drop(&mut self) {
        // Nothing can be reported here; the watchdog cleans up where this fails.
        self.stop(P::STOP).ok();
    }
}

/// Returns the process of a number, as signals take it.
pub(crate) fn pid_of(pid: u32) -> Pid {
    Pid::from_raw(i32::try_from(pid).unwrap_or(i32::MAX))
}

/// Returns a free port below the range of outgoing connections: one of those could take it while
/// the server is down, or connect to itself there.
pub(crate) fn free_port() -> Result<u16> {
    let mut rng = rand::rng();
    (0..1000)
        .map(|_| rng.random_range(15_000..32_000))
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .context("no free port between 15000 and 32000 on 127.0.0.1")
}

/// Waits until a condition holds.
///
/// # Errors
/// It does not within [`SERVER_TIMEOUT`].
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) -> Result<()> {
    let start = Instant::now();
    while !condition() {
        if start.elapsed() > SERVER_TIMEOUT {
            bail!("waited {SERVER_TIMEOUT:?} in vain until {what}");
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}
