//! PgBouncer before a server, to compare with.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::own_server::{Account, SERVER_TIMEOUT, free_port, installed, scratch};
use crate::pgclient::Address;
use crate::procfs;

/// The environment variable that names the program to compare with, where it is another one than
/// the installed.
pub const PROGRAM: &str = "WINDROW_BENCH_PGBOUNCER";

/// Clients that it takes.
pub const MAX_CLIENTS: usize = 12_000;

/// The way in which server connections are shared among clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// Each transaction takes one of so many.
    Transaction(usize),
    /// Each client that has sent something keeps one of so many.
    Session(usize),
}

/// A PgBouncer. Ended when dropped.
#[derive(Debug)]
pub struct PgBouncer {
    child: Child,
    folder: TempDir,
    address: Address,
}

impl PgBouncer {
    /// Starts it before a database. Blocks until it takes connections.
    ///
    /// # Errors
    /// It is not installed, or does not start; the message holds its log.
    pub fn start(target: &Address, pooling: Pooling) -> Result<Self> {
        let account = Account::unprivileged()?;
        let folder = scratch("pgbouncer", &account)?;
        let port = free_port()?;
        let settings = folder.path().join("pgbouncer.ini");
        fs::write(&settings, ini(target, port, pooling, folder.path()))?;
        let child = account
            .command(&program()?)
            .arg("-q")
            .arg(&settings)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot run pgbouncer")?;
        let mut bouncer = Self {
            child,
            folder,
            address: target.at(SocketAddr::from(([127, 0, 0, 1], port))),
        };
        bouncer.wait()?;
        Ok(bouncer)
    }

    fn wait(&mut self) -> Result<()> {
        let start = Instant::now();
        while TcpStream::connect(self.address.socket).is_err() {
            let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            if self.child.try_wait()?.is_some() {
                bail!("pgbouncer ended:\n{log}");
            }
            if start.elapsed() > SERVER_TIMEOUT {
                bail!("pgbouncer does not listen after {SERVER_TIMEOUT:?}:\n{log}");
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Where it listens.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// CPU time so far, in steps of 10 ms.
    ///
    /// # Errors
    /// It has ended.
    pub fn cpu_time(&self) -> Result<Duration> {
        procfs::cpu_time(self.child.id())
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        // Nothing can be reported here.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Returns the version of PgBouncer, such as `1.18.0`.
///
/// # Errors
/// It is not installed.
pub fn version() -> Result<String> {
    let output = Command::new(program()?).arg("--version").output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.split_whitespace().nth(1);
    version
        .map(str::to_owned)
        .context("pgbouncer does not say its version")
}

fn program() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os(PROGRAM) {
        return Ok(path.into());
    }
    installed("pgbouncer").with_context(|| {
        format!("pgbouncer is not installed (apt-get install pgbouncer), and {PROGRAM} names none")
    })
}

fn ini(target: &Address, port: u16, pooling: Pooling, folder: &Path) -> String {
    let (mode, pool) = match pooling {
        Pooling::Transaction(pool) => ("transaction", pool),
        Pooling::Session(pool) => ("session", pool),
    };
    format!(
        "[databases]\n{database} = host={ip} port={target_port} dbname={database} user={role}\n\
         [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
         auth_type = any\npool_mode = {mode}\ndefault_pool_size = {pool}\n\
         max_client_conn = {MAX_CLIENTS}\nlogfile = {log}\n",
        database = target.database,
        ip = target.socket.ip(),
        target_port = target.socket.port(),
        role = target.role,
        log = folder.join("log").display(),
    )
}
