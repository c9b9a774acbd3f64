//! One running server.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rand::RngExt;
use tempfile::TempDir;

use super::account::Account;
use super::binaries::Binaries;
use super::psql::psql;
use super::slow_fsync::SlowDisk;
use super::template::SUPERUSER;
use super::watchdog::{Stop, Watched};
use crate::procfs;

/// How long a start, a stop or a recovery may take before it counts as failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Attempts to find a port that is still free when the server takes it.
const PORT_TRIES: usize = 20;

/// A PostgreSQL server that this value owns: it is stopped and its files are removed when the value
/// is dropped, and also when the process that holds it is killed.
///
/// All methods block; each is short, so tests on an asynchronous runtime may call them as they are.
#[derive(Debug)]
pub struct Postgres {
    binaries: Binaries,
    account: Account,
    settings: Vec<(String, String)>,
    slow: Option<SlowDisk>,
    port: u16,
    running: Mutex<Option<Watched>>,
    databases: AtomicU64,
    /// The main process, and the most CPU time that was seen since it began.
    counted: Mutex<(u32, Duration)>,
    dir: TempDir,
}

impl Postgres {
    pub(crate) fn launch(
        binaries: Binaries,
        account: Account,
        dir: TempDir,
        settings: Vec<(String, String)>,
        slow: Option<SlowDisk>,
    ) -> Result<Self> {
        let mut server = Self {
            binaries,
            account,
            settings,
            slow,
            port: 0,
            running: Mutex::new(None),
            databases: AtomicU64::new(0),
            counted: Mutex::default(),
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

    /// The URL of the database `postgres`, as the superuser, without a password.
    pub fn url(&self) -> String {
        self.url_for("postgres")
    }

    /// The URL of a database of this server.
    pub fn url_for(&self, database: &str) -> String {
        format!("postgres://{SUPERUSER}@127.0.0.1:{}/{database}", self.port)
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder that holds the server's UNIX socket (for `host=` in a connection string).
    pub fn socket_folder(&self) -> &Path {
        self.dir.path()
    }

    /// Makes an empty database and says its URL. It lives as long as the server.
    ///
    /// # Errors
    /// The server is down.
    pub fn create_database(&self) -> Result<String> {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.exec(&format!("create database {name}"))?;
        Ok(self.url_for(&name))
    }

    /// Runs SQL in the database `postgres`; rows come back one a line, columns separated by `|`.
    ///
    /// # Errors
    /// As [`psql`].
    pub fn exec(&self, sql: &str) -> Result<String> {
        psql(&self.url(), sql)
    }

    /// The path of another program of the same installation (`psql`, `pgbench`).
    pub fn program(&self, name: &str) -> PathBuf {
        self.binaries.program(name)
    }

    /// What the server has written to its log so far.
    pub fn log(&self) -> String {
        fs::read(self.log_path())
            .map(|text| String::from_utf8_lossy(&text).into_owned())
            .unwrap_or_default()
    }

    /// All processes of the server: first the main one, then one a connection and its helpers.
    /// Empty while it is down.
    pub fn pids(&self) -> Vec<u32> {
        let Some(main) = self.running().as_ref().map(Watched::pid) else {
            return Vec::new();
        };
        let mut pids = vec![main];
        pids.extend(procfs::children(main));
        pids
    }

    /// CPU time (user and system) of all processes since the server was last started, including
    /// connections that have ended: of these in steps of 10 ms. It never goes back.
    pub fn cpu_time(&self) -> Duration {
        let pids = self.pids();
        let own = pids.iter().filter_map(|pid| {
            let exact = procfs::exact_cpu_time(*pid);
            exact.or_else(|| procfs::cpu_time(*pid).ok())
        });
        let main = pids.first().and_then(|pid| procfs::stat(*pid));
        let ended = main.map(|stat| stat.ended_children);
        let now = own.chain(ended).sum::<Duration>();
        let pid = pids.first().copied().unwrap_or_default();
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        // Of a connection that ends, less than a step may be lost.
        *counted = match *counted {
            (same, before) if same == pid => (pid, now.max(before)),
            _ => (pid, now),
        };
        counted.1
    }

    /// Stops all processes in their tracks (SIGSTOP) and waits until they stand: connections stay
    /// open, nothing is answered.
    ///
    /// # Errors
    /// They do not stand after a minute.
    pub fn pause(&self) -> Result<()> {
        wait_until("paused processes stand", || {
            // Again each time: the main process may have started one meanwhile.
            self.signal_all(Signal::SIGSTOP);
            let mut states = self.pids().into_iter().filter_map(procfs::stat);
            states.all(|stat| matches!(stat.state, 'T' | 'Z'))
        })
    }

    /// Lets all processes go on (SIGCONT).
    pub fn resume(&self) {
        self.signal_all(Signal::SIGCONT);
    }

    /// Kills all processes with SIGKILL, as a crash of the machine would, and waits until they are
    /// gone. The server stays down until [`Postgres::restart`].
    ///
    /// # Errors
    /// They are not gone after a minute.
    pub fn kill9(&self) -> Result<()> {
        let pids = self.pids();
        self.signal_all(Signal::SIGKILL);
        for pid in &pids {
            // Those that were started after the list was made end by themselves: they watch the
            // main process.
            kill(pid_of(*pid), Signal::SIGKILL).ok();
        }
        self.end(Stop::Immediate)?;
        wait_until("killed processes are gone", || {
            !pids.iter().any(|pid| procfs::is_running(*pid))
        })
    }

    /// Stops in an orderly way: transactions are rolled back, connections closed.
    ///
    /// # Errors
    /// It cannot be told to.
    pub fn stop(&self) -> Result<()> {
        self.end(Stop::Fast)
    }

    /// Stops the server at once, if it is up, and starts it again on the same port with the same
    /// data. Blocks until it takes connections again.
    ///
    /// # Errors
    /// It does not come up; the message ends with its log.
    pub fn restart(&self) -> Result<()> {
        self.end(Stop::Immediate)?;
        let start = Instant::now();
        while !self.try_run()? {
            if start.elapsed() > PATIENCE {
                bail!("port {} or the data stay taken:\n{}", self.port, self.log());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn end(&self, how: Stop) -> Result<()> {
        self.resume();
        let watched = self.running().take();
        watched.map_or(Ok(()), |watched| watched.stop(how))
    }

    /// Starts the server; false if the port was taken, or if a process of a server that was killed
    /// still runs.
    fn try_run(&self) -> Result<bool> {
        let seen = self.log().len();
        let (program, arguments) = self.command();
        let watched = Watched::start(
            self.account.command(Path::new("/bin/sh")),
            self.dir.path(),
            &self.log_path(),
            &program,
            &arguments,
        )?;
        let ready = self.wait_ready(&watched);
        if ready {
            *self.running() = Some(watched);
            return Ok(true);
        }
        watched.stop(Stop::Immediate)?;
        let log = self.log();
        let news = log.get(seen..).unwrap_or_default();
        let passing = [
            "could not bind",
            "could not create any TCP/IP sockets",
            "pre-existing shared memory block",
        ];
        if passing.iter().any(|text| news.contains(text)) {
            return Ok(false);
        }
        bail!("PostgreSQL does not start:\n{news}")
    }

    /// What is run, with which arguments.
    fn command(&self) -> (PathBuf, Vec<String>) {
        let postgres = self.binaries.program("postgres");
        let Some(slow) = &self.slow else {
            return (postgres, self.arguments());
        };
        let mut words = slow.prefix();
        words.push(postgres.to_string_lossy().into_owned());
        words.extend(self.arguments());
        (PathBuf::from("/usr/bin/env"), words)
    }

    fn arguments(&self) -> Vec<String> {
        let path = |p: &Path| p.to_string_lossy().into_owned();
        let mut arguments = vec!["-D".into(), path(&self.data())];
        let own = [
            ("port".to_owned(), self.port.to_string()),
            ("unix_socket_directories".to_owned(), path(self.dir.path())),
        ];
        for (name, value) in own.iter().chain(&self.settings) {
            arguments.push("-c".into());
            arguments.push(format!("{name}={value}"));
        }
        arguments
    }

    /// `postmaster.pid` holds the process id in its first line and `ready` in its eighth
    /// (src/include/utils/pidfile.h).
    fn wait_ready(&self, watched: &Watched) -> bool {
        let path = self.data().join("postmaster.pid");
        let start = Instant::now();
        while watched.is_running() && start.elapsed() < PATIENCE {
            let text = fs::read_to_string(&path).unwrap_or_default();
            let mut lines = text.lines();
            let same = lines.next() == Some(&watched.pid().to_string());
            if same && lines.nth(6).map(str::trim) == Some("ready") {
                return true;
            }
            thread::sleep(Duration::from_millis(5));
        }
        false
    }

    fn signal_all(&self, signal: Signal) {
        for pid in self.pids() {
            // One that has ended meanwhile needs no signal.
            kill(pid_of(pid), signal).ok();
        }
    }

    fn running(&self) -> MutexGuard<'_, Option<Watched>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the folder of the server's data.
    pub fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn log_path(&self) -> PathBuf {
        self.dir.path().join("log")
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // Nothing can be reported here; the watchdog cleans up where this fails.
        self.end(Stop::Immediate).ok();
    }
}

fn pid_of(pid: u32) -> Pid {
    Pid::from_raw(i32::try_from(pid).unwrap_or(i32::MAX))
}

/// A free port below the range of outgoing connections: one of those could take it while the server
/// is down, or connect to itself there.
pub(crate) fn free_port() -> Result<u16> {
    let mut rng = rand::rng();
    (0..1000)
        .map(|_| rng.random_range(15_000..32_000))
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .context("no free port between 15000 and 32000 on 127.0.0.1")
}

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) -> Result<()> {
    let start = Instant::now();
    while !condition() {
        if start.elapsed() > PATIENCE {
            bail!("waited {PATIENCE:?} in vain until {what}");
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
