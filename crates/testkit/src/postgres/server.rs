//! One running server.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use anyhow::Result;
use nix::sys::signal::{Signal, kill};
use tempfile::TempDir;

use super::programs::PostgresPrograms;
use super::psql::psql;
use super::slow_fsync::SlowDisk;
use crate::locked;
use crate::own_server::{Account, OwnServer, Place, Product, Stop, pid_of, wait_until};
use crate::procfs;

/// The superuser of every server that is started here. Local connections need no password.
pub(crate) const SUPERUSER: &str = "windrow";

/// A PostgreSQL server that this value owns: it is stopped and its files are removed when the value
/// is dropped, and also when the process that holds it is killed.
///
/// All methods block; each is short, so tests on an asynchronous runtime may call them as they are.
#[derive(Debug)]
pub struct Postgres {
    /// The main process, and the most CPU time that was seen since it began.
    counted: Mutex<(u32, Duration)>,
    server: OwnServer<PostgresProduct>,
}

/// An installed version with its settings.
#[derive(Debug)]
struct PostgresProduct {
    programs: PostgresPrograms,
    settings: Vec<(String, String)>,
    slow: Option<SlowDisk>,
}

impl Product for PostgresProduct {
    const NAME: &'static str = "PostgreSQL";
    const PASSING: &'static [&'static str] = &[
        "could not bind",
        "could not create any TCP/IP sockets",
        "pre-existing shared memory block",
    ];
    const STOP: Stop = Stop::Immediate;

    fn command(&self, place: &Place) -> (PathBuf, Vec<String>) {
        let postgres = self.programs.program("postgres");
        let Some(slow) = &self.slow else {
            return (postgres, self.arguments(place));
        };
        let mut words = slow.prefix();
        words.push(postgres.to_string_lossy().into_owned());
        words.extend(self.arguments(place));
        (PathBuf::from("/usr/bin/env"), words)
    }

    /// `postmaster.pid` holds the process id in its first line and `ready` in its eighth
    /// (src/include/utils/pidfile.h).
    fn is_ready(&self, place: &Place, pid: u32, _news: &str) -> bool {
        let path = place.data().join("postmaster.pid");
        let text = fs::read_to_string(path).unwrap_or_default();
        let mut lines = text.lines();
        lines.next() == Some(&pid.to_string()) && lines.nth(6).map(str::trim) == Some("ready")
    }
}

impl PostgresProduct {
    fn arguments(&self, place: &Place) -> Vec<String> {
        let path = |p: &Path| p.to_string_lossy().into_owned();
        let mut arguments = vec!["-D".into(), path(&place.data())];
        let own = [
            ("port".to_owned(), place.port().to_string()),
            ("unix_socket_directories".to_owned(), path(place.dir())),
        ];
        for (name, value) in own.iter().chain(&self.settings) {
            arguments.push("-c".into());
            arguments.push(format!("{name}={value}"));
        }
        arguments
    }
}

impl Postgres {
    pub(crate) fn launch(
        (programs, account): (PostgresPrograms, Account),
        dir: TempDir,
        settings: Vec<(String, String)>,
        slow: Option<SlowDisk>,
    ) -> Result<Self> {
        let product = PostgresProduct {
            programs,
            settings,
            slow,
        };
        Ok(Self {
            counted: Mutex::default(),
            server: OwnServer::start(product, account, dir)?,
        })
    }

    /// Returns the URL of the database `postgres`, as the superuser, without a password.
    pub fn url(&self) -> String {
        self.url_for("postgres")
    }

    /// Returns the URL of a database of this server.
    pub fn url_for(&self, database: &str) -> String {
        let port = self.port();
        format!("postgres://{SUPERUSER}@127.0.0.1:{port}/{database}")
    }

    /// Returns the port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.server.place().port()
    }

    /// Returns the folder that holds the server's UNIX socket (for `host=` in a connection string).
    pub fn socket_folder(&self) -> &Path {
        self.server.place().dir()
    }

    /// Makes an empty database and says its URL. It lives as long as the server.
    ///
    /// # Errors
    /// The server is down.
    pub fn create_database(&self) -> Result<String> {
        let name = self.server.new_name();
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

    /// Returns the path of another program of the same installation (`psql`, `pgbench`).
    pub fn program(&self, name: &str) -> PathBuf {
        self.server.product().programs.program(name)
    }

    /// Returns all that the server has written to its log.
    pub fn log(&self) -> String {
        self.server.place().log()
    }

    /// Returns all processes of the server: first the main one, then one a connection and its
    /// helpers. Empty while it is down.
    pub fn pids(&self) -> Vec<u32> {
        let Some(main) = self.server.pid() else {
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
        let mut counted = locked(&self.counted);
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
    /// The watchdog cannot be reached.
    pub fn stop(&self) -> Result<()> {
        self.end(Stop::Fast)
    }

    /// Stops the server at once, if it is up, and starts it again on the same port with the same
    /// data. Blocks until it takes connections again.
    ///
    /// # Errors
    /// It does not come up; the message ends with its log.
    pub fn restart(&self) -> Result<()> {
        self.resume();
        self.server.restart()
    }

    /// Paused processes hear nothing else.
    fn end(&self, how: Stop) -> Result<()> {
        self.resume();
        self.server.stop(how)
    }

    /// Returns the folder of the server's data.
    pub fn data(&self) -> PathBuf {
        self.server.place().data()
    }

    fn signal_all(&self, signal: Signal) {
        for pid in self.pids() {
            // One that has ended meanwhile needs no signal.
            kill(pid_of(pid), signal).ok();
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // The server is stopped once its processes run.
        self.resume();
    }
}
