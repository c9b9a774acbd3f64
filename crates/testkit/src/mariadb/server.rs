//! One running server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use super::binaries::{Binaries, as_self};
use super::client::{creation, sql};
use super::template;
use crate::postgres::{Stop, Watched, free_port};
use crate::procfs;

/// How long a start, a stop or a recovery may take before it counts as failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Attempts to find a port that is still free when the server takes it.
const PORT_TRIES: usize = 20;

/// Settings of a server before it is started. Made by [`MariaDb::builder`].
#[derive(Clone, Debug, Default)]
pub struct Builder {
    settings: Vec<String>,
}

impl Builder {
    /// Any option of `mariadbd`, without the dashes before its name; the last one of a name counts.
    #[must_use]
    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.settings.push(format!("--{name}={value}"));
        self
    }

    /// Real durability, for measurements and crash tests. Off by default: tests are faster without.
    #[must_use]
    pub fn fsync(self, on: bool) -> Self {
        self.set("innodb-flush-log-at-trx-commit", if on { "1" } else { "0" })
    }

    /// Makes the data directory and starts the server. Blocks until it takes connections (about a
    /// second).
    ///
    /// # Errors
    /// MariaDB is not installed, or refuses to start; the message ends with its log.
    pub fn start(self) -> Result<MariaDb> {
        let binaries = Binaries::find()?;
        let dir = template::scratch()?;
        template::lay(&binaries, &dir.path().join("data"))?;
        MariaDb::launch(binaries, dir, self.settings)
    }
}

/// A MariaDB server that this value owns: it is stopped and its files are removed when the value is
/// dropped, and also when the process that holds it is killed.
///
/// All methods block; each is short, so tests on an asynchronous runtime may call them as they are.
#[derive(Debug)]
pub struct MariaDb {
    binaries: Binaries,
    settings: Vec<String>,
    port: u16,
    running: Mutex<Option<Watched>>,
    databases: AtomicU64,
    dir: TempDir,
}

impl MariaDb {
    /// A server with the default settings that does not sync at each commit.
    ///
    /// # Errors
    /// As [`Builder::start`].
    pub fn start() -> Result<Self> {
        Self::builder().start()
    }

    /// A server with other settings.
    pub fn builder() -> Builder {
        Builder::default().fsync(false)
    }

    fn launch(binaries: Binaries, dir: TempDir, settings: Vec<String>) -> Result<Self> {
        let mut server = Self {
            binaries,
            settings,
            port: 0,
            running: Mutex::new(None),
            databases: AtomicU64::new(0),
            dir,
        };
        for _ in 0..PORT_TRIES {
            server.port = free_port()?;
            if server.try_run()? {
                return Ok(server);
            }
        }
        bail!("no free port on 127.0.0.1 in {PORT_TRIES} tries")
    }

    /// The URL of the database `mysql`, as root, without a password.
    pub fn url(&self) -> String {
        self.url_for("mysql")
    }

    /// The URL of a database of this server.
    pub fn url_for(&self, database: &str) -> String {
        format!("mysql://root@127.0.0.1:{}/{database}", self.port)
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Makes an empty database (utf8mb4) and says its URL. It lives as long as the server.
    ///
    /// # Errors
    /// The server is down.
    pub fn create_database(&self) -> Result<String> {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        sql(&self.url(), &creation(&name))?;
        Ok(self.url_for(&name))
    }

    /// What the server has written to its log so far.
    pub fn log(&self) -> String {
        fs::read(self.log_path())
            .map(|text| String::from_utf8_lossy(&text).into_owned())
            .unwrap_or_default()
    }

    /// CPU time since the server was last started. In steps of 10 ms.
    pub fn cpu_time(&self) -> Duration {
        let stat = self.pid().and_then(procfs::stat);
        stat.map_or(Duration::ZERO, |stat| stat.own)
    }

    /// Stops the process in its tracks (SIGSTOP) and waits until all of its threads stand:
    /// connections stay open, nothing is answered.
    ///
    /// # Errors
    /// A thread goes on for a minute.
    pub fn pause(&self) -> Result<()> {
        self.signal(Signal::SIGSTOP);
        let start = Instant::now();
        while !self.pid().is_none_or(procfs::is_standing) {
            if start.elapsed() > PATIENCE {
                bail!("waited {PATIENCE:?} in vain until all threads stand");
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Lets it go on (SIGCONT).
    pub fn resume(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// Kills it with SIGKILL, as a crash would, and waits until it is gone. The server stays down
    /// until [`MariaDb::restart`].
    ///
    /// # Errors
    /// It is not gone after a minute.
    pub fn kill9(&self) -> Result<()> {
        // A paused server must not come to its senses before it dies.
        self.signal(Signal::SIGKILL);
        self.end(Stop::Kill)
    }

    /// Kills the server, if it is up, and starts it again on the same port with the same data.
    /// Blocks until it takes connections again.
    ///
    /// # Errors
    /// It does not come up; the message ends with its log.
    pub fn restart(&self) -> Result<()> {
        self.end(Stop::Kill)?;
        let start = Instant::now();
        while !self.try_run()? {
            if start.elapsed() > PATIENCE {
                bail!("port {} stays taken by somebody else", self.port);
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn end(&self, how: Stop) -> Result<()> {
        let watched = self.running().take();
        watched.map_or(Ok(()), |watched| watched.stop(how))
    }

    /// Starts the server; false if the port was taken.
    fn try_run(&self) -> Result<bool> {
        let seen = self.log().len();
        let mut command = Command::new("/bin/sh");
        command.current_dir("/");
        let watched = Watched::start(
            command,
            self.dir.path(),
            &self.log_path(),
            &self.binaries.server,
            &self.arguments(),
        )?;
        if self.wait_ready(&watched, seen) {
            *self.running() = Some(watched);
            return Ok(true);
        }
        watched.stop(Stop::Kill)?;
        let log = self.log();
        let news = log.get(seen..).unwrap_or_default();
        if news.contains("Bind on TCP/IP port") {
            return Ok(false);
        }
        bail!("MariaDB does not start:\n{news}")
    }

    fn arguments(&self) -> Vec<String> {
        let dir = self.dir.path().display();
        let mut arguments = vec![
            "--no-defaults".to_owned(),
            format!("--datadir={dir}/data"),
            // A server that starts removes what others have left there, also what others still
            // use.
            format!("--tmpdir={dir}"),
            format!("--socket={dir}/socket"),
            format!("--pid-file={dir}/pid"),
            format!("--port={}", self.port),
            "--bind-address=127.0.0.1".to_owned(),
            "--skip-log-bin".to_owned(),
            "--performance-schema=off".to_owned(),
            "--max-connections=300".to_owned(),
            "--innodb-buffer-pool-size=64M".to_owned(),
        ];
        let options = self.binaries.server_options();
        arguments.extend(options.iter().map(|&option| option.to_owned()));
        arguments.extend(as_self().map(str::to_owned));
        arguments.extend(self.settings.iter().cloned());
        arguments
    }

    /// The server says in its log when it takes connections.
    fn wait_ready(&self, watched: &Watched, seen: usize) -> bool {
        let start = Instant::now();
        while watched.is_running() && start.elapsed() < PATIENCE {
            let log = self.log();
            if log
                .get(seen..)
                .is_some_and(|news| news.contains("ready for connections"))
            {
                return true;
            }
            thread::sleep(Duration::from_millis(5));
        }
        false
    }

    fn pid(&self) -> Option<u32> {
        self.running().as_ref().map(Watched::pid)
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.pid().and_then(|pid| i32::try_from(pid).ok()) {
            // One that has ended meanwhile needs no signal.
            kill(Pid::from_raw(pid), signal).ok();
        }
    }

    fn running(&self) -> MutexGuard<'_, Option<Watched>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log_path(&self) -> PathBuf {
        self.dir.path().join("log")
    }

    /// The folder of its files.
    pub fn folder(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        // Nothing can be reported here; the watchdog cleans up where this fails.
        self.end(Stop::Kill).ok();
    }
}
