//! The settings of a PostgreSQL server before it is started.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use super::programs::PostgresPrograms;
use super::server::{Postgres, SUPERUSER};
use super::slow_fsync::SlowDisk;
use crate::own_server::{Account, Template, build_of, run, scratch};

/// The name of temporary directories.
const PRODUCT: &str = "postgres";

/// Settings of a server before it is started. Made by [`Postgres::builder`].
#[derive(Clone, Debug)]
pub struct PostgresBuilder {
    settings: Vec<(String, String)>,
    hba: Vec<String>,
    tls: Option<(PathBuf, PathBuf)>,
    slow_fsync: Option<Duration>,
}

impl Postgres {
    /// Starts a server with the default settings and `fsync = off`.
    ///
    /// # Errors
    /// As [`PostgresBuilder::start`].
    pub fn start() -> Result<Self> {
        Self::builder().start()
    }

    /// Prepares a server with other settings.
    pub fn builder() -> PostgresBuilder {
        PostgresBuilder::new()
    }
}

impl PostgresBuilder {
    fn new() -> Self {
        let settings = [
            ("listen_addresses", "127.0.0.1"),
            ("max_connections", "300"),
            ("fsync", "off"),
            ("logging_collector", "off"),
        ];
        Self {
            settings: settings
                .iter()
                .map(|(k, v)| ((*k).into(), (*v).into()))
                .collect(),
            hba: Vec::new(),
            tls: None,
            slow_fsync: None,
        }
    }

    /// Any setting of `postgresql.conf`; the last one of a name counts.
    #[must_use]
    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.into(), value.into()));
        self
    }

    /// Real durability, for measurements and crash tests. Off by default: tests are faster without.
    #[must_use]
    pub fn fsync(self, on: bool) -> Self {
        self.set("fsync", if on { "on" } else { "off" })
    }

    /// Real durability on a disk whose every sync takes so much longer than this machine's. Needs a
    /// C compiler (`cc`).
    #[must_use]
    pub fn slow_fsync(mut self, by: Duration) -> Self {
        self.slow_fsync = Some(by);
        self.fsync(true)
    }

    /// Adds a line of `pg_hba.conf`, before the ones that trust every local connection. Lines count
    /// in the order given.
    #[must_use]
    pub fn hba(mut self, line: &str) -> Self {
        self.hba.push(line.into());
        self
    }

    /// TLS with this certificate and key (PEM files, which are copied).
    #[must_use]
    pub fn tls(mut self, certificate: &Path, key: &Path) -> Self {
        self.tls = Some((certificate.into(), key.into()));
        self
    }

    /// Makes the data directory and starts the server. Blocks until it takes connections (some 0.3
    /// s).
    ///
    /// # Errors
    /// PostgreSQL is not installed, or refuses to start; the message ends with its log.
    pub fn start(self) -> Result<Postgres> {
        let programs = PostgresPrograms::find()?;
        let account = Account::unprivileged()?;
        let dir = scratch(PRODUCT, &account)?;
        let data = dir.path().join("data");
        let template = Template {
            product: PRODUCT,
            build: &build_of(&programs.program("postgres")),
            account: &account,
            install: &|target| initdb(&programs, &account, target),
        };
        template.lay(&data)?;
        self.write_hba(&data)?;
        let mut settings = self.settings.clone();
        if programs.has_timescaledb() {
            // Its extension is refused otherwise.
            settings.insert(0, ("shared_preload_libraries".into(), "timescaledb".into()));
            settings.insert(1, ("timescaledb.telemetry_level".into(), "off".into()));
            // A worker that connects to `template1` would keep databases from being created.
            let workers = "timescaledb.max_background_workers";
            settings.insert(2, (workers.into(), "0".into()));
        }
        settings.extend(self.lay_tls(&account, &data)?);
        let slow = self.slow_fsync.map(|by| SlowDisk::make(dir.path(), by));
        Postgres::launch((programs, account), dir, settings, slow.transpose()?)
    }

    fn write_hba(&self, data: &Path) -> Result<()> {
        let path = data.join("pg_hba.conf");
        let rest = fs::read_to_string(&path)?;
        // Written in place, so that it stays the server's own file.
        fs::write(&path, format!("{}\n{rest}", self.hba.join("\n"))).context("pg_hba.conf")
    }

    fn lay_tls(&self, account: &Account, data: &Path) -> Result<Vec<(String, String)>> {
        let Some((certificate, key)) = &self.tls else {
            return Ok(Vec::new());
        };
        for (from, name) in [(certificate, "server.crt"), (key, "server.key")] {
            let to = data.join(name);
            fs::copy(from, &to).with_context(|| format!("copy {}", from.display()))?;
            // PostgreSQL refuses a key that others could read.
            fs::set_permissions(&to, fs::Permissions::from_mode(0o600))?;
            account.give(&to)?;
        }
        Ok(vec![("ssl".into(), "on".into())])
    }
}

/// Makes a data directory.
fn initdb(programs: &PostgresPrograms, account: &Account, target: &Path) -> Result<()> {
    run(account
        .command(&programs.program("initdb"))
        .args(["--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C"])
        .args(["-U", SUPERUSER, "-D"])
        .arg(target))
}
