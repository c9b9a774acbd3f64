//! One running server.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use nix::sys::signal::{Signal, kill};
use tempfile::TempDir;

use super::client::{creation, sql};
use super::programs::{MariaDbPrograms, as_root};
use crate::own_server::{
    Account, OwnServer, Place, Product, Stop, Template, build_of, pid_of, run, scratch, wait_until,
};
use crate::procfs;

/// The name of temporary directories.
const PRODUCT: &str = "mariadb";

/// Settings of a server before it is started. Made by [`MariaDb::builder`].
#[derive(Clone, Debug, Default)]
pub struct MariaDbBuilder {
    settings: Vec<String>,
}

impl MariaDbBuilder {
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
        let programs = MariaDbPrograms::find()?;
        let account = Account::own()?;
        let dir = scratch(PRODUCT, &account)?;
        let template = Template {
            product: PRODUCT,
            build: &build_of(&programs.server),
            account: &account,
            install: &|target| install(&programs, &account, target),
        };
        template.lay(&dir.path().join("data"))?;
        MariaDb::launch(programs, account, dir, self.settings)
    }
}

/// Makes a data directory.
fn install(programs: &MariaDbPrograms, account: &Account, target: &Path) -> Result<()> {
    run(account
        .command(&programs.install)
        .args(programs.install_options())
        .args(as_root(account))
        .arg(format!("--datadir={}", target.display())))
}

/// A MariaDB server that this value owns: it is stopped and its files are removed when the value is
/// dropped, and also when the process that holds it is killed.
///
/// All methods block; each is short, so tests on an asynchronous runtime may call them as they are.
#[derive(Debug)]
pub struct MariaDb {
    server: OwnServer<MariaDbProduct>,
}

/// An installation with its options.
#[derive(Debug)]
struct MariaDbProduct {
    programs: MariaDbPrograms,
    options: Vec<String>,
}

impl Product for MariaDbProduct {
    const NAME: &'static str = "MariaDB";
    const PASSING: &'static [&'static str] = &["Bind on TCP/IP port"];
    const STOP: Stop = Stop::Kill;

    fn command(&self, place: &Place) -> (PathBuf, Vec<String>) {
        let dir = place.dir().display();
        let mut arguments = vec![
            "--no-defaults".to_owned(),
            format!("--datadir={}", place.data().display()),
            // A server that starts removes what others have left there, also what others still
            // use.
            format!("--tmpdir={dir}"),
            format!("--socket={dir}/socket"),
            format!("--pid-file={dir}/pid"),
            format!("--port={}", place.port()),
            "--bind-address=127.0.0.1".to_owned(),
            "--skip-log-bin".to_owned(),
            "--performance-schema=off".to_owned(),
            "--max-connections=300".to_owned(),
            "--innodb-buffer-pool-size=64M".to_owned(),
        ];
        arguments.extend(self.options.iter().cloned());
        (self.programs.server.clone(), arguments)
    }

    fn is_ready(&self, _place: &Place, _pid: u32, news: &str) -> bool {
        news.contains("ready for connections")
    }
}

impl MariaDb {
    /// Starts a server with the default settings that does not sync at each commit.
    ///
    /// # Errors
    /// As [`MariaDbBuilder::start`].
    pub fn start() -> Result<Self> {
        Self::builder().start()
    }

    /// Prepares a server with other settings.
    pub fn builder() -> MariaDbBuilder {
        MariaDbBuilder::default().fsync(false)
    }

    fn launch(
        programs: MariaDbPrograms,
        account: Account,
        dir: TempDir,
        settings: Vec<String>,
    ) -> Result<Self> {
        let own = programs.server_options().iter().copied();
        let own = own.chain(as_root(&account)).map(str::to_owned);
        let product = MariaDbProduct {
            options: own.chain(settings).collect(),
            programs,
        };
        let server = OwnServer::start(product, account, dir)?;
        Ok(Self { server })
    }

    /// Returns the URL of the database `mysql`, as root, without a password.
    pub fn url(&self) -> String {
        self.url_for("mysql")
    }

    /// Returns the URL of a database of this server.
    pub fn url_for(&self, database: &str) -> String {
        format!("mysql://root@127.0.0.1:{}/{database}", self.port())
    }

    /// Returns the port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.server.place().port()
    }

    /// Makes an empty database (utf8mb4) and says its URL. It lives as long as the server.
    ///
    /// # Errors
    /// The server is down.
    pub fn create_database(&self) -> Result<String> {
        let name = self.server.new_name();
        sql(&self.url(), &creation(&name))?;
        Ok(self.url_for(&name))
    }

    /// Returns all that the server has written to its log.
    pub fn log(&self) -> String {
        self.server.place().log()
    }

    /// CPU time since the server was last started. In steps of 10 ms.
    pub fn cpu_time(&self) -> Duration {
        let stat = self.server.pid().and_then(procfs::stat);
        stat.map_or(Duration::ZERO, |stat| stat.own)
    }

    /// Stops the process in its tracks (SIGSTOP) and waits until all of its threads stand:
    /// connections stay open, nothing is answered.
    ///
    /// # Errors
    /// A thread goes on for a minute.
    pub fn pause(&self) -> Result<()> {
        self.signal(Signal::SIGSTOP);
        wait_until("all threads stand", || {
            self.server.pid().is_none_or(procfs::is_standing)
        })
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
        self.server.stop(Stop::Kill)
    }

    /// Kills the server, if it is up, and starts it again on the same port with the same data.
    /// Blocks until it takes connections again.
    ///
    /// # Errors
    /// It does not come up; the message ends with its log.
    pub fn restart(&self) -> Result<()> {
        self.server.restart()
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.server.pid() {
            // One that has ended meanwhile needs no signal.
            kill(pid_of(pid), signal).ok();
        }
    }

    /// Returns the folder of its files.
    pub fn folder(&self) -> &Path {
        self.server.place().dir()
    }
}
